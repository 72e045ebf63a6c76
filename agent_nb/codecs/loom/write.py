"""Events to Loom frames (seed 002 § 7.1): imported ones as they came, our own runs with `think` and
`act` nodes.

Rules
- An event that was read from Loom is drawn and gets back what its note holds, envelope included or
  not, as it was.
- In a run of ours the words of the model stand in a `think` node and the tools in an `act` node; a
  model request of ours is its think node, in which its usage stands too; other nodes keep their
  names. The envelope counts `event_id` from 1 over all runs of a session; `node_id` is
  `run-{name}-{n}`, n from 0 over all nodes of the run, and stays on the frames after a node's exit
  until the next begins.
- The run's reply, its whole answer, is the last frame.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from ...events import (
    Approval,
    Call,
    Delta,
    End,
    Error,
    Event,
    Extension,
    Metric,
    Node,
    Progress,
    Respond,
    Result,
    RunStart,
    Started,
    State,
    Think,
    User,
)
from ...events.text import Answer, repeats
from ..contract import Options
from ..framing import Item
from ..losses import Losses
from ..passthrough import restore
from ..provenance import note_of
from ..stream_encoder import NO_KIND
from ..writing import Block, Live, noted_pieces, pieces
from .export import to_export
from .lines import NAME, SHIFTS, STOPS, Obj, draw, draw_chunk

#: Frames that a run of a session may have before its ids are those of the next, where each run is
# written as a stream of its own.
ROOM = 10_000_000
_STATES = ("values", "updates", "checkpoint")


class LoomWriter:
    """Events of any number of runs to frames."""

    def __init__(self, losses: Losses, options: Options) -> None:
        self._form = options.form
        self._session = options.conversation
        self._losses = losses
        self._runs: dict[str, _Run] = {}
        # of each session, the number of its last frame
        self._counts = {self._session: options.earlier * ROOM}

    def write(self, event: Event) -> list[Item]:
        """Return the frames of one event."""
        run = self._runs.get(event.run)
        if run is None:
            session = self._session or event.run
            run = self._runs[event.run] = _Run(
                self._losses, event.run, session, self._counts if self._form == "frames" else None
            )
        frames = run.write(event)
        if type(event) is End and not event.span:
            del self._runs[event.run]
            if not self._session:
                self._counts.pop(event.run, None)
        return self._items(frames)

    def close(self) -> list[Item]:
        """Return what waited for a user message or a usage that never came."""
        return self._items([f for run in self._runs.values() for f in run.held()])

    def _items(self, frames: list[Obj]) -> list[Item]:
        return [Item(self._finish(frame)) for frame in frames]

    def _finish(self, frame: Obj) -> Obj:
        if self._form == "export":
            return to_export(frame)
        wrap = frame.get("#ws")
        frame = (
            {k: v for k, v in frame.items() if not k.startswith("#")}
            if any(k.startswith("#") for k in frame)
            else frame
        )
        return (
            {"type": "run_stream_event", **wrap, "event": frame}
            if isinstance(wrap, dict)
            else frame
        )


class _Run:
    """The frames of one run. `counts`: the number of each session's last frame, or None for frames
    without an envelope.
    """

    def __init__(
        self, losses: Losses, run: str, session: str, counts: dict[str, int] | None
    ) -> None:
        self._losses = losses
        self._run = run
        self._session = session
        self._counts = counts
        self._live = Live()
        self._start: RunStart | None = None
        self._node = ""  # the think or act node that is open
        self._request = False  # and it is a model request of ours
        self._over: str | None = None  # which has ended, with this error, and waits for its usage
        self._node_id = ""
        self._nodes = 0
        self._names: dict[str, str] = {}
        self._answer = Answer()

    def write(self, event: Event) -> list[Obj]:
        """Return the frames of one event."""
        self._answer.add(event)
        note = note_of(event, NAME)
        if note is not None:
            return self._imported(event, note)
        out = self.held(type(event))
        handler = self.HANDLERS.get(type(event))
        return [*out, *handler(self, event)] if handler else out

    def held(self, before: type[Event] = End) -> list[Obj]:
        """Return what waited and does not belong to the event that comes: the start for its user
        message, a request for its usage.
        """
        out: list[Obj] = []
        if self._start is not None and before not in (User, RunStart):
            out = [self._frame({**draw(self._start), **self._run_id()})]
            self._start = None
        if self._over is not None and before is not Metric:
            out += self._leave(self._over)
        return out

    def _imported(self, event: Event, note: Obj) -> list[Obj]:
        if note.get("derived"):
            return []
        if isinstance(event, Delta):
            self._live.add(event)
            return (
                [restore(draw_chunk(event.of, event.text), note)]
                if event.of in ("think", "respond", "call")
                else []
            )
        if isinstance(event, End):
            stop = event.finish_reason or STOPS.get(event.status)
            return [
                restore(
                    {"reply": self._answer.text, **({"stop_reason": stop} if stop else {})}, note
                )
            ]
        if isinstance(event, Think | Respond):
            return self._imported_block(event, note)
        if isinstance(event, Call):
            return self._imported_call(event, note)
        return [restore(draw(event), note)] if type(event) in _DRAWN else []

    def _imported_block(self, event: Block, note: Obj) -> list[Obj]:
        if self._live.take(event):
            return []
        return [
            restore(draw_chunk(event.type, text), n)
            for text, n in noted_pieces(event, note, SHIFTS)
        ]

    def _imported_call(self, event: Call, note: Obj) -> list[Obj]:
        whole = note.get("call")
        if isinstance(whole, dict):
            return [*self._imported_block(event, note), restore(draw(event), whole)]
        return (
            self._imported_block(event, note)
            if note.get("form") == "chunks"
            else [restore(draw(event), note)]
        )

    # Runs of our own.

    def _frame(self, frame: Obj, node_id: str | None = None) -> Obj:
        """Put the envelope on a frame."""
        if self._counts is None:
            return frame
        number = self._counts[self._session] = self._counts.get(self._session, 0) + 1
        where = self._node_id if node_id is None else node_id
        return {
            "session_id": self._session,
            **({"node_id": where} if where else {}),
            "event_id": number,
            **frame,
        }

    def _run_id(self) -> Obj:
        return {"run_id": self._run} if self._run else {}

    def _enter(self, name: str) -> list[Obj]:
        """Be in node `name`: leave the one before, if it is another."""
        if self._node == name:
            return []
        return [*self._leave(), self._open(name)]

    def _open(self, name: str) -> Obj:
        self._node = name
        self._node_id = f"run-{name}-{self._nodes}"
        self._nodes += 1
        return self._frame({"type": "node_enter", "id": name})

    def _leave(self, error: str = "") -> list[Obj]:
        name, self._node, self._request, self._over = self._node, "", False, None
        return (
            [
                self._frame(
                    {"type": "node_exit", "id": name, "result": {"Err": error} if error else "Ok"}
                )
            ]
            if name
            else []
        )

    def _within(self, event: Event, name: str) -> tuple[list[Obj], str | None]:
        """Return the frames that lead to node `name` and the node id; a sub-agent's events stand in
        its own node.
        """
        return ([], event.span) if event.span else (self._enter(name), None)

    def _start_run(self, event: RunStart) -> list[Obj]:
        if event.span:
            return self._no_place(event)
        self._start = event
        return []

    def _user(self, event: User) -> list[Obj]:
        if event.span:
            return self._no_place(event)
        start, self._start = self._start, None
        drawn = draw(start) if start is not None else {"type": "run_start"}
        return [
            self._frame({"type": "run_start", **self._run_id(), "message": event.content, **drawn})
        ]

    def _no_place(self, event: Event) -> list[Obj]:
        self._losses.add(f"nested {event.type}", NO_KIND)
        return []

    def _on_node(self, event: Node) -> list[Obj]:
        if event.name == "llm":
            return [] if event.parent else self._on_request(event)
        self._nodes += event.phase == "enter"
        return [self._frame(draw(event), event.span)]

    def _on_request(self, event: Node) -> list[Obj]:
        if event.phase == "enter":
            out = [*self._leave(), self._open("think")]
            self._request = True
            return out
        if self._request:
            self._over = "" if event.result in ("", "ok") else event.result.removeprefix("error: ")
        return []

    def _delta(self, event: Delta) -> list[Obj]:
        if event.of not in ("think", "respond", "call"):
            return []
        self._live.add(event)
        before, node_id = self._within(event, "think")
        frame = draw_chunk(event.of, event.text)
        extra = {"name": event.name} if event.of == "call" else {"id": "think"}
        return [*before, self._frame({**frame, **extra}, node_id)]

    def _block(self, event: Think | Respond) -> list[Obj]:
        if self._live.take(event) or repeats(event) == "instead":  # the reply tells it
            return []
        before, node_id = self._within(event, "think")
        return [
            *before,
            *(
                self._frame({**draw_chunk(event.type, text), "id": "think"}, node_id)
                for text, _ in pieces(event)
            ),
        ]

    def _call(self, event: Call) -> list[Obj]:
        self._names[event.call_id] = event.name
        before, node_id = self._within(event, "think")
        chunks = pieces(event) if event.chunks and not self._live.take(event) else []
        who = {"call_id": event.call_id, "name": event.name}
        drawn = [
            self._frame({"type": "tool_call_chunk", **who, "arguments_delta": text}, node_id)
            for text, _ in chunks
        ]
        return [*before, *drawn, self._frame(draw(event), node_id)]

    def _tool(self, event: Event) -> list[Obj]:
        """Frames of an approval, a start, some output, a result."""
        frame = draw(event)
        call_id = frame["call_id"]
        frame.setdefault("name", self._names.get(call_id, ""))
        if isinstance(event, Approval) and event.stage != "requested":
            if not event.decision:  # one with a decision has been counted
                self._losses.add("approval.decision", "only the question has a frame")
            return []
        if isinstance(event, Progress) and not event.text:
            return []
        if isinstance(event, Result):
            self._names.pop(call_id, None)
            self._check(event)
        before, node_id = self._within(event, "act")
        return [*before, self._frame(frame, node_id)]

    def _check(self, event: Result) -> None:
        if event.status not in ("ok", "error"):
            self._losses.add("result.status", "only ok and error are distinguished")
        if not isinstance(event.content, str):
            self._losses.add(
                "result.content", "a result is text: the value is written as JSON text"
            )

    def _plain(self, event: Event) -> list[Obj]:
        return [self._frame(draw(event), event.span or None)]

    def _metric(self, event: Metric) -> list[Obj]:
        step = event.step
        if step.reasoning or step.duration or step.ttft is not None or step.cost is not None:
            self._losses.add(
                "metric.step", "only tokens of input, output and cache are counted here"
            )
        return [*self._plain(event), *(self._leave(self._over) if self._over is not None else [])]

    def _state(self, event: State) -> list[Obj]:
        if event.kind not in _STATES or (
            event.kind == "checkpoint" and not isinstance(event.payload, dict)
        ):
            self._losses.add("state", "only values, updates and checkpoints have frames")
            return []
        frame = draw(event)
        return [
            self._frame(
                {"type": "updates", "id": self._node, **frame}
                if event.kind == "updates"
                else frame,
                event.span or None,
            )
        ]

    def _extension(self, event: Extension) -> list[Obj]:
        return self._plain(event) if event.namespace == NAME else []

    def _end(self, event: End) -> list[Obj]:
        if event.span:
            return self._no_place(event)
        stop = STOPS.get(event.status, event.finish_reason)
        if event.status in STOPS and event.finish_reason not in ("", stop):
            self._losses.add("end.finish_reason", "the stop reason has to say how the run ended")
        return [
            *self._leave(),
            self._frame({"reply": self._answer.text, **({"stop_reason": stop} if stop else {})}),
        ]

    HANDLERS: ClassVar[dict[type[Event], Callable[[Any, Any], list[Obj]]]] = {
        RunStart: _start_run,
        User: _user,
        Node: _on_node,
        Delta: _delta,
        Think: _block,
        Respond: _block,
        Call: _call,
        Approval: _tool,
        Started: _tool,
        Progress: _tool,
        Result: _tool,
        Metric: _metric,
        State: _state,
        Extension: _extension,
        Error: _plain,
        End: _end,
    }


_DRAWN = frozenset(
    {RunStart, Node, Metric, State, Extension, Result, Started, Progress, Approval, Error}
)
