"""The frames of one Loom session, in order, to events (seed 002 § 4.2, § 5, § 7.2).

Rules
- What the canonical fields do not say of a frame, its envelope included, stays in the event's note
  (see residue).
- A text block ends where anything but its next piece comes; arguments that come in chunks wait for
  their `tool_call`, and become a call on their own when the tool starts, ends, or the node exits
  without one.
- An approval, output or end of a call that nobody made opens an implicit one. A second `tool_call`
  of an open call and a second end of one that is over are no second call and no second result: they
  are extensions.
- Of an answer that had been streamed the reply tells nothing more; of one streamed in part it tells
  the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import msgspec

from ...events import (
    Approval,
    Call,
    Counts,
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
    User,
)
from ..call_matching import GUESS, Correlator, Match
from ..losses import Losses
from ..passthrough import diff
from ..replies import Told
from ..run_builder import OpenBlock, Source, Spans, arguments_of, run_id, text_of
from ..usage import PROMPT, added, counts_of
from .arguments import Pieces, id_of
from .lines import NAME, SHIFTS, Obj, bare, draw, draw_chunk
from .write import STOPS

_STATUS = {word: status for status, word in STOPS.items()}
_STREAMED = frozenset({"message_chunk", "thought_chunk", "tool_call_chunk"})


class Session:
    """The frames of one session, in order, to events."""

    def __init__(self, losses: Losses, runs: int = 0) -> None:
        self.runs = runs  # that the session has had
        self._source = Source(NAME, losses, SHIFTS)
        self._pieces = Pieces(self._source)
        self._calls = Correlator()
        self._spans = Spans()
        self._nodes: list[tuple[str, str, str]] = []  # (name, span, node_id) of the open ones
        self._last = ("", "")  # node_id and span of the newest
        self._entered = 0
        self._base = ""
        self._begun = self._announced = False
        self._total = Counts()
        self._answer = Told()

    def read(self, frame: Obj) -> list[Event]:
        """Return the events of one frame."""
        kind = frame.get("type")
        before: list[Event] = []
        if not self._begun or (kind == "run_start" and (self._entered or self._announced)):
            before = self.close()
            self._begin(frame)
        if isinstance(frame.get("reply"), str) and kind in (None, "run_end"):
            return [*before, *self._reply(frame)]
        out = self._closed() if not isinstance(kind, str) or kind not in _STREAMED else []
        handler = (
            self.HANDLERS.get(kind, Session._unknown) if isinstance(kind, str) else Session._unknown
        )
        return [*before, *self._heard([*out, *handler(self, frame)])]

    @property
    def going_on(self) -> bool:
        """True while a run has begun and not ended."""
        return self._begun

    def close(self) -> list[Event]:
        """Close what is open, as cut off."""
        return [*self._closed(incomplete=True), *self._pending_calls()]

    def _begin(self, frame: Obj) -> None:
        self.runs += 1
        self._base = (
            self._base
            or text_of(frame, "session_id")
            or text_of(frame, "run_id")
            or run_id(NAME, frame, self.runs)
        )
        self._source.new_run(self._base if self.runs == 1 else f"{self._base}#{self.runs}")
        self._calls.clear()
        self._spans, self._nodes, self._last, self._entered = Spans(), [], ("", ""), 0
        self._total, self._answer, self._begun, self._announced = Counts(), Told(), True, False

    def _closed(self, *, incomplete: bool = False) -> list[Event]:
        return self._source.close(incomplete=incomplete)

    def _heard(self, events: list[Event]) -> list[Event]:
        """Note what of the answer has been streamed."""
        for event in events:
            self._answer.add(event)
        return events

    def _make(self, cls: type[Any], frame: Obj, note: Obj | None = None, **fields: Any) -> Any:
        event = self._source.make(
            cls, **(fields if "span" in fields else {**self._where(frame), **fields})
        )
        return msgspec.structs.replace(
            event, extra={NAME: {**(note or {}), **diff(frame, draw(event))}}
        )

    def _where(self, frame: Obj) -> dict[str, str]:
        """Return the node run that the frame says it belongs to, as `path`; without envelope, the
        open node.

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
        out: list[Event] = [self._make(RunStart, frame, agent=text_of(frame, "agent"))]
        if isinstance(frame.get("message"), str):
            out.append(self._source.derived(User, content=frame["message"]))
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
            self._make(Node, frame, name=name, phase="enter", span=span, parent=parent, path=parent)
        ]

    def _exit(self, frame: Obj) -> list[Event]:
        name, result = text_of(frame, "id"), frame.get("result")
        found = next((n for n in reversed(self._nodes) if n[0] == name), None)
        if found:
            self._nodes.remove(found)
        span = found[1] if found else text_of(frame, "node_id") or f"run-{name}"
        parent = self._nodes[-1][1] if self._nodes else ""
        said = result.get("Err") if isinstance(result, dict) else None
        text = f"error: {said}" if isinstance(said, str) else "ok"
        fields: Obj = {
            "name": name,
            "phase": "exit",
            "span": span,
            "parent": parent,
            "path": parent,
            "result": text,
        }
        return [*self._pending_calls(), self._make(Node, frame, **fields)]

    def _reply(self, frame: Obj) -> list[Event]:
        out = self._heard([*self._closed(), *self._pending_calls()])
        text, stop = frame["reply"], frame.get("stop_reason")
        if not self._answer.knows(text):
            out += self._heard([self._missing(text)])
        status = _STATUS.get(stop, "ok") if isinstance(stop, str) else "ok"
        reason = stop if isinstance(stop, str) and status == "ok" else ""
        note = diff(
            frame,
            {
                "reply": self._answer.text,
                **({"stop_reason": stop} if isinstance(stop, str) else {}),
            },
        )
        out.append(self._source.make(End, note, status=status, finish_reason=reason))
        self._begun = False
        return out

    def _missing(self, reply: str) -> Event:
        """Return the answer that only the reply tells."""
        text, rest = self._answer.missing(reply)
        return self._source.make(
            Respond, {"derived": True, **({"rest": True} if rest else {})}, content=text
        )

    # Text.

    def _message(self, frame: Obj) -> list[Event]:
        of = "respond" if frame["type"] == "message_chunk" else "think"
        text = frame.get("content")
        if not isinstance(text, str):
            return [*self._closed(), *self._unknown(frame)]
        drawn = draw_chunk(of, text)
        return self._source.delta(
            of, text, frame, drawn, key=text_of(frame, "id"), where=self._where(frame)
        )

    # Tools.

    def _chunk(self, frame: Obj) -> list[Event]:
        text = frame.get("arguments_delta")
        if not isinstance(text, str):
            return [*self._closed(), *self._unknown(frame)]
        before = self._closed()
        name, given = text_of(frame, "name"), text_of(frame, "call_id")
        key = self._pieces.key(name, given, text)
        return [
            *before,
            *self._source.call_delta(
                key, name, text, frame, draw_chunk("call", text), where=self._where(frame)
            ),
        ]

    def _call(self, frame: Obj) -> list[Event]:
        name, given = text_of(frame, "name"), text_of(frame, "call_id")
        args, raw = arguments_of(frame.get("arguments"))
        if self._calls.seen(given) == "open":
            return [*self._pending_calls(name, given), *self._unknown(frame)]
        block = self._pieces.take(name, given)
        call_id, synthetic = self._calls.call(
            name, given or (id_of(block) if block is not None else "")
        )
        fields: Obj = {"call_id": call_id, "synthetic": synthetic, "name": name, "args": args}
        if block is None:
            return [self._make(Call, frame, raw_args=raw, **fields)]
        event = self._source.complete_call(block, **fields)
        note = {**(event.extra or {}).get(NAME, {}), "call": diff(frame, draw(event))}
        return [msgspec.structs.replace(event, extra={NAME: note})]

    def _pending_calls(self, name: str = "", call_id: str = "") -> list[Event]:
        """Return the calls whose arguments came in chunks but were never given whole; one of them
        if a name or id is given.
        """
        if not name and not call_id:
            return [self._from_chunks(b) for b in self._source.open_calls()]
        if call_id and self._calls.seen(call_id):
            return []
        block = self._pieces.take(name, call_id)
        return [self._from_chunks(block)] if block is not None else []

    def _from_chunks(self, block: OpenBlock) -> Event:
        self._source.take_call(block.key)
        call_id, synthetic = self._calls.call(block.name, id_of(block))
        try:
            args = msgspec.json.decode(block.text)
        except (ValueError, RecursionError):
            args = None
        fields: Obj = {
            "call_id": call_id,
            "synthetic": synthetic,
            "name": block.name,
            "args": args if isinstance(args, dict) else {},
        }
        return self._source.complete_call(
            block, {"form": "chunks"}, incomplete=args is None, **fields
        )

    def _news(self, frame: Obj, match: Match, args: Any = None) -> tuple[list[Event], Obj]:
        """Return the call that had not been seen, if so, and the note that says what is guessed."""
        implicit: list[Event] = []
        if match.implicit:
            fields: Obj = {
                "name": text_of(frame, "name"),
                "args": args if isinstance(args, dict) else {},
            }
            synthetic = not text_of(frame, "call_id")
            implicit = [
                self._source.derived(
                    Call, call_id=match.call_id, synthetic=synthetic, **self._where(frame), **fields
                )
            ]
        return implicit, {"guess": GUESS} if match.guess else {}

    def _started(self, frame: Obj) -> list[Event]:
        name, given = text_of(frame, "name"), text_of(frame, "call_id")
        out = self._pending_calls(name, given)
        match = self._calls.news(name, given)
        implicit, note = self._news(frame, match)
        return [*out, *implicit, self._make(Started, frame, note, call_id=match.call_id, name=name)]

    def _output(self, frame: Obj) -> list[Event]:
        if not isinstance(frame.get("content"), str):
            return self._unknown(frame)
        match = self._calls.news(text_of(frame, "name"), text_of(frame, "call_id"))
        implicit, note = self._news(frame, match)
        return [
            *implicit,
            self._make(Progress, frame, note, call_id=match.call_id, text=frame["content"]),
        ]

    def _ended(self, frame: Obj) -> list[Event]:
        name, given = text_of(frame, "name"), text_of(frame, "call_id")
        if self._calls.seen(given) == "over":
            return self._unknown(frame)
        out = self._pending_calls(name, given)
        match = self._calls.result(name, given)
        implicit, note = self._news(frame, match)
        status = "error" if frame.get("is_error") is True else "ok"
        fields: Obj = {
            "call_id": match.call_id,
            "name": name,
            "content": frame.get("result", ""),
            "status": status,
        }
        return [*out, *implicit, self._make(Result, frame, note, **fields)]

    def _approval(self, frame: Obj) -> list[Event]:
        name, args = text_of(frame, "name"), frame.get("arguments")
        match = self._calls.news(name, text_of(frame, "call_id"))
        implicit, note = self._news(frame, match, args)
        return [
            *implicit,
            self._make(
                Approval,
                frame,
                note,
                call_id=match.call_id,
                args=args if isinstance(args, dict) else {},
            ),
        ]

    # The rest.

    def _usage(self, frame: Obj) -> list[Event]:
        step = counts_of(frame, PROMPT | {"cached": "cached_tokens"})
        self._total = added(self._total, step)
        return [self._make(Metric, frame, step=step, total=self._total)]

    def _state(self, frame: Obj) -> list[Event]:
        return [self._make(State, frame, kind=frame["type"], payload=frame.get("state"))]

    def _checkpoint(self, frame: Obj) -> list[Event]:
        return [self._make(State, frame, kind="checkpoint", payload=bare(frame))]

    def _custom(self, frame: Obj) -> list[Event]:
        return [
            self._make(Extension, frame, namespace=NAME, name="custom", payload=frame.get("value"))
        ]

    def _error(self, frame: Obj) -> list[Event]:
        if not isinstance(frame.get("error"), str):
            return self._unknown(frame)
        return [self._make(Error, frame, message=frame["error"])]

    def _unknown(self, frame: Obj) -> list[Event]:
        payload = bare(frame)
        if frame.get("type") == "got_expand" and "node_id" in frame:
            payload = {"node_id": frame["node_id"], **payload}
        return [
            self._make(
                Extension, frame, namespace=NAME, name=text_of(frame, "type"), payload=payload
            )
        ]

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
        "tool_call_chunk": _chunk,
        "tool_call": _call,
        "tool_start": _started,
        "tool_output": _output,
        "tool_end": _ended,
        "tool_approval": _approval,
        "error": _error,
    }
