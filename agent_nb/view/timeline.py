"""Where the time of a run went: a waterfall of model requests, tools and waiting, as static HTML
and as text.

Why bars of text: an output is read where styles, scripts and pictures are taken away (GitHub, mail,
a diff); block characters in a table stay readable everywhere, and colour only helps.

Rules
- A pure fold over events; partial logs give what there is, empty ones say so. What is still open
  ends with the last event.
- Everything a model or tool wrote is escaped and cut; no script, style element, class or picture.
- Times are seconds since the run's first event. Parallel work is counted once in the sums.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

import msgspec

from .. import events as e
from ..events import Event
from ..events.chunks import decode_chunks
from ..wire.text_limits import fit

WIDTH = 48  # characters of a bar
ROWS = 200
LABEL = 28  # characters of a label

# kind of a segment: (character, colour, word of the legend); colours are legible on white and on
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
SUMS = {"model": ("think", "call", "respond"), "tools": ("tool", "failed"), "waiting": ("wait",)}


class Segment(msgspec.Struct, frozen=True):
    """A stretch of time in seconds since the run began, and its kind."""

    kind: str
    start: float
    end: float


class Row(msgspec.Struct, frozen=True):
    """One line of the waterfall. `level` is its depth below sub-agents, `note` what is said beside
    its time.
    """

    label: str
    segments: tuple[Segment, ...]
    level: int = 0
    note: str = ""

    @property
    def start(self) -> float:
        """When it begins, in seconds."""
        return min((s.start for s in self.segments), default=0.0)

    @property
    def seconds(self) -> float:
        """How long it takes."""
        return max((s.end for s in self.segments), default=0.0) - self.start


class Timeline:
    """A waterfall as rich output; `str()` is its text."""

    def __init__(self, log: Iterable[Event]) -> None:
        self._events = list(log)

    def __str__(self) -> str:
        return text(self._events)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/html": timeline(self._events), "text/plain": text(self._events)}


def timeline(log: Sequence[Event]) -> str:
    """Return the waterfall of a run as HTML."""
    found, total = rows(log), _total(log)
    if why := _nothing(log, found):
        return f"<p>{why}</p>"
    shown = "".join(_html_row(row, total) for row in found[:ROWS])
    more = f"<p>… and {len(found) - ROWS} more</p>" if len(found) > ROWS else ""
    legend = " ".join(
        f'<span style="color:{colour}">{char}</span> {word}' for char, colour, word in LOOK.values()
    )
    return (
        f"<p><b>{_time(total)}</b> in all{escape(_sums(found))}</p>"
        f'<table style="border-collapse:collapse"><tbody>{shown}</tbody></table>{more}<p><small>{legend}</small></p>'
    )


def text(log: Sequence[Event]) -> str:
    """Return the waterfall of a run as plain text."""
    found, total = rows(log), _total(log)
    if why := _nothing(log, found):
        return why
    lines = [f"{_time(total)} in all{_sums(found)}"]
    for row in found[:ROWS]:
        bar = "".join(LOOK[kind][0] if kind else " " for kind in _cells(row, total))
        lines.append(f"{_label(row):<{LABEL}} |{bar}| {_seconds(row)}")
    if len(found) > ROWS:
        lines.append(f"… and {len(found) - ROWS} more")
    return "\n".join(lines)


def _nothing(log: Sequence[Event], found: Sequence[Row]) -> str:
    """Return why there is nothing to show, or ""."""
    if log and not any(event.ts for event in log):
        return "No time to show: the run was imported, and its source gave no times."
    return "" if found else "No time to show: the run has no model request and no tool call."


def rows(log: Sequence[Event]) -> list[Row]:
    """Return the lines of the waterfall, by their start."""
    fold = _Fold(log)
    for event in log:
        fold.add(event)
    return sorted(fold.finish(), key=lambda row: row.start)


class _Fold:
    """Collects stretches of time from events."""

    def __init__(self, log: Sequence[Event]) -> None:
        self._start = log[0].ts if log else 0.0
        self._last = log[-1].ts - self._start if log else 0.0
        self._rows: list[Row] = []
        self._requests: dict[str, tuple[e.Node, list[Segment]]] = {}
        self._turns: dict[str, int] = {}  # of requests, as their words tell it
        self._open: dict[str, str] = {}  # the latest request of each run, by the span of the run
        self._retry: float | None = None
        self._loose: dict[tuple[str, int], list[Segment]] = {}
        self._calls: dict[str, tuple[str, list[Segment]]] = {}
        self._asked: dict[str, float] = {}
        self._running: dict[str, float] = {}
        self._spans: dict[str, tuple[str, float, int]] = {}  # nodes in progress: name, start, level

    def add(self, event: Event) -> None:
        """Take one event."""
        at = event.ts - self._start
        if isinstance(event, e.Node) and event.name == "llm":
            self._node(event, at)
        elif isinstance(event, e.Node | e.Extension):
            self._span(event, at)
        elif isinstance(event, e.Think | e.Respond | e.Call):
            self._block(event, at)
        elif isinstance(event, e.Approval):
            self._approval(event, at)
        elif isinstance(event, e.Started):
            self._running[event.call_id] = at
            self._calls.setdefault(event.call_id, (event.name, []))
        elif isinstance(event, e.Result):
            self._result(event, at)
        elif isinstance(event, e.Error) and event.code == "retry":
            self._retry = at

    def finish(self) -> list[Row]:
        """Return all rows; what is open ends with the last event."""
        for key, (node, segments) in self._requests.items():
            self._request(key, node, segments, self._last, "running")
        for (_, turn), segments in self._loose.items():
            self._rows.append(Row(f"model, turn {turn}", tuple(segments)))
        for call_id, start in self._running.items():
            name, segments = self._calls[call_id]
            self._rows.append(
                Row(name, (*segments, Segment("tool", start, self._last)), note="running")
            )
        for name, start, level in self._spans.values():
            self._rows.append(Row(name, (Segment("node", start, self._last),), level, "running"))
        return self._rows

    def _span(self, event: e.Node | e.Extension, at: float) -> None:
        """Take the beginning or end of a sub-agent, of a foreign graph's node, or of a node of a
        graph of thought.
        """
        key, name, phase, result = _phase(event)
        if isinstance(event, e.Node) and "call_id" in (event.data or {}):
            return  # a sub-agent: its call has a line
        if phase == "enter":
            self._spans[key] = (name, at, event.span.count("/"))
        elif phase == "exit" and key in self._spans:
            name, start, level = self._spans.pop(key)
            self._rows.append(
                Row(
                    name,
                    (Segment("node", start, at),),
                    level,
                    "" if result in ("", "ok") else result,
                )
            )

    def _node(self, event: e.Node, at: float) -> None:
        if event.phase == "enter":
            begin, self._retry = at if self._retry is None else self._retry, None
            self._requests[event.span] = (event, [Segment("wait", begin, at)])
            self._open[event.parent] = event.span
        elif event.span in self._requests:
            node, segments = self._requests.pop(event.span)
            self._request(event.span, node, segments, at, event.result)

    def _request(
        self, span: str, node: e.Node, segments: list[Segment], end: float, result: str
    ) -> None:
        reached, blocks = segments[0].start, []
        for block in (*sorted(segments[1:], key=lambda s: s.start), Segment("", end, end)):
            if block.start > reached:
                blocks.append(Segment("wait", reached, block.start))
            blocks.append(block)
            reached = max(reached, block.end)
        attempt = (node.data or {}).get("attempt", 1)
        label = f"model, turn {self._turns.get(span, node.turn)}" + (
            f", attempt {attempt}" if attempt != 1 else ""
        )
        kept = tuple(b for b in blocks if b.kind) or (segments[0],)
        self._rows.append(Row(label, kept, span.count("/"), "" if result == "ok" else result))

    def _block(self, event: e.Think | e.Respond | e.Call, at: float) -> None:
        begin = self._begin(event, at)
        segment = Segment(event.type, min(begin, at), at)
        owner = event.span if event.span in self._requests else self._open.get(event.span, "")
        if owner in self._requests:
            self._requests[owner][1].append(segment)
            self._turns[owner] = event.turn
        else:
            self._loose.setdefault((event.span, event.turn), []).append(segment)

    def _begin(self, event: e.Think | e.Respond | e.Call, at: float) -> float:
        """Return when the first piece of a block came."""
        try:
            pair = next(iter(decode_chunks(event.chunks)), None)
        except ValueError:
            pair = None
        return at if pair is None else pair[1] / 1000

    def _approval(self, event: e.Approval, at: float) -> None:
        if event.stage == "requested":
            self._asked[event.call_id] = at
        elif event.call_id in self._asked:
            _, segments = self._calls.setdefault(event.call_id, ("", []))
            segments.append(Segment("wait", self._asked.pop(event.call_id), at))

    def _result(self, event: e.Result, at: float) -> None:
        name, segments = self._calls.get(event.call_id, (event.name, []))
        start = self._running.pop(event.call_id, None)
        ended = at if start is None or not event.duration else min(start + event.duration, at)
        if start is not None:
            segments = [
                *segments,
                Segment("tool" if event.status == "ok" else "failed", start, max(ended, start)),
            ]
        if segments:
            note = "" if event.status == "ok" else event.status
            self._rows.append(
                Row(name or event.name, tuple(segments), event.call_id.count("/"), note)
            )


PHASES = {"got_node_start": "enter", "got_node_complete": "exit", "got_node_failed": "exit"}


def _phase(event: e.Node | e.Extension) -> tuple[str, str, str, str]:
    """Return key, name, phase ("" for no node) and result of what an event says about a node."""
    if isinstance(event, e.Node):
        return event.span or event.name, event.name or "node", event.phase, event.result
    fields = event.payload if isinstance(event.payload, dict) else {}
    name, phase = (
        str(fields.get("id", "")),
        PHASES.get(event.name, "") if event.namespace == "loom" else "",
    )
    result = f"error: {fields.get('error', '')}" if event.name == "got_node_failed" else ""
    return f"plan {name}", name or "node", phase, result


def _total(log: Sequence[Event]) -> float:
    return max(log[-1].ts - log[0].ts, 0.0) if log else 0.0


def _cells(row: Row, total: float) -> list[str]:
    """Return the kind that stands in each character of the bar ("": nothing)."""
    cells = [""] * WIDTH
    for segment in row.segments:
        if segment.end <= segment.start and len(row.segments) > 1:
            continue
        first = min(int(segment.start / total * WIDTH), WIDTH - 1) if total else 0
        last = min(max(round(segment.end / total * WIDTH), first + 1), WIDTH) if total else 1
        cells[first:last] = [segment.kind] * (last - first)
    return cells


def _html_row(row: Row, total: float) -> str:
    pieces: list[tuple[str, int]] = []
    for kind in _cells(row, total):
        if pieces and pieces[-1][0] == kind:
            pieces[-1] = (kind, pieces[-1][1] + 1)
        else:
            pieces.append((kind, 1))
    bar = "".join(
        f'<span style="color:{LOOK[kind][1]}">{LOOK[kind][0] * n}</span>' if kind else "&nbsp;" * n
        for kind, n in pieces
    )
    cell = '<td style="text-align:left;padding:0 8px;white-space:nowrap">'
    label = escape(_label(row)).replace("  ", "&nbsp;&nbsp;")
    return f"<tr>{cell}{label}</td>{cell}<code>{bar}</code></td>{cell}{escape(_seconds(row))}</td></tr>"


def _label(row: Row) -> str:
    label = "  " * min(row.level, 4) + " ".join(row.label.split())
    return fit(label, LABEL)


def _seconds(row: Row) -> str:
    return f"{_time(row.seconds)}{f' {row.note[:60]}' if row.note else ''}"


def _time(seconds: float) -> str:
    """Return a time as `12 ms` or `1.8 s`."""
    return f"{seconds * 1000:.0f} ms" if seconds < 0.9995 else f"{seconds:.1f} s"


def _sums(found: Iterable[Row]) -> str:
    segments = [s for row in found for s in row.segments]
    named = {
        name: _covered([s for s in segments if s.kind in kinds]) for name, kinds in SUMS.items()
    }
    said = " · ".join(f"{name} {_time(seconds)}" for name, seconds in named.items() if seconds)
    return f": {said}" if said else ""


def _covered(segments: list[Segment]) -> float:
    """Return how long at least one of the segments lasts."""
    covered, reached = 0.0, 0.0
    for segment in sorted(segments, key=lambda s: s.start):
        covered += max(0.0, segment.end - max(segment.start, reached))
        reached = max(reached, segment.end)
    return covered
