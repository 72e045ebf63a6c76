"""Looopy's events of one task to ours (seed 004).

Rules
- `content-delta` streams a block, a thought parts it; `content-complete` belongs to the block that
  is open, is a block of its own where nothing was streamed, and an extension otherwise. One with
  other words than were streamed is the text anew (see `text`).
- Every status stays as a state; one that says how the task ended is told again as error, interrupt
  or `end`. The end itself comes with `task-complete`, or when the task is over without one.
- `internal:*` events are read like any other; a call that an internal event started or ended is not
  started or ended twice, and one that is told twice while it is open is one call. What is said
  twice is an extension.
"""

from __future__ import annotations

from collections import OrderedDict
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
from ..call_matching import Correlator
from ..losses import Losses
from ..passthrough import diff
from ..replies import Told
from ..run_builder import Source, arguments_of, text_of
from ..times import epoch
from ..usage import PROMPT, added, counts_of
from .lines import (
    DRAW,
    ENDED,
    NAME,
    SHIFTS,
    Obj,
    attributes,
    bare,
    draw_complete,
    draw_delta,
    state_word,
)

_REMEMBERED = 256


class Task:
    """One task, or the part of it that a sub-agent does (`span`)."""

    def __init__(self, losses: Losses, run: str, span: str = "") -> None:
        self.over = False
        prefix = f"{span}/" if span else ""
        self._source = Source(NAME, losses, SHIFTS, prefix)
        self._source.new_run(run)
        self._span = span
        self._calls = Correlator(prefix)
        self._begun: OrderedDict[str, None] = OrderedDict()  # calls that have started
        self._said = ""  # content since the last content-complete
        self._told = Told(span)
        self._requests = 0
        self._open_request = ""
        self._state = ""
        self._cause = ""
        self._total = Counts()
        self._ts = 0.0

    def read(self, obj: Obj) -> list[Event]:
        """Return the events of one object, whose `kind` is filled in."""
        kind = obj["kind"]
        self._ts = epoch(obj.get("timestamp"))
        before = (
            [] if kind in ("content-delta", "content-complete") else self._heard(self._closed())
        )
        return [*before, *self._heard(self.HANDLERS.get(kind, Task._unknown)(self, obj))]

    @property
    def waiting_for_end(self) -> bool:
        """True if a status has said how the task ended, and nothing more need come."""
        return self._state in ("completed", "failed", "canceled")

    def close(self) -> list[Event]:
        """The task is over: close what is open; end it if its status said how."""
        out = [*self._closed(incomplete=True), *self._end_request()]
        status = self._ended_how()
        if status and not self.over:
            out.append(self._derived(End, status=status))
        self.over = True
        return out

    def _where(self, obj: Obj) -> Obj:
        path = obj.get("path")
        text = "/".join(p for p in path if isinstance(p, str)) if isinstance(path, list) else ""
        return {"path": text, "span": self._span}

    def _make(self, cls: type[Any], obj: Obj, **fields: Any) -> Any:
        event = self._source.make(cls, ts=self._ts, **{**self._where(obj), **fields})
        return msgspec.structs.replace(event, extra={NAME: diff(obj, DRAW[cls](event))})

    def _derived(self, cls: type[Any], **fields: Any) -> Any:
        return self._source.derived(cls, ts=self._ts, **{"span": self._span, **fields})

    def _told_anew(self, text: str, rest: bool = False) -> Any:
        """Return a text that was not streamed, or the `rest` of one."""
        note = {"derived": True, **({"rest": True} if rest else {})}
        return self._source.make(Respond, note, content=text, ts=self._ts, span=self._span)

    def _heard(self, events: list[Event]) -> list[Event]:
        """Note what of the answer has been told."""
        for event in events:
            self._told.add(event)
        return events

    def _closed(self, note: Obj | None = None, *, incomplete: bool = False) -> list[Event]:
        return self._source.close(note, incomplete=incomplete)

    # The task.

    def _created(self, obj: Obj) -> list[Event]:
        metadata = obj.get("metadata")
        names = metadata if isinstance(metadata, dict) else {}
        return [
            self._make(
                RunStart, obj, agent=text_of(names, "agentId"), model=text_of(names, "model")
            )
        ]

    def _status(self, obj: Obj) -> list[Event]:
        payload = bare(obj)
        out: list[Event] = [self._make(State, obj, kind="status", payload=payload)]
        self._state, self._cause, words = state_word(payload)
        if self._state == "failed":
            out.append(self._derived(Error, message=words))
        elif self._state == "canceled":
            out.append(self._derived(Interrupt, reason=self._cause or "user", detail=words))
        return out

    def _ended_how(self) -> Any:
        """Return the end status that the newest state tells, "" if it tells none."""
        status = ENDED.get(self._state, "")
        return (
            "limit" if status == "interrupted" and self._cause in ("timeout", "limit") else status
        )

    def _complete_task(self, obj: Obj) -> list[Event]:
        out = self._end_request()
        text = text_of(obj, "content")
        if not self._told.knows(text):
            out.append(self._told_anew(*self._told.missing(text)))
        status = self._ended_how()
        status = "ok" if status in ("", "awaiting") else status
        self.over = True
        return [
            *out,
            self._make(End, obj, status=status, finish_reason=text_of(obj, "finishReason")),
        ]

    def _checkpoint(self, obj: Obj) -> list[Event]:
        return [self._make(State, obj, kind="checkpoint", payload=bare(obj))]

    # Words.

    def _delta(self, obj: Obj) -> list[Event]:
        text = obj.get("delta", obj.get("content"))
        if not isinstance(text, str):
            return [*self._closed(), *self._unknown(obj)]
        self._said += text
        return self._source.delta(
            "respond", text, obj, draw_delta(text), ts=self._ts, where=self._where(obj)
        )

    def _complete(self, obj: Obj) -> list[Event]:
        said, self._said = self._said, ""
        text = obj.get("content")
        note = {"complete": diff(obj, draw_complete(said))}
        if self._source.open_text is not None:
            out = self._closed(note)
        elif not said and isinstance(text, str) and text:
            whole = {"form": "whole", "complete": diff(obj, draw_complete(text))}
            out = [self._source.make(Respond, whole, content=text, ts=self._ts, **self._where(obj))]
        else:
            out = self._unknown(obj)
        if said and isinstance(text, str) and text.strip() not in ("", said.strip()):
            out.append(self._told_anew(text))
        return [*out, *self._end_request()]

    def _thought(self, obj: Obj) -> list[Event]:
        text = obj.get("content", obj.get("thought", ""))
        return [
            self._make(
                Think,
                obj,
                content=text if isinstance(text, str) else "",
                attributes=attributes(obj),
            )
        ]

    def _message(self, obj: Obj) -> list[Event]:
        message = obj.get("message")
        if (
            isinstance(message, dict)
            and message.get("role") == "user"
            and isinstance(message.get("content"), str)
        ):
            return [self._make(User, obj, content=message["content"])]
        return self._unknown(obj)

    # Tools.

    def _call(self, obj: Obj) -> list[Event]:
        name, given = text_of(obj, "toolName"), text_of(obj, "toolCallId")
        if self._calls.seen(given) == "open":
            return self._unknown(obj)
        args, raw = arguments_of(obj.get("arguments"))
        call_id, synthetic = self._calls.call(name, given)
        return [
            self._make(
                Call, obj, call_id=call_id, name=name, args=args, raw_args=raw, synthetic=synthetic
            )
        ]

    def _implicit(self, obj: Obj, call_id: str, *, wanted: bool) -> list[Event]:
        fields: Obj = {
            "name": text_of(obj, "toolName"),
            "args": arguments_of(obj.get("arguments", obj.get("toolArguments")))[0],
        }
        return (
            [
                self._derived(
                    Call, call_id=call_id, synthetic=not text_of(obj, "toolCallId"), **fields
                )
            ]
            if wanted
            else []
        )

    def _first_start(self, call_id: str) -> bool:
        """True the first time that a call is said to start."""
        if call_id in self._begun:
            return False
        self._begun[call_id] = None
        if len(self._begun) > _REMEMBERED:
            self._begun.popitem(last=False)
        return True

    def _started(self, obj: Obj) -> list[Event]:
        given = text_of(obj, "toolCallId")
        if self._calls.seen(given) == "over":
            return self._unknown(obj)
        match = self._calls.news(text_of(obj, "toolName"), given)
        if given and not self._first_start(match.call_id):
            return self._unknown(obj)
        implicit = self._implicit(obj, match.call_id, wanted=match.implicit)
        return [
            *implicit,
            self._make(Started, obj, call_id=match.call_id, name=text_of(obj, "toolName")),
        ]

    def _progress(self, obj: Obj) -> list[Event]:
        match = self._calls.news(text_of(obj, "toolName"), text_of(obj, "toolCallId"))
        implicit = self._implicit(obj, match.call_id, wanted=match.implicit)
        share, data = obj.get("progress"), obj.get("metadata")
        fraction = (
            float(share)
            if isinstance(share, int | float) and not isinstance(share, bool) and 0 <= share <= 1
            else None
        )
        fields: Obj = {
            "fraction": fraction,
            "message": text_of(obj, "message"),
            "data": data if isinstance(data, dict) else None,
        }
        return [*implicit, self._make(Progress, obj, call_id=match.call_id, **fields)]

    def _ended(self, obj: Obj) -> list[Event]:
        name, given = text_of(obj, "toolName"), text_of(obj, "toolCallId")
        if self._calls.seen(given) == "over":
            return self._unknown(obj)
        match = self._calls.result(name, given)
        implicit = self._implicit(obj, match.call_id, wanted=match.implicit)
        fine = obj.get("success") is not False and not (
            "success" not in obj and "error" in obj and "result" not in obj
        )
        content = obj.get("result" if fine else "error", obj.get("result", ""))
        metadata = obj.get("metadata")
        took = metadata.get("duration") if isinstance(metadata, dict) else None
        seconds = (
            took / 1000
            if isinstance(took, int | float) and not isinstance(took, bool) and took > 0
            else 0.0
        )
        fields: Obj = {
            "name": name,
            "status": "ok" if fine else "error",
            "content": content,
            "duration": seconds,
        }
        return [*implicit, self._make(Result, obj, call_id=match.call_id, **fields)]

    def _question(self, obj: Obj) -> list[Event]:
        match = self._calls.news(text_of(obj, "toolName"), text_of(obj, "toolCallId"))
        implicit = self._implicit(obj, match.call_id, wanted=match.implicit)
        args = obj.get("toolArguments")
        return [
            *implicit,
            self._make(
                Approval, obj, call_id=match.call_id, args=args if isinstance(args, dict) else {}
            ),
        ]

    # The rest.

    def _usage(self, obj: Obj) -> list[Event]:
        step = counts_of(obj, PROMPT | {"cached": "cache_read_input_tokens"})
        self._total = added(self._total, step)
        return [self._make(Metric, obj, step=step, total=self._total)]

    def _request(self, obj: Obj) -> list[Event]:
        out = self._end_request()
        self._requests += 1
        self._open_request = (
            f"{self._span}/llm-{self._requests}" if self._span else f"llm-{self._requests}"
        )
        fields: Obj = {
            "span": self._open_request,
            "parent": self._span,
            "data": {**bare(obj), "internal": True},
        }
        return [*out, self._make(Node, obj, name="llm", phase="enter", **fields)]

    def _end_request(self) -> list[Event]:
        span, self._open_request = self._open_request, ""
        data = {"internal": True}
        return (
            [
                self._derived(
                    Node,
                    name="llm",
                    phase="exit",
                    span=span,
                    parent=self._span,
                    result="ok",
                    data=data,
                )
            ]
            if span
            else []
        )

    def _unknown(self, obj: Obj) -> list[Event]:
        return [self._make(Extension, obj, namespace=NAME, name=obj["kind"], payload=bare(obj))]

    HANDLERS: ClassVar[dict[str, Callable[[Any, Obj], list[Event]]]] = {
        "task-created": _created,
        "task-status": _status,
        "task-complete": _complete_task,
        "content-delta": _delta,
        "content-complete": _complete,
        "thought-stream": _thought,
        "message": _message,
        "tool-call": _call,
        "tool-start": _started,
        "internal:tool-start": _started,
        "tool-progress": _progress,
        "tool-complete": _ended,
        "internal:tool-complete": _ended,
        "tool-input-required": _question,
        "llm-usage": _usage,
        "internal:llm-call": _request,
        "internal:checkpoint": _checkpoint,
    }
