"""Compares the displays of an agent cell, such as figures and tables, in the file and in a replay.

Why apart from the record: displays are outputs of the cell and not in the record, but a changed
figure, table or chart is still a change. Cleared outputs prove nothing.

Rule: calls whose results come from the record display nothing: the displays of a replay must occur
in the file in the same order, but the file may have more, unless every call ran again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ..record import (
    METADATA_KEY,
    DisplayPair,
    PictureComparison,
    RunNumbers,
    list_outputs,
    metadata_of,
    normalize_value,
)

Cell = Mapping[str, Any]
Bundle = Mapping[str, Any]  # a display: MIME type -> content


def describe_differences(before: Cell, now: Cell, run: Mapping[str, Any]) -> Iterator[str]:
    """Yield, in words, how the displays of a replay differ from those that the file shows.

    `before`: the cell of the file; `now`: the replayed one; `run`: the numbers of the replay.
    """
    shown_ids = [RunNumbers.of(output).get("run") for output in list_outputs(before)]
    if not run.get("run") or run["run"] not in shown_ids:
        return
    all_ran = run.get("ran") == run.get("calls")
    for noun, is_kind, compare in (
        ("picture", _is_picture, _compare_pictures),
        ("display", lambda bundle: any(map(DisplayPair.kind_name, bundle)), _compare_displays),
    ):
        old, new = (list(filter(is_kind, _list_displays(cell))) for cell in (before, now))
        yield from _compare_displays_in_order(old, new, noun, compare, all_ran=all_ran)


def uncompared_kinds(cell: Cell) -> list[str]:
    """Return the MIME types in a cell's displays, other than its cards, that are not compared."""
    pairs = (DisplayPair(display, display) for display in _list_displays(cell))
    return list(dict.fromkeys(kind for pair in pairs for kind in pair.uncompared_kinds()))


def _compare_displays_in_order(
    old: Sequence[Bundle],
    new: Sequence[Bundle],
    noun: str,
    compare: Callable[[Bundle, Bundle], str],
    *,
    all_ran: bool,
) -> Iterator[str]:
    """Compare displays in their order; `new` may lack some of `old`, unless `all_ran`.

    `compare` returns how two displays differ, in words ("": they are equal).
    """
    if len(old) == len(new):
        for number, (old_display, new_display) in enumerate(zip(old, new, strict=True), 1):
            if difference := compare(old_display, new_display):
                yield f"{noun} {number}: {difference}"
    elif all_ran:
        yield f"it shows {len(new)} {noun}{'' if len(new) == 1 else 's'}, and the recording {len(old)}"
    else:
        remaining = iter(old)
        for number, display in enumerate(new, 1):
            # the search for the next display goes on after the equal one, so the order counts
            if not any(compare(old_display, display) == "" for old_display in remaining):
                yield f"{noun} {number} is not among those of the recording"
                return


def _compare_pictures(old: Bundle, new: Bundle) -> str:
    # the text that Matplotlib gives for a figure
    figure = _join_text(old.get("text/plain", "")).startswith("<Figure size")
    old_picture, new_picture = (
        _join_text(next(b[k] for k in PictureComparison.TYPES if k in b)) for b in (old, new)
    )
    return PictureComparison.of_pair(old_picture, new_picture, figure=figure).difference


def _compare_displays(old: Bundle, new: Bundle) -> str:
    return DisplayPair(old, new).difference(
        lambda one, other: normalize_value(one) == normalize_value(other)
    )


def _is_picture(display: Bundle) -> bool:
    is_chart = any(map(DisplayPair.is_chart, display))
    return not is_chart and any(kind in PictureComparison.TYPES for kind in display)


def _list_displays(cell: Cell) -> Iterator[Bundle]:
    for output in list_outputs(cell):
        data = output.get("data")
        if isinstance(data, dict) and METADATA_KEY not in metadata_of(output):
            yield data


def _join_text(value: Any) -> str:
    if isinstance(value, list):
        value = "".join(map(str, value))
    return str(value).strip()
