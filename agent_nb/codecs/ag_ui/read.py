"""Read AG-UI's events.

Rules
- A line closes the text that `…_CHUNK` lines opened, unless it continues it.
- A result of a call that is over already is an extension.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any, ClassVar

import msgspec

from ...events import (
    Call,
    Counts,
    End,
    Error,
    Event,
    Extension,
    Interrupt,
    Metric,
    Node,
    Respond,
    Result,
    RunStart,
    State,
    User,
)
from .. import block_protocol
from ..block_protocol import Obj
from ..call_matching import Correlator
from ..framing import Item
from ..losses import Losses
from ..passthrough import diff
from ..run_builder import Source, run_id, text_of
from ..times import epoch
from ..usage import added, counts_of
from .incoming import camel, said
from .lines import DRAW, FORMS, NAME, OUTCOMES, REASONING, STATES, TEXT, TOOL

_STATUS = {outcome: status for status, outcome in OUTCOMES.items()}


_KINDS = {kind: state for state, kind in STATES.items()}


_USAGE = {
    "input": "inputTokens",
    "output": "outputTokens",
    "cached": "cachedInputTokens",
    "reasoning": "reasoningTokens",
    "total": "totalTokens",
}


_SNAPSHOTS = {"STATE_SNAPSHOT": "snapshot", "STATE_DELTA": "delta", "MESSAGES_SNAPSHOT": "messages"}


class AgUiReader:
    """Events of the wire to ours."""

    def __init__(self, losses: Losses) -> None:
        self._source = Source(NAME, losses)
        self._calls = Correlator()
        self._runs = 0
        self._begun = False
        self._over = False
        self._asked = self._spoken = False  # a message of the user, some text has come
        self._answer = ""  # in the newest snapshot

    def read(self, item: Item) -> list[Event]:
        """Return the events of one object."""
        obj = camel(item.obj)
        kind = obj.get("type")
        out: list[Event] = []
        if not self._runs or self._over or (kind == "RUN_STARTED" and self._begun):
            out += self._close_open()
            self._begin(obj)
        self._begun = True
        if not isinstance(kind, str) or kind not in _CHUNKS:
            out += self._source.close()
        handler = (
            self.HANDLERS.get(kind, AgUiReader._unknown)
            if isinstance(kind, str)
            else AgUiReader._unknown
        )
        out += handler(self, obj)
        self._asked = self._asked or any(isinstance(event, User) for event in out)
        self._spoken = self._spoken or any(
            isinstance(event, Respond) and event.content.strip() for event in out
        )
        return out

    def close(self) -> list[Event]:
        """Close what the stream left open."""
        return self._close_open()

    def _begin(self, obj: Obj) -> None:
        self._runs += 1
        self._over = self._begun = self._asked = self._spoken = False
        self._answer = ""
        self._source.new_run(text_of(obj, "runId") or run_id(NAME, obj, self._runs))
        self._calls.clear()

    def _close_open(self) -> list[Event]:
        cut = self._source.close(incomplete=True)
        for block in self._source.open_calls():
            self._source.take_call(block.key)
            cut.append(
                self._call_of(block, {}, incomplete=True)
                if block.of == "call"
                else block_protocol.ended_as_cut(self._source, block)
            )
        return cut

    def _make(self, cls: type[Any], obj: Obj, **fields: Any) -> Any:
        event = self._source.make(
            cls, ts=epoch(obj.get("timestamp")), **{**self._where(obj), **fields}
        )
        return msgspec.structs.replace(event, extra={NAME: diff(obj, DRAW[cls](event))})

    def _where(self, obj: Obj) -> Obj:
        span = text_of(obj, "subagentRunId")
        return {"span": span} if span else {}

    # The run.

    def _started(self, obj: Obj) -> list[Event]:
        return [self._make(RunStart, obj)]

    def _finished(self, obj: Obj) -> list[Event]:
        out = [*self._close_open(), *self._usage(obj)]
        outcome = obj.get("outcome")
        kind = outcome.get("type") if isinstance(outcome, dict) else None
        status = _STATUS.get(kind, "ok") if isinstance(kind, str) else "ok"
        if status == "interrupted":
            out.append(self._source.derived(Interrupt))
        self._over = True
        return [*out, *self._unspoken(out), self._make(End, obj, status=status)]

    def _unspoken(self, out: list[Event]) -> list[Event]:
        """Return the answer that only a snapshot tells."""
        spoken = self._spoken or any(isinstance(event, Respond) for event in out)
        return (
            [self._source.derived(Respond, content=self._answer)]
            if self._answer and not spoken
            else []
        )

    def _failed(self, obj: Obj) -> list[Event]:
        out = [*self._close_open(), *self._usage(obj)]
        self._over = True
        error = self._make(Error, obj, message=text_of(obj, "message"), code=text_of(obj, "code"))
        return [*out, *self._unspoken(out), error, self._source.derived(End, status="error")]

    def _usage(self, obj: Obj) -> list[Event]:
        """Return the usage that the end of a run tells, as a metric of its own."""
        given = obj.get("usage")
        totals = [u for u in given if isinstance(u, dict)] if isinstance(given, list) else []
        if not totals:
            return []
        total = reduce(added, (counts_of(u, _USAGE) for u in totals), Counts())
        return [self._source.derived(Metric, step=total, total=total)]

    # Blocks.

    def _text_start(self, obj: Obj) -> list[Event]:
        of = {"user": "user", "assistant": "respond"}.get(str(obj.get("role", "assistant")), "")
        if not of:
            return self._unknown(obj)
        return self._open(TEXT, obj, of)

    def _reasoning_start(self, obj: Obj) -> list[Event]:
        return self._open(REASONING, obj, "think")

    def _call_start(self, obj: Obj) -> list[Event]:
        self._calls.call(text_of(obj, "toolCallName"), text_of(obj, "toolCallId"))
        return self._open(TOOL, obj, "call", name=text_of(obj, "toolCallName"))

    def _open(self, form: block_protocol.Form, obj: Obj, of: str, name: str = "") -> list[Event]:
        return block_protocol.opened(
            self._source,
            form,
            obj,
            of=of,
            name=name,
            ts=epoch(obj.get("timestamp")),
            where=self._where(obj),
        )

    def _content(self, obj: Obj) -> list[Event]:
        form = FORMS[obj["type"]]
        known = self._source.block(f"{form.start}:{text_of(obj, form.id)}") is not None
        if not isinstance(obj.get(form.text), str) or (form is TOOL and not known):
            return self._unknown(obj)
        return block_protocol.continued(
            self._source, form, obj, ts=epoch(obj.get("timestamp")), where=self._where(obj)
        )

    def _end(self, obj: Obj) -> list[Event]:
        form = FORMS[obj["type"]]
        block, note = block_protocol.taken(self._source, form, obj)
        if block is None:
            return self._unknown(obj)
        return [
            self._call_of(block, note)
            if block.of == "call"
            else block_protocol.completed(self._source, block, note)
        ]

    def _call_of(self, block: Any, note: Obj, *, incomplete: bool = False) -> Event:
        call_id = self._calls.own(block.key.partition(":")[2])
        return block_protocol.completed(
            self._source, block, note, incomplete=incomplete, call_id=call_id
        )

    def _chunk(self, obj: Obj) -> list[Event]:
        of = _CHUNKS[obj["type"]]
        text, form = obj.get("delta"), TEXT if of == "respond" else REASONING
        if not isinstance(text, str) or obj.get("role", "assistant") != "assistant":
            return [*self._source.close(), *self._unknown(obj)]
        drawn = {"type": form.delta, form.text: text}
        key, ts = text_of(obj, "messageId"), epoch(obj.get("timestamp"))
        return self._source.delta(
            of, text, obj, drawn, key=key or self._last_key(of), ts=ts, where=self._where(obj)
        )

    def _last_key(self, of: str) -> str:
        block = self._source.open_text
        return block.key if block is not None and block.of == of else ""

    # The rest.

    def _result(self, obj: Obj) -> list[Event]:
        given = text_of(obj, "toolCallId")
        if self._calls.seen(given) == "over":
            return self._unknown(obj)
        name = self._calls.name(given)
        out: list[Event] = []
        for block in [self._source.take_call(f"{TOOL.start}:{given}")]:
            out += [self._call_of(block, {})] if block is not None else []
        match = self._calls.result(name, given)
        if match.implicit:
            out.append(
                self._source.derived(
                    Call, call_id=match.call_id, synthetic=not given, **self._where(obj)
                )
            )
        return [
            *out,
            self._make(
                Result, obj, call_id=match.call_id, name=name, content=obj.get("content", "")
            ),
        ]

    def _step(self, obj: Obj) -> list[Event]:
        phase, name = (
            ("enter" if obj["type"] == "STEP_STARTED" else "exit"),
            text_of(obj, "stepName"),
        )
        fields: Obj = {
            "name": name,
            "phase": phase,
            "span": f"step-{name}",
            "result": "" if phase == "enter" else "ok",
        }
        return [self._make(Node, obj, **fields)]

    def _subagent(self, obj: Obj) -> list[Event]:
        enter = obj["type"] == "SUBAGENT_STARTED"
        words = text_of(obj, "message")
        result = "" if enter else f"error: {words}" if obj["type"] == "SUBAGENT_ERROR" else "ok"
        fields: Obj = {
            "name": text_of(obj, "name"),
            "phase": "enter" if enter else "exit",
            "result": result,
            "data": {"subagent": True},
        }
        return [self._make(Node, obj, **fields)]

    def _state(self, obj: Obj) -> list[Event]:
        kind = _SNAPSHOTS[obj["type"]]
        state = self._make(
            State, obj, kind=kind, payload=obj.get(_KINDS[kind]) if kind in _KINDS else None
        )
        if kind != "messages" or state.span:
            return [state]
        prompt, self._answer = said(obj.get("messages"))
        return (
            [state, self._source.derived(User, content=prompt)]
            if prompt and not self._asked
            else [state]
        )

    def _unknown(self, obj: Obj) -> list[Event]:
        payload = {k: v for k, v in obj.items() if k != "type"}
        return [
            self._make(Extension, obj, namespace=NAME, name=text_of(obj, "type"), payload=payload)
        ]

    HANDLERS: ClassVar[dict[str, Callable[[Any, Obj], list[Event]]]] = {
        "RUN_STARTED": _started,
        "RUN_FINISHED": _finished,
        "RUN_ERROR": _failed,
        "TEXT_MESSAGE_START": _text_start,
        "TEXT_MESSAGE_CONTENT": _content,
        "TEXT_MESSAGE_END": _end,
        "TEXT_MESSAGE_CHUNK": _chunk,
        "REASONING_MESSAGE_START": _reasoning_start,
        "REASONING_MESSAGE_CONTENT": _content,
        "REASONING_MESSAGE_END": _end,
        "REASONING_MESSAGE_CHUNK": _chunk,
        "TOOL_CALL_START": _call_start,
        "TOOL_CALL_ARGS": _content,
        "TOOL_CALL_END": _end,
        "TOOL_CALL_RESULT": _result,
        "STEP_STARTED": _step,
        "STEP_FINISHED": _step,
        "SUBAGENT_STARTED": _subagent,
        "SUBAGENT_FINISHED": _subagent,
        "SUBAGENT_ERROR": _subagent,
        "STATE_SNAPSHOT": _state,
        "STATE_DELTA": _state,
        "MESSAGES_SNAPSHOT": _state,
    }


_CHUNKS = {"TEXT_MESSAGE_CHUNK": "respond", "REASONING_MESSAGE_CHUNK": "think"}
