"""The pictures that code of an agent cell displays, in the file and in a replay.

Why beside the record: what code displays on purpose stands in the cell's output and not in the
record; a figure that has changed is a change all the same.

Rules
- Compared are the pictures beside the card of the run that is replayed, if the file shows them:
  cleared outputs say nothing.
- Calls whose results come from the record display nothing, so what a replay displays must stand in
  the file in the same order; where every call ran again, nothing else may stand there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...record.pictures import TYPES, compare
from ...record.record import KEY

Cell = Mapping[str, Any]


def differences(before: Cell, now: Cell, run: Mapping[str, Any]) -> Iterator[str]:
    """Yield in words how the pictures of a cell differ from those in its file; `run` are the
    numbers of its replay.
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


def _outputs(cell: Cell) -> Iterator[Mapping[str, Any]]:
    yield from (output for output in cell.get("outputs") or [] if isinstance(output, dict))


def _runs(cell: Cell) -> list[Any]:
    found = ((output.get("metadata") or {}).get(KEY) for output in _outputs(cell))
    return [numbers.get("run") for numbers in found if isinstance(numbers, dict)]


def _pictures(cell: Cell) -> Iterator[str]:
    for output in _outputs(cell):
        data = output.get("data")
        if isinstance(data, dict) and KEY not in (output.get("metadata") or {}):
            yield from (_text(data[kind]) for kind in TYPES if kind in data)


def _text(value: str | Sequence[str]) -> str:
    return (value if isinstance(value, str) else "".join(value)).strip()
