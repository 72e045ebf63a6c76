"""Pictures that the code of an agent cell displays: those in the file against those of a replay.

Why beside the record: displayed pictures stand in the cell's output, not in the record; a changed
figure is still a change.

Rules
- Compared are the pictures beside the card of the replayed run, if the file shows that run: cleared
  outputs prove nothing.
- Calls whose results come from the record display nothing, so the pictures of a replay must stand
  in the file in the same order. If every call ran again, there must be no others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...record.ipynb import metadata_of, outputs
from ...record.outputs import numbers_of
from ...record.pictures import TYPES, compare
from ...record.record import KEY

Cell = Mapping[str, Any]


def differences(before: Cell, now: Cell, run: Mapping[str, Any]) -> Iterator[str]:
    """Describe how the pictures of a cell differ from those in its file.

    `run` holds the numbers of its replay.
    """
    if run.get("run") not in _runs(before):
        return
    old, new = list(_pictures(before)), list(_pictures(now))
    if len(old) == len(new):
        said = (
            (n, compare(*pair).difference) for n, pair in enumerate(zip(old, new, strict=True), 1)
        )
        yield from (f"picture {number}: {words}" for number, words in said if words)
    elif run.get("ran") == run.get("calls"):
        yield f"it shows {len(new)} picture{'' if len(new) == 1 else 's'}, and the recording {len(old)}"
    else:
        left = iter(old)
        missing = [
            n
            for n, picture in enumerate(new, 1)
            if all(compare(other, picture).difference for other in left)
        ]
        yield from (
            f"picture {number} is not among those of the recording" for number in missing[:1]
        )


def _runs(cell: Cell) -> list[Any]:
    return [numbers.get("run") for output in outputs(cell) if (numbers := numbers_of(output))]


def _pictures(cell: Cell) -> Iterator[str]:
    for output in outputs(cell):
        data = output.get("data")
        if isinstance(data, dict) and KEY not in metadata_of(output):
            yield from (_text(data[kind]) for kind in TYPES if kind in data)


def _text(value: str | Sequence[str]) -> str:
    return (value if isinstance(value, str) else "".join(value)).strip()
