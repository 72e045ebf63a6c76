"""Reads the lines of Cogency (rules: the package's docstring).

The reader holds back two kinds of line: an `end` until a line other than a metric comes, because
metrics may follow it, and the first line of a thought until the next line or `tick`, because a
thought of one line needs no deltas.
"""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec

from ... import events
from ...events import Event
from ...wire import as_dict
from ..blocks import Blocks
from ..call_matching import CallMatcher
from ..foreign_values import parse_json, run_id, text_of, text_of_arguments
from ..framing import Item
from ..losses import Losses
from ..passthrough import note_difference
from ..run_builder import LineHandlers, RunBuilder
from . import lines
from .lines import NAME, SHIFTS, Obj

_INTERRUPTS = ("interrupt", "cancelled")
_TEXTS: dict[str, type[Event]] = {"user": events.User, "respond": events.Respond}
# status in an entry of a batch -> ours
_BATCH_STATUS: dict[str, events.ResultStatus] = {
    "success": "ok",
    **{status: status for status in lines.OUTCOMES if status != "ok"},
}


class CogencyReader:
    """Reads any number of runs, one after the other."""

    def __init__(self, _losses: Losses) -> None:
        self._run = RunBuilder(
            NAME,
            lines.draw_line,
            lambda obj: {"ts": lines.time_of(obj)},
            lambda obj: {k: v for k, v in obj.items() if k not in ("type", "timestamp")},
        )
        self._thoughts = Blocks(self._run, SHIFTS)
        self._first_line: Obj | None = None  # the first line of a thought, until the next line
        self._calls = CallMatcher()
        self._batch: list[str] = []  # our ids of the calls since the last `execute`
        self._runs = 0
        # the line of the end, and the number of metric lines directly before it
        self._held_end: tuple[Obj, int] | None = None
        self._metric_count = 0  # the number of metric lines directly before the current line
        self._interrupted = False  # the newest line, metrics and `end` aside, is an interrupt

    def read(self, item: Item) -> list[Event]:
        """Return the events of one line."""
        obj = item.obj
        kind = obj.get("type")
        out = self._close_thought() if kind != "think" else []
        ends_run = self._held_end is not None and kind != "metric"
        if ends_run:
            out += self._release_end()
        if kind == "user" or ends_run or not self._runs:
            self._new_run(obj)
        metrics_before = self._metric_count
        out += self._run.read_line(self, obj)
        self._interrupted = kind in _INTERRUPTS or (self._interrupted and kind in ("metric", "end"))
        self._metric_count = metrics_before + 1 if kind == "metric" else 0
        return out

    def close(self) -> list[Event]:
        """Return the thought that is open, and the `end` that was held back."""
        return [*self._close_thought(incomplete=True), *self._release_end()]

    def tick(self, _now: float) -> list[Event]:
        """Return the held first line of a thought as a delta, so that a viewer sees it now."""
        return self._begin_pieces()

    def _new_run(self, obj: Obj) -> None:
        self._runs += 1
        self._run.new_run(run_id(NAME, obj, self._runs))
        self._calls.clear()
        self._batch = []

    def _release_end(self) -> list[Event]:
        """Return the end that was held back for its metrics, if any."""
        if self._held_end is None:
            return []
        (obj, metric_count), self._held_end = self._held_end, None
        note: Obj = note_difference(obj, {"type": "end"})
        if metric_count:
            note["held"] = metric_count
        status = "interrupted" if self._interrupted else "ok"
        return [self._run.make(events.End, note, ts=lines.time_of(obj), status=status)]

    def _text(self, obj: Obj) -> list[Event]:
        return [self._run.line(_TEXTS[obj["type"]], obj, content=text_of(obj, "content"))]

    def _think(self, obj: Obj) -> list[Event]:
        if self._first_line is None and self._thoughts.open_text is None:
            self._first_line = obj
            return []
        return [*self._begin_pieces(), *self._read_piece(obj)]

    def _begin_pieces(self) -> list[Event]:
        """Return the held first line of a thought as its first delta; [] if none is held."""
        first_line, self._first_line = self._first_line, None
        return self._read_piece(first_line) if first_line is not None else []

    def _read_piece(self, obj: Obj) -> list[Event]:
        text = text_of(obj, "content")
        return self._thoughts.add_text("think", text, obj, lines.draw_piece(text))

    def _close_thought(self, *, incomplete: bool = False) -> list[Event]:
        """Return the thought that ends here; a thought of a single line has no deltas."""
        first_line, self._first_line = self._first_line, None
        if first_line is not None:
            content = text_of(first_line, "content")
            return [self._run.line(events.Think, first_line, content=content)]
        return self._thoughts.close_text(incomplete=incomplete)

    def _call(self, obj: Obj) -> list[Event]:
        """Read a call; content that is not a JSON object becomes the text of its arguments."""
        content = obj.get("content")
        body = as_dict(content if isinstance(content, dict) else parse_json(content))
        args, raw = body.get("args"), ""
        if isinstance(args, dict):
            raw = text_of_arguments(args)
        elif not body:
            raw = text_of(obj, "content")
        name = text_of(body, "name")
        call_id, _ = self._calls.open_call(name)
        self._batch.append(call_id)
        fields: Obj = {"call_id": call_id, "synthetic": True, "name": name, "args": as_dict(args)}
        fields |= {"raw_args": raw, "index": len(self._batch) - 1}
        return [self._run.line(events.Call, obj, **fields)]

    def _execute(self, obj: Obj) -> list[Event]:
        calls, self._batch = tuple(self._batch), []
        return [self._run.line(events.Execute, obj, calls=calls)]

    def _result(self, obj: Obj) -> list[Event]:
        """Read a result in any shape of the format's history: a batch, a payload, JSON, text."""
        payload, stored = obj.get("payload"), parse_json(obj.get("content"))
        entries = _read_batch(obj.get("content"), stored)
        if entries:
            return self._batch_results(obj, entries)
        if isinstance(payload, dict) and payload.keys() & {"outcome", "content", "error"}:
            return self._single_result(obj, "", payload)
        if isinstance(stored, dict) and "content" in stored:
            return self._single_result(obj, "stored", stored)
        return self._single_result(obj, "text", {"content": text_of(obj, "content")})

    def _single_result(self, obj: Obj, form: str, body: Obj) -> list[Event]:
        """Read the result of one call; `body` holds outcome, content and error."""
        call, implicit = self._end_call("", obj)
        error, outcome = body.get("error"), body.get("outcome")
        status: events.ResultStatus = "error" if error else "ok"
        content = body.get("content", error if isinstance(error, str) else "")
        display = None
        if isinstance(outcome, str):
            # the outcome names the status more exactly, unless it contradicts the error
            if (lines.STATUS.get(outcome, "ok") == "ok") != bool(error):
                status = lines.STATUS.get(outcome, status)
            if outcome not in (lines.OUTCOMES[status], content):
                display = {"text/plain": outcome}
        fields: Obj = {**call, "content": content, "status": status, "display": display}
        return [*implicit, self._shaped_line(events.Result, obj, form, **fields)]

    def _shaped_line(self, cls: type[Event], obj: Obj, form: str, **fields: Any) -> Event:
        """Return the event of a line whose shape is `form` (see `lines.FORMS`)."""
        note = {"form": form} if form else {}
        return self._run.line(
            cls, obj, note, draw=lambda event: lines.draw_line(event, form), **fields
        )

    def _batch_results(self, obj: Obj, entries: list[Obj]) -> list[Event]:
        """Read the results of a batch; the note of the first one restores their common line."""
        out: list[Event] = []
        results: list[events.Result] = []
        for entry in entries:
            call, implicit = self._end_call(text_of(entry, "tool"), obj)
            outcome = entry.get("outcome")
            fields: Obj = {
                **call,
                "status": _BATCH_STATUS.get(text_of(entry, "status"), "error"),
                "content": entry.get("content", ""),
                "display": {"text/plain": outcome} if isinstance(outcome, str) else None,
                "ts": lines.time_of(obj),
            }
            results.append(self._run.derived(events.Result, **fields))
            out += [*implicit, results[-1]]
        note = {"batch": len(results), **note_difference(obj, lines.draw_batch(results))}
        first = msgspec.structs.replace(results[0], extra={NAME: note})
        return [first if event is results[0] else event for event in out]

    def _end_call(self, tool: str, obj: Obj) -> tuple[Obj, list[Event]]:
        """End the oldest open call to `tool` ("": to any tool); return its `call_id` and `name`.

        The second item is the call itself if no line opened it.
        """
        name = tool or self._calls.tool_of(self._calls.oldest())
        match = self._calls.match_result(name)
        implicit = self._run.implicit_call(match, "", name=name, ts=lines.time_of(obj))
        return {"call_id": match.call_id, "name": name}, implicit

    def _metric(self, obj: Obj) -> list[Event]:
        step, total = lines.read_counts(obj.get("step")), lines.read_counts(obj.get("total"))
        return [self._run.line(events.Metric, obj, step=step, total=total)]

    def _error(self, obj: Obj) -> list[Event]:
        payload = obj.get("payload")
        if not isinstance(payload, dict):
            return [self._shaped_line(events.Error, obj, "text", message=text_of(obj, "content"))]
        tool = text_of(payload, "tool")
        call_id = self._calls.match_line(tool).call_id if self._calls.is_open(tool) else ""
        message = text_of(payload, "error")
        return [self._run.line(events.Error, obj, message=message, call_id=call_id)]

    def _hold_end(self, obj: Obj) -> list[Event]:
        self._held_end = (obj, self._metric_count)
        return []

    #: Type of an object -> the method that reads it; an object of any other type is an extension.
    HANDLERS: ClassVar[LineHandlers] = {
        "user": _text,
        "think": _think,
        "respond": _text,
        "call": _call,
        "execute": _execute,
        "result": _result,
        "metric": _metric,
        "error": _error,
        **dict.fromkeys(_INTERRUPTS, lambda self, obj: [self._run.line(events.Interrupt, obj)]),
        "end": _hold_end,
    }


def _read_batch(content: Any, stored: Any) -> list[Obj]:
    """Return the entries of a batch, [] if it is none; `stored`: the JSON value of a text."""
    entries = stored if isinstance(stored, list) else content
    if isinstance(stored, dict) and "status" in stored:
        entries = [stored]  # a batch of one call
    is_batch = isinstance(entries, list) and all(
        isinstance(entry, dict) and "tool" in entry for entry in entries
    )
    return entries if is_batch else []
