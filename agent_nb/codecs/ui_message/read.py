"""Read the chunks of the UI message stream.

Rules
- A chunk that fits no open block or call is an extension, as it came.
- An input that broke off (`tool-input-error`) is an incomplete call; any other such error is also
  its result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import msgspec

from ...events import (
    Approval,
    Call,
    End,
    Error,
    Event,
    Extension,
    Interrupt,
    Node,
    Progress,
    Result,
    RunStart,
    State,
)
from .. import block_protocol
from ..block_protocol import Obj
from ..call_matching import Correlator
from ..framing import Item
from ..losses import Losses
from ..passthrough import diff
from ..run_builder import OpenBlock, Source, arguments_of, run_id, text_of
from .lines import CAUSES, CUT, DRAW, FORMS, NAME, TOOL, read_output


class UiMessageReader:
    """Chunks to events."""

    def __init__(self, losses: Losses) -> None:
        self._source = Source(NAME, losses)
        self._calls = Correlator()
        self._runs = 0
        self._begun = self._over = self._failed = False
        self._steps = 0
        self._step = ""

    def read(self, item: Item) -> list[Event]:
        """Return the events of one chunk."""
        obj = item.obj
        kind = obj.get("type")
        out: list[Event] = []
        if not self._runs or self._over or (kind == "start" and self._begun):
            out += self._close_run()
            self._begin(obj)
        self._begun = True
        handler = (
            self.HANDLERS.get(kind, UiMessageReader._unknown)
            if isinstance(kind, str)
            else UiMessageReader._unknown
        )
        return [*out, *handler(self, obj)]

    def close(self) -> list[Event]:
        """Close what the stream left open; a run that an error stopped has ended."""
        return self._close_run()

    def _begin(self, obj: Obj) -> None:
        self._runs += 1
        self._begun = self._over = self._failed = False
        self._step, self._steps = "", 0
        number = text_of(obj, "messageId") if obj.get("type") == "start" else ""
        self._source.new_run(number or run_id(NAME, obj, self._runs))
        self._calls.clear()

    def _close_open(self) -> list[Event]:
        out: list[Event] = []
        for block in self._source.open_calls():
            self._source.take_call(block.key)
            out.append(
                self._cut_call(block)
                if block.of == "call"
                else block_protocol.ended_as_cut(self._source, block)
            )
        return out

    def _close_run(self) -> list[Event]:
        out = self._close_open()
        if self._failed and not self._over:
            out.append(self._source.derived(End, status="error"))
            self._over = True
        return out

    def _cut_call(self, block: OpenBlock) -> Event:
        call_id = block.key.partition(":")[2]
        return block_protocol.completed(self._source, block, {}, incomplete=True, call_id=call_id)

    def _make(self, cls: type[Any], obj: Obj, **fields: Any) -> Any:
        event = self._source.make(cls, **fields)
        return msgspec.structs.replace(event, extra={NAME: diff(obj, DRAW[cls](event))})

    # The run.

    def _start(self, obj: Obj) -> list[Event]:
        return [self._make(RunStart, obj)]

    def _finish(self, obj: Obj) -> list[Event]:
        out = self._close_open()
        reason = text_of(obj, "finishReason")
        self._over = True
        status = "error" if self._failed or reason == "error" else "ok"
        return [
            *out,
            self._make(End, obj, status=status, finish_reason="" if reason == "error" else reason),
        ]

    def _abort(self, obj: Obj) -> list[Event]:
        out = self._close_open()
        self._over = True
        reason = text_of(obj, "reason")
        cause = reason if reason in CAUSES else "user"
        why = self._source.derived(
            Interrupt, reason=cause, detail=reason if reason != cause else ""
        )
        return [*out, why, self._make(End, obj, status="interrupted")]

    def _error(self, obj: Obj) -> list[Event]:
        self._failed = True
        return [self._make(Error, obj, message=text_of(obj, "errorText"))]

    def _on_step(self, obj: Obj) -> list[Event]:
        enter = obj["type"] == "start-step"
        self._steps += enter
        if enter or not self._step:
            self._step = f"step-{self._steps}"
        fields: Obj = {"name": "llm", "span": self._step, "data": {"internal": True}}
        return [
            self._make(
                Node,
                obj,
                phase="enter" if enter else "exit",
                result="" if enter else "ok",
                **fields,
            )
        ]

    def _metadata(self, obj: Obj) -> list[Event]:
        return [self._make(State, obj, kind="metadata", payload=obj.get("messageMetadata"))]

    # Blocks.

    def _open(self, obj: Obj) -> list[Event]:
        form = FORMS[obj["type"]]
        if form is TOOL:
            self._calls.call(text_of(obj, "toolName"), text_of(obj, "toolCallId"))
        return block_protocol.opened(
            self._source, form, obj, of=form.of, name=text_of(obj, "toolName"), where={}
        )

    def _content(self, obj: Obj) -> list[Event]:
        form = FORMS[obj["type"]]
        known = self._source.block(f"{form.start}:{text_of(obj, form.id)}") is not None
        if not isinstance(obj.get(form.text), str) or (form is TOOL and not known):
            return self._unknown(obj)
        return block_protocol.continued(self._source, form, obj, where={})

    def _end(self, obj: Obj) -> list[Event]:
        block, note = block_protocol.taken(self._source, FORMS[obj["type"]], obj)
        return (
            [block_protocol.completed(self._source, block, note)]
            if block is not None
            else self._unknown(obj)
        )

    def _call(self, obj: Obj) -> list[Event]:
        """The input of a call is there, whole; with `tool-input-error` it is not what the tool
        takes.
        """
        given, name, args = text_of(obj, "toolCallId"), text_of(obj, "toolName"), obj.get("input")
        call_id, synthetic = self._calls.call(name, given)
        fields: Obj = {
            "call_id": call_id,
            "name": name,
            "args": args if isinstance(args, dict) else {},
            "synthetic": synthetic,
        }
        block = self._source.take_call(f"{TOOL.start}:{given}")
        failed = obj["type"] == "tool-input-error"
        if block is None:
            raw = (
                args
                if failed and isinstance(args, str)
                else arguments_of(args)[1]
                if isinstance(args, dict)
                else ""
            )
            call = self._source.make(
                Call, incomplete=failed and not isinstance(args, dict), raw_args=raw, **fields
            )
        else:
            call = block_protocol.completed(self._source, block, {}, **fields)  # type: ignore[assignment]  # a call, as its block is one
        note = {**(call.extra or {}).get(NAME, {}), "call": diff(obj, DRAW[Call](call))}
        out: list[Event] = [msgspec.structs.replace(call, extra={NAME: note})]
        if failed and text_of(obj, "errorText") != CUT:
            self._calls.result(name, call_id)
            out.append(
                self._source.derived(
                    Result,
                    call_id=call_id,
                    name=name,
                    status="error",
                    content=text_of(obj, "errorText"),
                )
            )
        return out

    # Outputs.

    def _output(self, obj: Obj) -> list[Event]:
        if obj.get("preliminary") is True and obj["type"] == "tool-output-available":
            match = self._calls.news("", text_of(obj, "toolCallId"))
            return [
                *self._implicit(match.call_id, obj, wanted=match.implicit),
                self._report(obj, match.call_id),
            ]
        given = text_of(obj, "toolCallId")
        if self._calls.seen(given) == "over":
            return self._unknown(obj)
        name = self._calls.name(given)
        match = self._calls.result(name, given)
        status, content = _OUTPUTS[obj["type"]](obj)
        fields: Obj = {"call_id": match.call_id, "name": name, "status": status, "content": content}
        return [
            *self._implicit(match.call_id, obj, wanted=match.implicit),
            self._make(Result, obj, **fields),
        ]

    def _report(self, obj: Obj, call_id: str) -> Event:
        event: Event = self._make(Progress, obj, call_id=call_id, **read_output(obj.get("output")))
        return event

    def _approval(self, obj: Obj) -> list[Event]:
        match = self._calls.news("", text_of(obj, "toolCallId"))
        return [
            *self._implicit(match.call_id, obj, wanted=match.implicit),
            self._make(Approval, obj, call_id=match.call_id),
        ]

    def _implicit(self, call_id: str, obj: Obj, *, wanted: bool) -> list[Event]:
        synthetic = not text_of(obj, "toolCallId")
        return [self._source.derived(Call, call_id=call_id, synthetic=synthetic)] if wanted else []

    def _unknown(self, obj: Obj) -> list[Event]:
        payload = {k: v for k, v in obj.items() if k != "type"}
        return [
            self._make(Extension, obj, namespace=NAME, name=text_of(obj, "type"), payload=payload)
        ]

    HANDLERS: ClassVar[dict[str, Callable[[Any, Obj], list[Event]]]] = {
        "start": _start,
        "finish": _finish,
        "abort": _abort,
        "error": _error,
        "start-step": _on_step,
        "finish-step": _on_step,
        "message-metadata": _metadata,
        "text-start": _open,
        "text-delta": _content,
        "text-end": _end,
        "reasoning-start": _open,
        "reasoning-delta": _content,
        "reasoning-end": _end,
        "tool-input-start": _open,
        "tool-input-delta": _content,
        "tool-input-available": _call,
        "tool-input-error": _call,
        "tool-output-available": _output,
        "tool-output-error": _output,
        "tool-output-denied": _output,
        "tool-approval-request": _approval,
    }


_OUTPUTS: dict[str, Callable[[Obj], tuple[str, Any]]] = {
    "tool-output-available": lambda o: ("ok", o.get("output", "")),
    "tool-output-error": lambda o: ("error", text_of(o, "errorText")),
    "tool-output-denied": lambda _: ("denied", ""),
}
