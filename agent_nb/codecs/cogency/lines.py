"""Draws events as lines of Cogency, and reads the values in such lines (seed 000 § Event Schema).

    {"type": "result", "payload": {"outcome": "Success", "content": "12:40", "error": false}}

`DRAW` and `FORMS` hold the functions that return an event's fields; reader and writer handle the
timestamp. The reader compares what it draws with the original lines (`passthrough`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from ... import events
from ...wire import as_dict
from ..foreign_values import is_number
from ..passthrough import Shift
from ..times import read_epoch

NAME = "cogency"
Obj = dict[str, Any]
#: Status of a result -> its outcome (the text that people see), if the result has no text to show.
OUTCOMES: dict[events.ResultStatus, str] = {
    "ok": "Success",
    "error": "Error",
    "denied": "Denied",
    "cancelled": "Cancelled",
    "timeout": "Timeout",
}
STATUS = {word: status for status, word in OUTCOMES.items()}
#: The counts that this format has.
COUNTED = ("input", "output", "duration")


def _dumps(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _outcome(event: events.Result) -> Any:
    return (event.display or {}).get("text/plain", OUTCOMES[event.status])


def choose_outcome(event: events.Result) -> Any:
    """Return the outcome of a result of ours; for an error, its message without the traceback."""
    if event.status != "error":
        return _outcome(event)
    text_plain = (event.display or {}).get("text/plain")
    text = event.content
    if isinstance(text_plain, str) and text_plain.startswith("Traceback"):
        lines = text_plain.split("\n")
        frames = [n for n, line in enumerate(lines) if line.startswith((" ", "Traceback"))]
        text = "\n".join(lines[frames[-1] + 1 :])  # the message is below the last frame
    return text.strip() if isinstance(text, str) and text.strip() else OUTCOMES["error"]


def _draw_payload(event: events.Result) -> Obj:
    failed = event.status != "ok"
    return {"payload": {"outcome": _outcome(event), "content": event.content, "error": failed}}


def draw_counts(counts: events.Counts) -> Obj:
    """Draw the counts that this format has."""
    return {"input": counts.input, "output": counts.output, "duration": counts.duration}


def draw_batch(results: list[events.Result]) -> Obj:
    """Draw the results of one batch of calls as one line."""
    successes = sum(r.status == "ok" for r in results)
    counts = {
        "tools_executed": len(results),
        "success_count": successes,
        "failure_count": len(results) - successes,
    }
    entries = _dumps([_batch_entry(result) for result in results])
    return {"type": "result", "content": entries, "payload": counts}


def _batch_entry(event: events.Result) -> Obj:
    display = event.display or {}
    message = {"outcome": display["text/plain"]} if "text/plain" in display else {}
    return {
        "tool": event.name,
        "status": "success" if event.status == "ok" else event.status,
        **message,
        "content": event.content,
    }


#: Kind of event -> the function that draws the fields of its line besides type and timestamp.
DRAW: dict[type[events.Event], Callable[[Any], Obj]] = {
    **dict.fromkeys((events.User, events.Think, events.Respond), lambda e: {"content": e.content}),
    events.Call: lambda e: {"content": _dumps({"name": e.name, "args": e.args})},
    events.Result: _draw_payload,
    events.Metric: lambda e: {"step": draw_counts(e.step), "total": draw_counts(e.total)},
    events.Error: lambda e: {"payload": {"error": e.message}},
    # a line of a type that the reader does not know
    events.Extension: lambda e: {"type": e.name, **as_dict(e.payload)},
    **dict.fromkeys((events.Execute, events.End, events.Interrupt), lambda _: {}),
}
#: Other shapes of a line, by the `form` in its note: a result as it is stored; a result or an error
#: as plain text.
FORMS: dict[str, Callable[[Any], Obj]] = {
    "stored": lambda e: {"content": _dumps({"outcome": _outcome(e), "content": e.content})},
    "text": lambda e: {"content": e.message if isinstance(e, events.Error) else e.content},
}


def draw_piece(text: str) -> Obj:
    """Return the line of a piece of a thought without its timestamp."""
    return {"type": "think", "content": text}


#: Fields that grow from one piece of a thought to the next (see `passthrough`).
SHIFTS: dict[str, Shift] = {
    "timestamp": lambda at, _, ms: round(at + ms / 1000, 3) if is_number(at) else at
}


def draw_line(event: events.Event, form: str = "") -> Obj:
    """Return the line of an event without its timestamp."""
    return {"type": event.type, **FORMS.get(form, DRAW[type(event)])(event)}


def time_of(obj: Mapping[str, Any]) -> float:
    """Return the timestamp (epoch seconds, in whole milliseconds), 0 if it is not a time."""
    value = obj.get("timestamp")
    return read_epoch(value * 1000) if is_number(value) else 0.0


def read_counts(value: Any) -> events.Counts:
    """Return the counts that this format has, all 0 if one is invalid (the note keeps them)."""
    counts = {k: v for k, v in value.items() if k in COUNTED} if isinstance(value, dict) else {}
    try:
        return msgspec.convert(counts, events.Counts)
    except msgspec.ValidationError:
        return events.Counts()
