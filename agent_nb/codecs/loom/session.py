"""Read the frames of one Loom session, in order (seed 002 § 4.2, § 5, § 7.2).

Rules
- What the canonical fields do not say of a frame, its envelope included, stays in the event's note.
- A text block ends where anything but its next piece comes.
- The reply adds to the answer, the thoughts and the usage only what was not streamed: all of it,
  or the rest. Its `total_usage` is the run's total, whatever the frames before add up to.
- A run that stops while a call waits for approval awaits. Anything that goes on with the call
  answers it, and so do words of the model.
- `cancel_run`, or the server's word for it, is an interrupt. Such a run is interrupted, unless its
  reply says how else it ended.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from ...events import (
    Approval,
    Counts,
    Delta,
    End,
    EndStatus,
    Error,
    Event,
    Interrupt,
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
from ..blocks import Blocks
from ..foreign_values import object_of, run_id, text_of
from ..passthrough import note_difference
from ..replies import StreamedAnswer
from ..run_builder import RunBuilder, Spans, handler_of
from ..usage import PROMPT, counts_of
from .lines import (
    CANCELS,
    NAME,
    SHIFTS,
    STOPS,
    Obj,
    draw_chunk,
    draw_frame,
    draw_reply,
    payload_of,
    strip_envelope,
)
from .tools import KINDS, ToolFrames

_STATUS = {word: status for status, word in STOPS.items()}
_STREAMED = frozenset({"message_chunk", "thought_chunk", "tool_call_chunk"})
_COUNTS = PROMPT | {"cached": "cached_tokens"}


class Session:
    """One session; `runs`: how many it has had."""

    def __init__(self, runs: int = 0) -> None:
        self.runs = runs
        self._run = RunBuilder(NAME, draw_frame, self._where)
        self._texts = Blocks(self._run, SHIFTS)
        self._tools = ToolFrames(self._run, self._texts)
        self._spans = Spans()
        self._nodes: list[tuple[str, str, str]] = []  # (name, span, node_id) of the open ones
        self._last = ("", "")  # node_id and span of the newest
        self._entered = 0
        self._base = ""
        self._begun = self._announced = self._cancelled = False
        self._total = Counts()
        self._answer, self._thoughts = StreamedAnswer(), StreamedAnswer()
        self._pending: set[str] = set()  # calls that wait for approval

    def read(self, frame: Obj) -> list[Event]:
        """Return the events of one frame."""
        kind = frame.get("type")
        before: list[Event] = []
        if not self._begun or (kind == "run_start" and (self._entered or self._announced)):
            before = self.close()
            self._begin(frame)
        if isinstance(frame.get("reply"), str) and kind in (None, "run_end"):
            return [*before, *self._reply(frame)]
        out = self._texts.close() if not isinstance(kind, str) or kind not in _STREAMED else []
        out += (
            self._tools.read(frame)
            if isinstance(kind, str) and kind in KINDS
            else handler_of(self.HANDLERS, kind, Session._unknown)(self, frame)
        )
        return [*before, *self._heard(out)]

    @property
    def going_on(self) -> bool:
        """True while a run has begun and not ended."""
        return self._begun

    def close(self) -> list[Event]:
        """Close what is open, as cut off."""
        out = self._heard([*self._texts.close(incomplete=True), *self._tools.pending()])
        status = self._ended_how()
        if self._begun and status != "ok":
            self._begun = False
            out.append(self._run.derived(End, status=status))
        return out

    def _ended_how(self) -> EndStatus:
        """Return how a run ends whose reply does not say it."""
        return "interrupted" if self._cancelled else "awaiting" if self._pending else "ok"

    def _begin(self, frame: Obj) -> None:
        self.runs += 1
        self._base = (
            self._base
            or text_of(frame, "session_id")
            or text_of(frame, "run_id")
            or run_id(NAME, frame, self.runs)
        )
        self._run.new_run(self._base if self.runs == 1 else f"{self._base}#{self.runs}")
        self._tools.clear()
        self._spans, self._nodes, self._last, self._entered = Spans(), [], ("", ""), 0
        self._total, self._pending = Counts(), set()
        self._answer, self._thoughts = StreamedAnswer(), StreamedAnswer()
        self._begun, self._announced, self._cancelled = True, False, False

    def _heard(self, events: list[Event]) -> list[Event]:
        """Note what has been streamed, and which calls wait for approval."""
        for event in events:
            self._answer.add(event)
            if isinstance(event, Think) and not event.span:
                self._thoughts.add(Respond(content=event.content, turn=event.turn))
            if isinstance(event, Approval):
                self._pending.add(event.call_id)
            elif isinstance(event, Started | Progress | Result):
                self._pending.discard(event.call_id)
            elif isinstance(event, Think | Respond | Delta) and getattr(event, "of", "") != "call":
                self._pending.clear()
        return events

    def _where(self, frame: Obj) -> Obj:
        """Return the node run that a frame names, or the open node, as `path`.

        In a node inside a node it is the `span` too: that is a run inside the run.
        """
        wire = frame.get("node_id")
        if isinstance(wire, str) and frame.get("type") != "got_expand":
            path = self._last[1] if wire == self._last[0] else wire
        else:
            path = self._nodes[-1][1] if self._nodes else ""
        inner = len(self._nodes) > 1 and path in (span for _, span, _ in self._nodes[1:])
        return {"path": path, "span": path} if inner else {"path": path}

    # The run and its nodes.

    def _run_start(self, frame: Obj) -> list[Event]:
        self._announced = True
        out: list[Event] = [self._run.line(RunStart, frame, agent=text_of(frame, "agent"))]
        if isinstance(frame.get("message"), str):
            out.append(self._run.derived(User, content=frame["message"]))
        return out

    def _enter(self, frame: Obj) -> list[Event]:
        name = text_of(frame, "id")
        wire = text_of(frame, "node_id") or f"run-{name}-{self._entered}"
        self._entered += 1
        span = self._spans.take(wire)
        parent = self._nodes[-1][1] if self._nodes else ""
        self._nodes.append((name, span, wire))
        self._last = (wire, span)
        return [
            self._run.line(
                Node, frame, name=name, phase="enter", span=span, parent=parent, path=parent
            )
        ]

    def _exit(self, frame: Obj) -> list[Event]:
        name, result = text_of(frame, "id"), frame.get("result")
        node = next((n for n in reversed(self._nodes) if n[0] == name), None)
        if node:
            self._nodes.remove(node)
        span = node[1] if node else text_of(frame, "node_id") or f"run-{name}"
        parent = self._nodes[-1][1] if self._nodes else ""
        fault = result.get("Err") if isinstance(result, dict) else None
        text = f"error: {fault}" if isinstance(fault, str) else "ok"
        fields: Obj = {
            "name": name,
            "phase": "exit",
            "span": span,
            "parent": parent,
            "path": parent,
            "result": text,
        }
        return [*self._tools.pending(), self._run.line(Node, frame, **fields)]

    def _reply(self, frame: Obj) -> list[Event]:
        out = self._heard([*self._texts.close(), *self._tools.pending()])
        out += self._heard(self._reasoning(text_of(frame, "reasoning_content")))
        text, stop = frame["reply"], frame.get("stop_reason")
        if not self._answer.includes(text):
            out += self._heard([self._missing(text)])
        out += self._used(frame)
        status = _STATUS.get(stop, "ok") if isinstance(stop, str) else self._ended_how()
        reason = stop if isinstance(stop, str) and status == "ok" else ""
        form = text_of(frame, "type")
        drawn = draw_reply(self._answer.text, status, reason, form)
        note = {**({"form": form} if form else {}), **note_difference(frame, drawn)}
        out.append(self._run.make(End, note, status=status, finish_reason=reason))
        self._begun = False
        return out

    def _reasoning(self, text: str) -> list[Event]:
        """Return what of the thoughts is only in the reply."""
        if self._thoughts.includes(text):
            return []
        return [self._run.derived(Think, content=self._thoughts.missing(text)[0])]

    def _used(self, frame: Obj) -> list[Event]:
        """Return the usage that is only in the reply."""
        step, total = (
            counts_of(object_of(frame.get(key)), _COUNTS) for key in ("usage", "total_usage")
        )
        counted = self._total != Counts()
        step, total = (Counts() if counted else step), (total if total != Counts() else step)
        if total in (Counts(), self._total) or (counted and not frame.get("total_usage")):
            return []
        return [self._run.derived(Metric, step=step, total=total)]

    def _missing(self, reply: str) -> Event:
        """Return what of the answer is only in the reply."""
        text, rest = self._answer.missing(reply)
        return self._run.make(
            Respond, {"derived": True, **({"rest": True} if rest else {})}, content=text
        )

    # Text.

    def _message(self, frame: Obj) -> list[Event]:
        of = "respond" if frame["type"] == "message_chunk" else "think"
        text = frame.get("content")
        if not isinstance(text, str):
            return [*self._texts.close(), *self._unknown(frame)]
        drawn = draw_chunk(of, text)
        return self._texts.delta(
            of, text, frame, drawn, key=text_of(frame, "id"), where=self._where(frame)
        )

    # The rest.

    def _usage(self, frame: Obj) -> list[Event]:
        step = counts_of(frame, _COUNTS)
        self._total += step
        return [self._run.line(Metric, frame, step=step, total=self._total)]

    def _state(self, frame: Obj) -> list[Event]:
        return [self._run.line(State, frame, kind=frame["type"], payload=frame.get("state"))]

    def _checkpoint(self, frame: Obj) -> list[Event]:
        return [self._run.line(State, frame, kind="checkpoint", payload=strip_envelope(frame))]

    def _custom(self, frame: Obj) -> list[Event]:
        return [self._run.extension(frame, "custom", frame.get("value"))]

    def _error(self, frame: Obj) -> list[Event]:
        if not isinstance(frame.get("error"), str):
            return self._unknown(frame)
        return [self._run.line(Error, frame, message=frame["error"])]

    def _cancel(self, frame: Obj) -> list[Event]:
        if self._cancelled:
            return self._unknown(frame)
        self._cancelled = True
        kind = frame["type"]
        return [self._run.line(Interrupt, frame, {"form": kind}, draw=lambda _: {"type": kind})]

    def _unknown(self, frame: Obj) -> list[Event]:
        return [self._run.extension(frame, text_of(frame, "type"), payload_of(frame))]

    HANDLERS: ClassVar[dict[str, Callable[[Any, Obj], list[Event]]]] = {
        "run_start": _run_start,
        "node_enter": _enter,
        "node_exit": _exit,
        "message_chunk": _message,
        "thought_chunk": _message,
        "usage": _usage,
        "values": _state,
        "updates": _state,
        "custom": _custom,
        "checkpoint": _checkpoint,
        "error": _error,
        **dict.fromkeys(CANCELS, _cancel),
    }
