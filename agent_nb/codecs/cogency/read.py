"""Read the lines of Cogency; see the package for its rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import msgspec

from ...events import (
    Call,
    End,
    Error,
    Event,
    Execute,
    Extension,
    Interrupt,
    Metric,
    Respond,
    Result,
    ResultStatus,
    Think,
    User,
)
from ..call_matching import Correlator
from ..framing import Item
from ..losses import Losses
from ..passthrough import diff
from ..run_builder import Source, arguments_of, run_id, text_of
from .lines import (
    NAME,
    OUTCOMES,
    STATUS,
    Obj,
    batch_line,
    draw,
    extension_line,
    parse,
    read_counts,
    time_of,
)

_STOPS = ("interrupt", "cancelled")


_TEXTS: dict[str, type[Event]] = {"user": User, "think": Think, "respond": Respond}


class CogencyReader:
    """Lines to events."""

    def __init__(self, losses: Losses) -> None:
        self._source = Source(NAME, losses)
        self._calls = Correlator()
        self._batch: list[str] = []
        self._runs = 0
        self._end: tuple[Obj, float, int] | None = None
        self._metrics = 0
        self._stopped = False  # the newest line but metrics was an interrupt

    def read(self, item: Item) -> list[Event]:
        """Return the events of one line."""
        obj = item.obj
        kind = obj.get("type")
        handler = (
            self.HANDLERS.get(kind, CogencyReader._unknown)
            if isinstance(kind, str)
            else CogencyReader._unknown
        )
        out: list[Event] = []
        over = self._end is not None and kind != "metric"
        if over:
            out += self._finish()
        if kind == "user" or over or not self._runs:
            self._new_run(obj)
        before = self._metrics
        out += handler(self, obj)
        self._stopped = kind in _STOPS or (self._stopped and kind in ("metric", "end"))
        self._metrics = before + 1 if kind == "metric" else 0
        return out

    def close(self) -> list[Event]:
        """Return the `end` that was held back."""
        return self._finish()

    def _new_run(self, obj: Obj) -> None:
        self._runs += 1
        self._source.new_run(run_id(NAME, obj, self._runs))
        self._calls.clear()
        self._batch = []

    def _finish(self) -> list[Event]:
        end, self._end = self._end, None
        if end is None:
            return []
        obj, ts, before = end
        note = {**diff(obj, {"type": "end"}), **({"held": before} if before else {})}
        return [
            self._source.make(End, note, ts=ts, status="interrupted" if self._stopped else "ok")
        ]

    def _make(self, cls: type[Any], obj: Obj, form: str = "", **fields: Any) -> Any:
        """Return the event, with what of `obj` its fields do not say."""
        event = self._source.make(cls, ts=time_of(obj), **fields)
        note: Obj = {**({"form": form} if form else {}), **diff(obj, draw(event, form))}
        return msgspec.structs.replace(event, extra={NAME: note})

    def _text(self, obj: Obj) -> list[Event]:
        return [self._make(_TEXTS[obj["type"]], obj, content=text_of(obj, "content"))]

    def _call(self, obj: Obj) -> list[Event]:
        given = obj.get("content")
        body = given if isinstance(given, dict) else parse(given)
        body = body if isinstance(body, dict) else {}
        args = body.get("args")
        name = text_of(body, "name")
        call_id, _ = self._calls.call(name)
        self._batch.append(call_id)
        raw = (
            arguments_of(args)[1]
            if isinstance(args, dict)
            else text_of(obj, "content")
            if not body
            else ""
        )
        fields: Obj = {
            "call_id": call_id,
            "synthetic": True,
            "name": name,
            "args": args if isinstance(args, dict) else {},
        }
        return [self._make(Call, obj, raw_args=raw, index=len(self._batch) - 1, **fields)]

    def _execute(self, obj: Obj) -> list[Event]:
        calls, self._batch = tuple(self._batch), []
        return [self._make(Execute, obj, calls=calls)]

    def _result(self, obj: Obj) -> list[Event]:
        payload, content = obj.get("payload"), obj.get("content")
        parsed = parse(content)
        items = (
            parsed
            if isinstance(parsed, list)
            else [parsed]
            if isinstance(parsed, dict) and "status" in parsed
            else content
        )
        if (
            isinstance(items, list)
            and items
            and all(isinstance(i, dict) and "tool" in i for i in items)
        ):
            return self._results(obj, items)
        if isinstance(payload, dict) and payload.keys() & {"outcome", "content", "error"}:
            return self._one(obj, "", payload)
        if isinstance(parsed, dict) and "content" in parsed:
            return self._one(obj, "stored", parsed)
        return self._one(obj, "text", {"content": content if isinstance(content, str) else ""})

    def _one(self, obj: Obj, form: str, body: Obj) -> list[Event]:
        call_id, name, implicit = self._ended("", obj)
        error, outcome = body.get("error"), body.get("outcome")
        status: ResultStatus = "error" if error else "ok"
        if isinstance(outcome, str) and (STATUS.get(outcome, "ok") == "ok") != bool(error):
            status = STATUS.get(outcome, status)
        content = body.get("content", error if isinstance(error, str) else "")
        display = (
            {"text/plain": outcome}
            if isinstance(outcome, str) and outcome not in (OUTCOMES[status], content)
            else None
        )
        fields: Obj = {"call_id": call_id, "content": content, "status": status, "display": display}
        return [*implicit, self._make(Result, obj, form, name=name, **fields)]

    def _results(self, obj: Obj, items: list[Obj]) -> list[Event]:
        out: list[Event] = []
        results: list[Result] = []
        for entry in items:
            call_id, name, implicit = self._ended(text_of(entry, "tool"), obj)
            word, outcome = entry.get("status"), entry.get("outcome")
            status = (
                "ok"
                if word == "success"
                else word
                if word in OUTCOMES and word != "ok"
                else "error"
            )
            display = {"text/plain": outcome} if isinstance(outcome, str) else None
            results.append(
                self._source.derived(
                    Result,
                    call_id=call_id,
                    name=name,
                    status=status,
                    content=entry.get("content", ""),
                    display=display,
                    ts=time_of(obj),
                )
            )
            out += [*implicit, results[-1]]
        note = {"batch": len(results), **diff(obj, batch_line(results))}
        first = msgspec.structs.replace(results[0], extra={NAME: note})
        return [first if event is results[0] else event for event in out]

    def _ended(self, name: str, obj: Obj) -> tuple[str, str, list[Event]]:
        """Return the id and tool of the call that ended, and the call itself where none had been
        seen.
        """
        calls = self._calls
        if name and calls.is_open(name):
            return calls.result(name).call_id, name, []
        if not name and (call_id := calls.oldest()):
            name = calls.name(call_id)
            calls.next()
            return call_id, name, []
        call_id = calls.result(name).call_id
        return (
            call_id,
            name,
            [
                self._source.derived(
                    Call, call_id=call_id, synthetic=True, name=name, ts=time_of(obj)
                )
            ],
        )

    def _metric(self, obj: Obj) -> list[Event]:
        return [
            self._make(
                Metric, obj, step=read_counts(obj.get("step")), total=read_counts(obj.get("total"))
            )
        ]

    def _error(self, obj: Obj) -> list[Event]:
        payload = obj.get("payload")
        if not isinstance(payload, dict):
            return [self._make(Error, obj, "text", message=text_of(obj, "content"))]
        tool = text_of(payload, "tool")
        call_id = self._calls.news(tool).call_id if self._calls.is_open(tool) else ""
        return [self._make(Error, obj, message=text_of(payload, "error"), call_id=call_id)]

    def _interrupt(self, obj: Obj) -> list[Event]:
        return [self._make(Interrupt, obj)]

    def _ended_run(self, obj: Obj) -> list[Event]:
        self._end = (obj, time_of(obj), self._metrics)
        return []

    def _unknown(self, obj: Obj) -> list[Event]:
        payload = {k: v for k, v in obj.items() if k not in ("type", "timestamp")}
        return [self._make_extension(obj, payload)]

    def _make_extension(self, obj: Obj, payload: Obj) -> Event:
        event = self._source.make(
            Extension, ts=time_of(obj), namespace=NAME, name=text_of(obj, "type"), payload=payload
        )
        return msgspec.structs.replace(event, extra={NAME: diff(obj, extension_line(event))})

    HANDLERS: ClassVar[dict[str, Callable[[Any, Obj], list[Event]]]] = {
        "user": _text,
        "think": _text,
        "respond": _text,
        "call": _call,
        "execute": _execute,
        "result": _result,
        "metric": _metric,
        "error": _error,
        "interrupt": _interrupt,
        "cancelled": _interrupt,
        "end": _ended_run,
    }
