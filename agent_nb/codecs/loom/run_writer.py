"""Writes one run as Loom frames (seed 002 § 7.1).

Rules
- In a run of ours, text and calls of the model are in a `think` node, approvals and results of
  tools in an `act` node. The events of a sub-agent enter no node: their `node_id` is their span.
- If a call's arguments are written live, its frames have an id made of its block's, because the
  call's own id comes only with the complete call.
"""

from __future__ import annotations

from typing import ClassVar

from ... import events
from ...events import Event, read_repetition
from ..losses import Losses
from ..provenance import note_of
from ..run_builder import EventHandlers
from ..stream_encoder import NO_KIND
from ..value_losses import count_answer_loss, count_result_losses, count_step_losses
from ..writing import LiveBlocks, split_block
from .imported import ImportedFrames
from .lines import NAME, STOPS, Obj, draw_chunk, draw_frame, draw_reply
from .nodes import NodeFrames

_STATES = ("values", "updates", "checkpoint")


class RunWriter:
    """Writes the frames of one run; `session` and `counts`: see `NodeFrames`."""

    def __init__(
        self, losses: Losses, run: str, session: str, counts: dict[str, int] | None
    ) -> None:
        self._losses = losses
        self._run = run
        self._frames = NodeFrames(session, counts)
        self._live = LiveBlocks()
        self._held_start: events.RunStart | None = None  # until the user message, which it includes
        # (span, id) of an open call -> its tool; of an open call that was streamed -> its wire id
        self._tools: dict[tuple[str, str], str] = {}
        self._wire_ids: dict[tuple[str, str], str] = {}
        self._answer = events.Answer()
        self._imported = ImportedFrames(self._live, self._answer)

    def write(self, event: Event) -> list[Obj]:
        """Return the frames of one event."""
        self._answer.add(event)
        note = note_of(event, NAME)
        if note is not None:
            return self._imported.write(event, note)
        out = self.release(type(event))
        if event.span and isinstance(event, events.RunStart | events.User | events.End):
            self._losses.add(f"nested {event.type}", NO_KIND)
            return out
        handler = self.HANDLERS.get(type(event))
        return [*out, *handler(self, event)] if handler else out

    def release(self, coming: type[Event] = events.End) -> list[Obj]:
        """Return the frames that were held back, unless they wait for an event of type `coming`.

        The start of the run waits for its user message, the end of a model request for its usage.
        """
        out: list[Obj] = []
        if self._held_start is not None and coming not in (events.User, events.RunStart):
            out = [self._frames.make({**draw_frame(self._held_start), **self._run_id()})]
            self._held_start = None
        if self._frames.is_exit_due and coming is not events.Metric:
            out += self._frames.leave()
        return out

    def _run_id(self) -> Obj:
        return {"run_id": self._run} if self._run else {}

    def _write_in(self, node: str, event: Event, frames: list[Obj]) -> list[Obj]:
        """Write frames of an event in a node of this name; a sub-agent's event enters no node."""
        entering = [] if event.span else self._frames.enter(node)
        return [*entering, *(self._frames.make(frame, event.span) for frame in frames)]

    def _start_run(self, event: events.RunStart) -> list[Obj]:
        self._held_start = event
        return []

    def _user(self, event: events.User) -> list[Obj]:
        start, self._held_start = self._held_start, None
        fields = draw_frame(start) if start is not None else {}
        message = {"message": event.content}
        return [self._frames.make({"type": "run_start", **self._run_id(), **message, **fields})]

    def _on_node(self, event: events.Node) -> list[Obj]:
        if event.name == "llm":
            # a parent shows a request of a sub-agent, whose events open no think node
            return [] if event.parent else self._on_request(event)
        if event.phase == "enter":
            self._frames.count_node()
        return self._as_drawn(event)

    def _on_request(self, event: events.Node) -> list[Obj]:
        if event.phase == "enter":
            return self._frames.begin_request()
        self._frames.end_request(draw_frame(event)["result"])
        return []

    def _delta(self, event: events.Delta) -> list[Obj]:
        """Write a delta of a text or of a call's arguments."""
        if event.of not in ("think", "respond", "call"):
            return []
        self._live.add_delta(event)
        call = {"call_id": _wire_id(event), "name": event.name}
        extra = call if event.of == "call" else {"id": "think"}
        return self._write_in("think", event, [{**draw_chunk(event.of, event.text), **extra}])

    def _block(self, event: events.Think | events.Respond) -> list[Obj]:
        """Write a block, unless its deltas have been written or the run's reply has its text."""
        if self._live.end_block(event) or read_repetition(event) == "instead":
            return []
        pieces = [draw_chunk(event.type, text) for text, _ in split_block(event)]
        return self._write_in("think", event, [{**piece, "id": "think"} for piece in pieces])

    def _call(self, event: events.Call) -> list[Obj]:
        """Write a call; first its chunks, unless they have been written."""
        key = (event.span, event.call_id)
        self._tools[key] = event.name
        was_streamed = self._live.end_block(event)
        if was_streamed:
            self._wire_ids[key] = _wire_id(event)
        chunks = split_block(event) if event.chunks and not was_streamed else []
        frames = [*(draw_chunk("call", text) for text, _ in chunks), draw_frame(event)]
        ids = {"call_id": self._wire_ids.get(key, event.call_id), "name": event.name}
        return self._write_in("think", event, [{**frame, **ids} for frame in frames])

    def _tool(self, event: Event) -> list[Obj]:
        """Write an approval, start, output or result of a tool."""
        if isinstance(event, events.Approval) and event.stage != "requested":
            count_answer_loss(self._losses, event, "a frame")
            return []
        if isinstance(event, events.Progress) and not event.text:
            return []
        frame = draw_frame(event)
        key = (event.span, frame["call_id"])
        frame["call_id"] = self._wire_ids.get(key, frame["call_id"])
        frame.setdefault("name", self._tools.get(key, ""))
        if isinstance(event, events.Result):
            self._tools.pop(key, None)
            self._wire_ids.pop(key, None)
            count_result_losses(self._losses, event)
        return self._write_in("act", event, [frame])

    def _as_drawn(self, event: Event) -> list[Obj]:
        return [self._frames.make(draw_frame(event), event.span)]

    def _metric(self, event: events.Metric) -> list[Obj]:
        count_step_losses(self._losses, event)
        out = self._as_drawn(event)
        return [*out, *self._frames.leave()] if self._frames.is_exit_due else out

    def _state(self, event: events.State) -> list[Obj]:
        """Write values, updates or a checkpoint."""
        is_valid = event.kind != "checkpoint" or isinstance(event.payload, dict)
        if event.kind not in _STATES or not is_valid:
            self._losses.add("state", "only values, updates and checkpoints have frames")
            return []
        frame = draw_frame(event)
        if event.kind == "updates":
            frame = {"type": "updates", "id": self._frames.open_node, **frame}
        return [self._frames.make(frame, event.span)]

    def _extension(self, event: events.Extension) -> list[Obj]:
        return self._as_drawn(event) if event.namespace == NAME else []

    def _end(self, event: events.End) -> list[Obj]:
        reason = STOPS.get(event.status, event.finish_reason)
        if event.status in STOPS and event.finish_reason not in ("", reason):
            self._losses.add("end.finish_reason", "the stop reason has to say how the run ended")
        reply = draw_reply(self._answer.text, event.status, reason)
        return [*self._frames.leave(), self._frames.make(reply)]

    #: Kind of event -> the method that writes it; events of other kinds are not written.
    HANDLERS: ClassVar[EventHandlers] = {
        events.RunStart: _start_run,
        events.User: _user,
        events.Node: _on_node,
        events.Delta: _delta,
        events.Think: _block,
        events.Respond: _block,
        events.Call: _call,
        events.Approval: _tool,
        events.Started: _tool,
        events.Progress: _tool,
        events.Result: _tool,
        events.Metric: _metric,
        events.State: _state,
        events.Extension: _extension,
        events.Error: _as_drawn,
        events.End: _end,
    }


def _wire_id(event: events.Delta | events.Call) -> str:
    """Return the wire id of a streamed call: its block's id, unique also among sub-agents."""
    return f"call_{event.span}_{event.block}" if event.span else f"call_{event.block}"
