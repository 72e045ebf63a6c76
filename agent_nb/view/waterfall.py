"""Where the time of a run went, as rows of segments: model requests, tools, nodes and waiting.

Why: the cards show what happened, but not which request or tool the user waited for. Times are
seconds since the run's first event.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from .. import events as e
from ..events import Event
from ..wire import as_dict
from .state.think_cards import first_delta


class Segment(msgspec.Struct, frozen=True):
    """A stretch of time, in seconds since the run began.

    `kind`: `wait`, `think`, `call` (the model writes a call), `respond`, `tool` (a call runs),
    `failed` (a call runs, and its result is not `ok`) or `node`.
    """

    kind: str
    start: float
    end: float


class TimeRow(msgspec.Struct, frozen=True):
    """One line of the waterfall.

    `level`: the number of spans around it; `note`: a remark beside its time.
    """

    label: str
    segments: tuple[Segment, ...]
    level: int = 0
    note: str = ""

    @property
    def start(self) -> float:
        """When the line begins, in seconds since the run began."""
        return min((s.start for s in self.segments), default=0.0)

    @property
    def seconds(self) -> float:
        """The seconds from the beginning of the line to its end, pauses included."""
        return max((s.end for s in self.segments), default=0.0) - self.start


def list_time_rows(log: Sequence[Event]) -> list[TimeRow]:
    """Return the lines of the waterfall in the order of their start."""
    fold = _TimeRows(log)
    for event in log:
        fold.add(event)
    return sorted(fold.finish(), key=lambda row: row.start)


class _TimeRows:
    """Makes the rows from events."""

    def __init__(self, log: Sequence[Event]) -> None:
        self._start = log[0].ts if log else 0.0
        self._last = log[-1].ts - self._start if log else 0.0
        self._over = bool(log) and isinstance(log[-1], e.End) and not log[-1].span
        self._rows: list[TimeRow] = []
        # open requests, by span: the event that began it, and its segments so far
        self._requests: dict[str, tuple[e.Node, list[Segment]]] = {}
        self._turns: dict[str, int] = {}  # span of a request: its turn, taken from its blocks
        self._latest: dict[str, str] = {}  # span of a run: the span of its latest request
        self._retry: float | None = None  # when the latest request failed, until it is made again
        # blocks of logs without requests, by span and turn
        self._loose_blocks: dict[tuple[str, int], list[Segment]] = {}
        # id of a call: its name, and its segments so far
        self._calls: dict[str, tuple[str, list[Segment]]] = {}
        self._question_times: dict[str, float] = {}  # id of a call: since when it is asked about
        self._running: dict[str, float] = {}  # id of a call: since when it runs
        self._spans: dict[str, tuple[str, float, int]] = {}  # open nodes: name, start, level

    def add(self, event: Event) -> None:
        """Take one event."""
        at = event.ts - self._start
        if isinstance(event, e.Node) and event.name == "llm":
            self._track_request(event, at)
        elif isinstance(event, e.Node | e.Extension):
            self._track_node(event, at)
        elif isinstance(event, e.Think | e.Respond | e.Call):
            self._add_block(event, at)
        elif isinstance(event, e.Approval):
            self._track_question(event, at)
        elif isinstance(event, e.Started):
            self._running[event.call_id] = at
            self._calls.setdefault(event.call_id, (event.name, []))
        elif isinstance(event, e.Result):
            self._add_call(event, at)
        elif isinstance(event, e.Error) and event.code == "retry":
            self._retry = at

    def finish(self) -> list[TimeRow]:
        """Close what is open and return all rows, in no order."""
        open_note = "not finished" if self._over else "running"
        for key, (node, segments) in self._requests.items():
            self._add_request(key, node, segments, self._last, open_note)
        for (_, turn), segments in self._loose_blocks.items():
            self._rows.append(TimeRow(f"model, turn {turn}", tuple(segments)))
        for call_id, start in self._running.items():
            name, segments = self._calls[call_id]
            row = (*segments, Segment("tool", start, self._last))
            self._rows.append(TimeRow(name, row, call_id.count("/"), open_note))
        for name, start, level in self._spans.values():
            row = (Segment("node", start, self._last),)
            self._rows.append(TimeRow(name, row, level, open_note))
        return self._rows

    def _track_node(self, event: e.Node | e.Extension, at: float) -> None:
        """Add the row of a node of a foreign graph or of a graph of thought at its end."""
        node = event if isinstance(event, e.Node) else _read_plan_node(event)
        if node is None or "call_id" in (node.data or {}):
            return  # with an id, it is a sub-agent: its time is in the row of its call
        key = node.span or node.name
        if node.phase == "enter":
            self._spans[key] = (node.name or "node", at, event.span.count("/"))
        elif key in self._spans:
            name, start, level = self._spans.pop(key)
            note = "" if node.result in ("", "ok") else node.result
            self._rows.append(TimeRow(name, (Segment("node", start, at),), level, note))

    def _track_request(self, event: e.Node, at: float) -> None:
        """Add the row of a request at its end; a retry counts from the failure before it."""
        if event.phase == "enter":
            begin, self._retry = at if self._retry is None else self._retry, None
            self._requests[event.span] = (event, [Segment("wait", begin, at)])
            self._latest[event.parent] = event.span
        elif event.span in self._requests:
            node, segments = self._requests.pop(event.span)
            self._add_request(event.span, node, segments, at, event.result)

    def _add_request(
        self, span: str, node: e.Node, segments: list[Segment], end: float, result: str
    ) -> None:
        """Add the row of a model request, with the waits between its blocks."""
        reached, blocks = segments[0].start, []
        # segments[0] is the wait before the request; the last one, without kind, is its end
        for block in (*sorted(segments[1:], key=lambda s: s.start), Segment("", end, end)):
            if block.start > reached:
                blocks.append(Segment("wait", reached, block.start))
            blocks.append(block)
            reached = max(reached, block.end)
        attempt = (node.data or {}).get("attempt", 1)
        label = f"model, turn {self._turns.get(span, node.turn)}"
        label += f", attempt {attempt}" if attempt != 1 else ""
        shown_blocks = tuple(b for b in blocks if b.kind) or (segments[0],)
        note = "" if result == "ok" else result
        self._rows.append(TimeRow(label, shown_blocks, span.count("/"), note))

    def _add_block(self, event: e.Think | e.Respond | e.Call, at: float) -> None:
        """Add a block, from its first delta on, to the request that it belongs to."""
        began = first_delta(event.chunks)
        segment = Segment(event.type, at if began is None else min(began, at), at)
        owner = event.span if event.span in self._requests else self._latest.get(event.span, "")
        if owner in self._requests:
            self._requests[owner][1].append(segment)
            self._turns[owner] = event.turn
        else:
            self._loose_blocks.setdefault((event.span, event.turn), []).append(segment)

    def _track_question(self, event: e.Approval, at: float) -> None:
        if event.stage == "requested":
            self._question_times[event.call_id] = at
        elif event.call_id in self._question_times:
            _, segments = self._calls.setdefault(event.call_id, ("", []))
            segments.append(Segment("wait", self._question_times.pop(event.call_id), at))

    def _add_call(self, event: e.Result, at: float) -> None:
        """Add the row of a call: its waits for answers, and how long it ran."""
        name, segments = self._calls.get(event.call_id, (event.name, []))
        start = self._running.pop(event.call_id, None)
        if start is not None:
            end = min(start + event.duration, at) if event.duration else at
            kind = "tool" if event.status == "ok" else "failed"
            segments = [*segments, Segment(kind, start, max(end, start))]
        if segments:
            note = "" if event.status == "ok" else event.status
            # the id of a call inside a sub-agent begins with the ids of the calls around it
            level = event.call_id.count("/")
            self._rows.append(TimeRow(name or event.name, tuple(segments), level, note))


# name of an extension event about a node of a graph of thought -> its phase
PHASES: dict[str, Literal["enter", "exit"]] = {
    "got_node_start": "enter",
    "got_node_complete": "exit",
    "got_node_failed": "exit",
}


def _read_plan_node(event: e.Extension) -> e.Node | None:
    """Return the event of a node that an extension stands for, None for another extension."""
    if event.namespace != "loom" or event.name not in PHASES:
        return None
    fields = as_dict(event.payload)
    name = str(fields.get("id", fields.get("node_id", "")))
    result = f"error: {fields.get('error', '')}" if event.name == "got_node_failed" else ""
    return e.Node(name=name, phase=PHASES[event.name], result=result, span=f"plan {name}")
