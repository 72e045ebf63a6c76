"""Write one run as Loom frames (seed 002 § 7.1), our own runs with `think` and `act` nodes.

Why nodes: each frame of this format belongs to a node of a graph, and our runs have no graph.

Rules
- In a run of ours, text and calls of the model are in a `think` node, approvals and results of
  tools in an `act` node.
- Each model request is a think node, whose exit waits for the usage of the request; other nodes
  keep their names.
- `node_id` is `run-{name}-{n}`, where n counts all nodes of the run from 0; for events of a
  sub-agent it is their span. Frames between a node's exit and the next node keep the old `node_id`.
- The last frame is the run's reply, which holds the whole answer.
- If a call's arguments are written live, its frames have an id made of its block's, because the
  call's own id comes only with the complete call.
"""

from __future__ import annotations

from typing import Any, ClassVar

from ...events import (
    Answer,
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
    read_repetition,
)
from ..losses import Losses
from ..provenance import note_of
from ..run_builder import EventHandlers
from ..stream_encoder import NO_KIND
from ..value_losses import count_answer_loss, count_result_losses, count_step_losses
from ..writing import LiveBlocks, split_block
from .imported import ImportedFrames
from .lines import NAME, STOPS, Obj, draw_chunk, draw_frame, draw_reply

_STATES = ("values", "updates", "checkpoint")


class RunWriter:
    """Writes the frames of one run.

    `counts`: session -> `event_id` of its newest frame, which this writer increments. None: frames
    have no envelope.
    """

    def __init__(
        self, losses: Losses, run: str, session: str, counts: dict[str, int] | None
    ) -> None:
        self._losses = losses
        self._run = run
        self._session = session
        self._counts = counts
        self._live = LiveBlocks()
        self._held_start: RunStart | None = None  # until the user message, which its frame includes
        self._node = ""  # the think or act node that is open
        self._in_request = False  # the open node is a model request of ours
        # result of the open node, whose exit waits for the usage of its request; None: it runs on
        self._held_result: Any = None
        self._node_id = ""
        self._node_count = 0
        # (span, id) of an open call -> its tool; of an open call that was streamed -> its wire id
        self._tools: dict[tuple[str, str], str] = {}
        self._wire_ids: dict[tuple[str, str], str] = {}
        self._answer = Answer()
        self._imported = ImportedFrames(self._live, self._answer)

    def write(self, event: Event) -> list[Obj]:
        """Return the frames of one event."""
        self._answer.add(event)
        note = note_of(event, NAME)
        if note is not None:
            return self._imported.write(event, note)
        out = self.release(type(event))
        if event.span and isinstance(event, RunStart | User | End):
            self._losses.add(f"nested {event.type}", NO_KIND)
            return out
        handler = self.HANDLERS.get(type(event))
        return [*out, *handler(self, event)] if handler else out

    def release(self, coming: type[Event] = End) -> list[Obj]:
        """Return the frames that were held back, unless they wait for an event of type `coming`.

        The start of the run waits for its user message, the end of a model request for its usage.
        """
        out: list[Obj] = []
        if self._held_start is not None and coming not in (User, RunStart):
            out = [self._frame({**draw_frame(self._held_start), **self._run_id()})]
            self._held_start = None
        if self._held_result is not None and coming is not Metric:
            out += self._leave()
        return out

    # Runs of our own.

    def _frame(self, frame: Obj, node_id: str | None = None) -> Obj:
        """Return a frame with its envelope; `node_id`: None means the current node's."""
        if self._counts is None:
            return frame
        number = self._counts[self._session] = self._counts.get(self._session, 0) + 1
        current = self._node_id if node_id is None else node_id
        return {
            "session_id": self._session,
            **({"node_id": current} if current else {}),
            "event_id": number,
            **frame,
        }

    def _run_id(self) -> Obj:
        return {"run_id": self._run} if self._run else {}

    def _enter(self, name: str) -> list[Obj]:
        """Enter node `name`, unless it is open; leave the one before."""
        if self._node == name:
            return []
        return [*self._leave(), self._open(name)]

    def _open(self, name: str) -> Obj:
        self._node = name
        self._node_id = f"run-{name}-{self._node_count}"
        self._node_count += 1
        return self._frame({"type": "node_enter", "id": name})

    def _leave(self) -> list[Obj]:
        """Leave the open node, if any, with the result that is held for it."""
        name, result = self._node, self._held_result or "Ok"
        self._node, self._in_request, self._held_result = "", False, None
        return [self._frame({"type": "node_exit", "id": name, "result": result})] if name else []

    def _enter_for(self, event: Event, name: str) -> tuple[list[Obj], str | None]:
        """Enter node `name` for an event; return the frames for that, and the event's node id.

        None means the current node's. A sub-agent's event enters no node; its node id is its span.
        """
        return ([], event.span) if event.span else (self._enter(name), None)

    def _start_run(self, event: RunStart) -> list[Obj]:
        self._held_start = event
        return []

    def _user(self, event: User) -> list[Obj]:
        start, self._held_start = self._held_start, None
        fields = draw_frame(start) if start is not None else {}
        message = {"message": event.content}
        return [self._frame({"type": "run_start", **self._run_id(), **message, **fields})]

    def _on_node(self, event: Node) -> list[Obj]:
        if event.name == "llm":
            # a parent shows a request of a sub-agent, whose events open no think node
            return [] if event.parent else self._on_request(event)
        self._node_count += event.phase == "enter"
        return [self._frame(draw_frame(event), event.span)]

    def _on_request(self, event: Node) -> list[Obj]:
        """Open a think node for a model request; at its end, wait for the usage."""
        if event.phase == "enter":
            out = [*self._leave(), self._open("think")]
            self._in_request = True
            return out
        if self._in_request:
            error = "" if event.result == "ok" else event.result.removeprefix("error: ")
            self._held_result = {"Err": error} if error else "Ok"
        return []

    def _delta(self, event: Delta) -> list[Obj]:
        """Write a delta of a text or of a call's arguments."""
        if event.of not in ("think", "respond", "call"):
            return []
        self._live.add(event)
        entering, node_id = self._enter_for(event, "think")
        frame = draw_chunk(event.of, event.text)
        ids = {"call_id": _wire_id(event), "name": event.name}
        extra = ids if event.of == "call" else {"id": "think"}
        return [*entering, self._frame({**frame, **extra}, node_id)]

    def _block(self, event: Think | Respond) -> list[Obj]:
        """Write a block, unless its deltas have been written or the run's reply has its text."""
        if self._live.take(event) or read_repetition(event) == "instead":
            return []
        entering, node_id = self._enter_for(event, "think")
        frames = [
            self._frame({**draw_chunk(event.type, text), "id": "think"}, node_id)
            for text, _ in split_block(event)
        ]
        return [*entering, *frames]

    def _call(self, event: Call) -> list[Obj]:
        """Write a call; first its chunks, unless they have been written."""
        key = (event.span, event.call_id)
        self._tools[key] = event.name
        entering, node_id = self._enter_for(event, "think")
        streamed = self._live.take(event)
        if streamed:
            self._wire_ids[key] = _wire_id(event)
        chunks = split_block(event) if event.chunks and not streamed else []
        ids = {"call_id": self._wire_ids.get(key, event.call_id), "name": event.name}
        frames = [
            self._frame({"type": "tool_call_chunk", **ids, "arguments_delta": text}, node_id)
            for text, _ in chunks
        ]
        return [*entering, *frames, self._frame({**draw_frame(event), **ids}, node_id)]

    def _tool(self, event: Event) -> list[Obj]:
        """Write an approval, start, output or result of a tool."""
        if isinstance(event, Approval) and event.stage != "requested":
            count_answer_loss(self._losses, event, "a frame")
            return []
        if isinstance(event, Progress) and not event.text:
            return []
        frame = draw_frame(event)
        key = (event.span, frame["call_id"])
        frame["call_id"] = self._wire_ids.get(key, frame["call_id"])
        frame.setdefault("name", self._tools.get(key, ""))
        if isinstance(event, Result):
            self._tools.pop(key, None)
            self._wire_ids.pop(key, None)
            count_result_losses(self._losses, event)
        entering, node_id = self._enter_for(event, "act")
        return [*entering, self._frame(frame, node_id)]

    def _as_drawn(self, event: Event) -> list[Obj]:
        return [self._frame(draw_frame(event), event.span or None)]

    def _metric(self, event: Metric) -> list[Obj]:
        count_step_losses(self._losses, event)
        out = self._as_drawn(event)
        if self._held_result is not None:
            out += self._leave()
        return out

    def _state(self, event: State) -> list[Obj]:
        """Write values, updates or a checkpoint."""
        is_valid = event.kind != "checkpoint" or isinstance(event.payload, dict)
        if event.kind not in _STATES or not is_valid:
            self._losses.add("state", "only values, updates and checkpoints have frames")
            return []
        frame = draw_frame(event)
        if event.kind == "updates":
            frame = {"type": "updates", "id": self._node, **frame}
        return [self._frame(frame, event.span or None)]

    def _extension(self, event: Extension) -> list[Obj]:
        return self._as_drawn(event) if event.namespace == NAME else []

    def _end(self, event: End) -> list[Obj]:
        reason = STOPS.get(event.status, event.finish_reason)
        if event.status in STOPS and event.finish_reason not in ("", reason):
            self._losses.add("end.finish_reason", "the stop reason has to say how the run ended")
        return [*self._leave(), self._frame(draw_reply(self._answer.text, event.status, reason))]

    #: Kind of event -> the method that writes it; events of other kinds are not written.
    HANDLERS: ClassVar[EventHandlers] = {
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
        Error: _as_drawn,
        End: _end,
    }


def _wire_id(event: Delta | Call) -> str:
    """Return the wire id of a streamed call: its block's id, unique also among sub-agents."""
    return f"call_{event.span}_{event.block}" if event.span else f"call_{event.block}"
