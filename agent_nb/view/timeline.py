"""The waterfall of a run's time (`waterfall`) as static HTML and as text.

Why bars of text: some readers (GitHub, mail, a diff) remove styles, scripts and pictures; block
characters in a table stay readable everywhere. Labels come from models and tools, so they are cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from itertools import groupby
from typing import Any

from ..events import Event
from ..wire import fit_text
from .visible import show_hidden
from .waterfall import Segment, TimeRow, list_time_rows

WIDTH = 48  # characters of a bar
ROWS = 200  # rows that are drawn; the others are counted
LABEL = 28  # characters of a label

# kind of a segment -> (character, colour, word of the legend); colours are legible on white and on
# black
LOOK: dict[str, tuple[str, str, str]] = {
    "wait": ("░", "#8a8f98", "waiting"),
    "think": ("▒", "#9a6fd0", "thinking"),
    "call": ("▓", "#3f86d8", "writing a call"),
    "respond": ("█", "#2f9e6e", "answering"),
    "tool": ("█", "#d08a2e", "tool"),
    "node": ("─", "#8a8f98", "node"),
    "failed": ("█", "#d6524a", "failed"),
}
# name of a sum -> the kinds of segments in it
SUMS = {"model": ("think", "call", "respond"), "tools": ("tool", "failed"), "waiting": ("wait",)}


class Timeline:
    """The waterfall of a log as rich output of a cell; `str()` is its text."""

    def __init__(self, log: Iterable[Event]) -> None:
        self._events = list(log)

    def __str__(self) -> str:
        return timeline_text(self._events)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/html": timeline_html(self._events), "text/plain": timeline_text(self._events)}


def timeline_html(log: Sequence[Event]) -> str:
    """Return the waterfall of a run as HTML."""
    lines, total = list_time_rows(log), _measure_run(log)
    if why := _explain_empty(log, lines):
        return f"<p>{why}</p>"
    body = "".join(_html_row(row, total) for row in lines[:ROWS])
    more = f"<p>… and {len(lines) - ROWS} more</p>" if len(lines) > ROWS else ""
    legend = " ".join(
        f'<span style="color:{colour}">{char}</span> {word}' for char, colour, word in LOOK.values()
    )
    return (
        f"<p><b>{_time(total)}</b> in all{escape(_describe_sums(lines))}</p>"
        f'<table style="border-collapse:collapse"><tbody>{body}</tbody></table>{more}<p><small>{legend}</small></p>'
    )


def timeline_text(log: Sequence[Event]) -> str:
    """Return the waterfall of a run as plain text."""
    lines, total = list_time_rows(log), _measure_run(log)
    if why := _explain_empty(log, lines):
        return why
    out = [f"{_time(total)} in all{_describe_sums(lines)}"]
    for row in lines[:ROWS]:
        bar = "".join(LOOK[kind][0] if kind else " " for kind in _cells(row, total))
        out.append(f"{_label(row):<{LABEL}} |{bar}| {_seconds(row)}")
    if len(lines) > ROWS:
        out.append(f"… and {len(lines) - ROWS} more")
    return "\n".join(out)


def _explain_empty(log: Sequence[Event], drawn: Sequence[TimeRow]) -> str:
    """Return why there is nothing to show; "" if there is. `drawn`: all rows of the run."""
    if log and not any(event.ts for event in log):
        return "No time to show: the run was imported, and its source gave no times."
    return "" if drawn else "No time to show: the run has no model request and no tool call."


def _measure_run(log: Sequence[Event]) -> float:
    """Return the seconds from the first to the last event."""
    return max(log[-1].ts - log[0].ts, 0.0) if log else 0.0


def _cells(row: TimeRow, total: float) -> list[str]:
    """Return the kind of segment in each character of the bar ("": none)."""
    cells = [""] * WIDTH
    for segment in row.segments:
        if segment.end <= segment.start and len(row.segments) > 1:
            continue  # of no length; a row's only segment gets one character all the same
        first = min(int(_find_position(segment.start, total)), WIDTH - 1)
        last = max(round(_find_position(segment.end, total)), first + 1)
        cells[first:last] = [segment.kind] * (last - first)
    return cells


def _find_position(seconds: float, total: float) -> float:
    """Return the position of a moment in the bar, 0 to `WIDTH` whatever time the record holds."""
    return max(0.0, min(WIDTH, seconds / total * WIDTH)) if total else 0.0


def _html_row(row: TimeRow, total: float) -> str:
    pieces = [(kind, len(list(cells))) for kind, cells in groupby(_cells(row, total))]
    bar = "".join(
        f'<span style="color:{LOOK[kind][1]}">{LOOK[kind][0] * n}</span>' if kind else "&nbsp;" * n
        for kind, n in pieces
    )
    cell = '<td style="text-align:left;padding:0 8px;white-space:nowrap">'
    # HTML would drop the indent, blanks at the start of a cell
    label = escape(_label(row)).replace("  ", "&nbsp;&nbsp;")
    return f"<tr>{cell}{label}</td>{cell}<code>{bar}</code></td>{cell}{escape(_seconds(row))}</td></tr>"


def _label(row: TimeRow) -> str:
    label = "  " * min(row.level, 4) + show_hidden(" ".join(row.label.split()))
    return fit_text(label, LABEL)


def _seconds(row: TimeRow) -> str:
    return f"{_time(row.seconds)}{f' {show_hidden(row.note[:60])}' if row.note else ''}"


def _time(seconds: float) -> str:
    # from 0.9995 s on, the milliseconds would be rounded to 1000
    return f"{seconds * 1000:.0f} ms" if seconds < 0.9995 else f"{seconds:.1f} s"


def _describe_sums(drawn: Iterable[TimeRow]) -> str:
    segments = [s for row in drawn for s in row.segments]
    sums_by_name = {
        name: _sum_covered([s for s in segments if s.kind in kinds]) for name, kinds in SUMS.items()
    }
    sums = " · ".join(
        f"{name} {_time(seconds)}" for name, seconds in sums_by_name.items() if seconds
    )
    return f": {sums}" if sums else ""


def _sum_covered(segments: list[Segment]) -> float:
    """Return the seconds in which at least one of the segments lasts."""
    covered, reached = 0.0, 0.0
    for segment in sorted(segments, key=lambda s: s.start):
        covered += max(0.0, segment.end - max(segment.start, reached))
        reached = max(reached, segment.end)
    return covered
