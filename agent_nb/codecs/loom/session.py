"""Turns the ordered frames of one Loom session into events.

Rules
- The reply at the end repeats what was streamed, whole or in part: it adds answer, thoughts and
  usage only as far as they were not streamed. Its `total_usage` is the run's total, even if the
  usage frames add up to something else.
- A run that stops while a call waits for approval ends as `awaiting`; one with a `cancel_run`, or
  the server's acknowledgement of it, as interrupted, unless its reply gives another reason.
"""

from __future__ import annotations

from typing import ClassVar

from ... import events
from ...events import Event
from ...wire import as_dict
from ..blocks import Blocks
from ..foreign_values import run_id, text_of
from ..passthrough import note_difference
from ..replies import StreamedAnswer
from ..run_builder import LineHandlers, RunBuilder
from ..usage import CHAT_NAMES, read_usage
from . import lines
from .lines import NAME, SHIFTS, Obj
from .open_nodes import OpenNodes
from .tools import KINDS, ToolFrames

# `stop_reason` of a reply -> status of the end; any other reason means "ok"
_STATUS = {word: status for status, word in lines.STOPS.items()}
# types whose frames may continue an open text or call; any other closes the text
_PIECES = frozenset({"message_chunk", "thought_chunk", "tool_call_chunk"})
_COUNTS = CHAT_NAMES | {"cached": "cached_tokens"}


class Session:
    """Reads one session; `runs`: how many of its runs have begun, also before this reader."""

    def __init__(self, runs: int = 0) -> None:
        self.runs = runs
        self._nodes = OpenNodes()
        self._run = RunBuilder(NAME, lines.draw_frame, self._nodes.locate, lines.payload_of)
        self._texts = Blocks(self._run, SHIFTS)
        self._tools = ToolFrames(self._run, self._texts)
        self._first_run_id = ""  # kept for the session: its later runs have this id with `#n`
        self._begun = False
        self._forget_run()

    def _forget_run(self) -> None:
        """Set the state of a run to that before its first frame."""
        self._nodes.clear()
        self._tools.clear()
        self._has_run_start = self._cancelled = False
        self._total = events.Counts()  # of the usage frames
        self._answer, self._thoughts = StreamedAnswer(), StreamedAnswer()
        self._awaiting: set[str] = set()  # calls that wait for approval

    def read(self, frame: Obj) -> list[Event]:
        """Return the events of one frame."""
        kind = frame.get("type")
        closing: list[Event] = []
        # frames may precede the `run_start` of their run; after a node or a start it begins another
        may_begin_another = self._nodes.entered or self._has_run_start
        if not self._begun or (kind == "run_start" and may_begin_another):
            closing = self.close()
            self._begin(frame)
        if isinstance(frame.get("reply"), str) and kind in (None, "run_end"):
            return [*closing, *self._reply(frame)]
        out = self._texts.close_text() if not isinstance(kind, str) or kind not in _PIECES else []
        reader = self._tools if isinstance(kind, str) and kind in KINDS else self
        out += self._run.read_line(reader, frame)
        return [*closing, *self._observe(out)]

    @property
    def is_running(self) -> bool:
        """Whether a run has begun and not ended."""
        return self._begun

    def close(self) -> list[Event]:
        """Close open text as incomplete; end a run that was cancelled or waits for an approval."""
        cut = self._texts.close_text(incomplete=True)
        out = self._observe([*cut, *self._tools.close_unfinished_calls()])
        status = self._implied_status()
        if self._begun and status != "ok":
            self._begun = False
            out.append(self._run.derived(events.End, status=status))
        return out

    def _implied_status(self) -> events.EndStatus:
        """Return the status of a run without a reply, or whose reply has no stop reason."""
        if self._cancelled:
            return "interrupted"
        return "awaiting" if self._awaiting else "ok"

    def _begin(self, frame: Obj) -> None:
        """Begin a run with its first frame."""
        self.runs += 1
        first_id = (
            self._first_run_id
            or text_of(frame, "session_id")
            or text_of(frame, "run_id")
            or run_id(NAME, frame, self.runs)
        )
        self._first_run_id = first_id
        self._run.new_run(first_id if self.runs == 1 else f"{first_id}#{self.runs}")
        self._forget_run()
        self._begun = True

    def _observe(self, new: list[Event]) -> list[Event]:
        """Record the streamed text and the calls that wait for approval; return `new`."""
        for event in new:
            self._answer.add(event)
            if isinstance(event, events.Think) and not event.span:
                self._thoughts.add(events.Respond(content=event.content, turn=event.turn))
            if isinstance(event, events.Approval):
                self._awaiting.add(event.call_id)
            elif isinstance(event, events.Started | events.Progress | events.Result):
                self._awaiting.discard(event.call_id)
            # the model writes on, so each question is answered; the arguments of a call (`call`)
            # may belong to the next call of the same batch
            elif (
                isinstance(event, events.Think | events.Respond | events.Delta)
                and getattr(event, "of", "") != "call"
            ):
                self._awaiting.clear()
        return new

    def _run_start(self, frame: Obj) -> list[Event]:
        self._has_run_start = True
        out: list[Event] = [self._run.line(events.RunStart, frame, agent=text_of(frame, "agent"))]
        if isinstance(frame.get("message"), str):
            out.append(self._run.derived(events.User, content=frame["message"]))
        return out

    def _enter(self, frame: Obj) -> list[Event]:
        return [self._run.line(events.Node, frame, **self._nodes.enter(frame))]

    def _exit(self, frame: Obj) -> list[Event]:
        fields = self._nodes.exit(frame)
        return [*self._tools.close_unfinished_calls(), self._run.line(events.Node, frame, **fields)]

    def _reply(self, frame: Obj) -> list[Event]:
        """Read the reply: it ends the run, and may add to the streamed text and usage."""
        out = self._observe([*self._texts.close_text(), *self._tools.close_unfinished_calls()])
        out += self._observe(self._thoughts_in_reply(text_of(frame, "reasoning_content")))
        text, stop = frame["reply"], frame.get("stop_reason")
        if not self._answer.includes(text):
            out += self._observe([self._answer_in_reply(text)])
        out += self._usage_in_reply(frame)
        status = _STATUS.get(stop, "ok") if isinstance(stop, str) else self._implied_status()
        reason = stop if isinstance(stop, str) and status == "ok" else ""
        form = text_of(frame, "type")
        drawn = lines.draw_reply(self._answer.text, status, reason, form)
        note = {**({"form": form} if form else {}), **note_difference(frame, drawn)}
        out.append(self._run.make(events.End, note, status=status, finish_reason=reason))
        self._begun = False
        return out

    def _thoughts_in_reply(self, text: str) -> list[Event]:
        """Return the reply's thoughts, or the rest of them, as far as they were not streamed."""
        if self._thoughts.includes(text):
            return []
        return [self._run.derived(events.Think, content=self._thoughts.find_rest(text)[0])]

    def _usage_in_reply(self, frame: Obj) -> list[Event]:
        """Return the usage that no `usage` frame has reported."""
        step = read_usage(as_dict(frame.get("usage")), _COUNTS)
        total = read_usage(as_dict(frame.get("total_usage")), _COUNTS)
        if total == events.Counts():
            total = step
        if self._total != events.Counts():  # usage frames have reported the steps
            if not frame.get("total_usage"):
                return []
            step = events.Counts()
        if total in (events.Counts(), self._total):
            return []
        return [self._run.derived(events.Metric, step=step, total=total)]

    def _answer_in_reply(self, reply: str) -> Event:
        """Return the reply's answer, or the rest of it, as far as it was not streamed."""
        text, continues = self._answer.find_rest(reply)
        note = {"derived": True, "rest": True} if continues else {"derived": True}
        return self._run.make(events.Respond, note, content=text)

    def _message(self, frame: Obj) -> list[Event]:
        of = "respond" if frame["type"] == "message_chunk" else "think"
        text = frame.get("content")
        if not isinstance(text, str):
            return [*self._texts.close_text(), *self._run.unknown(frame)]
        key, drawn = text_of(frame, "id"), lines.draw_chunk(of, text)
        return self._texts.add_text(of, text, frame, drawn, key=key)

    def _usage(self, frame: Obj) -> list[Event]:
        step = read_usage(frame, _COUNTS)
        self._total += step
        return [self._run.line(events.Metric, frame, step=step, total=self._total)]

    def _state(self, frame: Obj) -> list[Event]:
        kind = frame["type"]
        payload = lines.strip_envelope(frame) if kind == "checkpoint" else frame.get("state")
        return [self._run.line(events.State, frame, kind=kind, payload=payload)]

    def _error(self, frame: Obj) -> list[Event]:
        if not isinstance(frame.get("error"), str):
            return self._run.unknown(frame)
        return [self._run.line(events.Error, frame, message=frame["error"])]

    def _cancel(self, frame: Obj) -> list[Event]:
        if self._cancelled:
            return self._run.unknown(frame)
        self._cancelled = True
        kind = frame["type"]
        note, drawn = {"form": kind}, {"type": kind}
        return [self._run.line(events.Interrupt, frame, note, draw=lambda _: drawn)]

    #: Type of an object -> the method that reads it; an object of any other type is an extension.
    HANDLERS: ClassVar[LineHandlers] = {
        "run_start": _run_start,
        "node_enter": _enter,
        "node_exit": _exit,
        "message_chunk": _message,
        "thought_chunk": _message,
        "usage": _usage,
        "values": _state,
        "updates": _state,
        "custom": lambda self, obj: [self._run.extension(obj, "custom", obj.get("value"))],
        "checkpoint": _state,
        "error": _error,
        **dict.fromkeys(lines.CANCELS, _cancel),
    }
