"""Draw events as lines of Cogency, and read the values in such lines (seed 000 § Event Schema).

Why: a line that was read is written as it came, so reader and writer share what we would write.

`DRAW` and `FORMS` hold the functions that return an event's fields as we would write them. Reader
and writer handle the timestamp.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from ...events import (
    Call,
    Counts,
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
from ..times import read_epoch

NAME = "cogency"
Obj = dict[str, Any]
#: Status of a result -> the outcome written if the result has no text to show.
OUTCOMES: dict[ResultStatus, str] = {
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


# One function for each kind: the fields of its line besides type and timestamp.


def _draw_content(event: Any) -> Obj:
    return {"content": event.content}


def _call(event: Call) -> Obj:
    return {"content": _dumps({"name": event.name, "args": event.args})}


def _outcome(event: Result) -> Any:
    return (event.display or {}).get("text/plain", OUTCOMES[event.status])


def choose_outcome(event: Result) -> Any:
    """Return the outcome of a result of ours; for an error, its message without the traceback."""
    if event.status != "error":
        return _outcome(event)
    text_plain = (event.display or {}).get("text/plain")
    text = event.content
    if isinstance(text_plain, str) and text_plain.startswith("Traceback"):
        lines = text_plain.split("\n")
        frames = [
            number for number, line in enumerate(lines) if line.startswith((" ", "Traceback"))
        ]
        text = "\n".join(lines[frames[-1] + 1 :])  # the message is below the last frame
    return text.strip() if isinstance(text, str) and text.strip() else OUTCOMES["error"]


def _draw_payload(event: Result) -> Obj:
    return {
        "payload": {
            "outcome": _outcome(event),
            "content": event.content,
            "error": event.status != "ok",
        }
    }


def _draw_stored(event: Result) -> Obj:
    return {"content": _dumps({"outcome": _outcome(event), "content": event.content})}


def draw_counts(counts: Counts) -> Obj:
    """Draw the counts that this format has."""
    return {"input": counts.input, "output": counts.output, "duration": counts.duration}


def _metric(event: Metric) -> Obj:
    return {"step": draw_counts(event.step), "total": draw_counts(event.total)}


def _error(event: Error) -> Obj:
    return {"payload": {"error": event.message}}


def _extension(event: Extension) -> Obj:
    """Draw a line whose type is not one of Cogency's ten."""
    return {"type": event.name, **(event.payload if isinstance(event.payload, dict) else {})}


def draw_batch(results: list[Result]) -> Obj:
    """Draw the results of one batch of calls as one line."""
    successes = sum(r.status == "ok" for r in results)
    counts = {
        "tools_executed": len(results),
        "success_count": successes,
        "failure_count": len(results) - successes,
    }
    return {
        "type": "result",
        "content": _dumps([_batch_entry(r) for r in results]),
        "payload": counts,
    }


def _batch_entry(event: Result) -> Obj:
    message = (
        {"outcome": event.display["text/plain"]}
        if event.display and "text/plain" in event.display
        else {}
    )
    return {
        "tool": event.name,
        "status": "success" if event.status == "ok" else event.status,
        **message,
        "content": event.content,
    }


DRAW: dict[type[Event], Callable[[Any], Obj]] = {
    User: _draw_content,
    Think: _draw_content,
    Respond: _draw_content,
    Call: _call,
    Result: _draw_payload,
    Metric: _metric,
    Error: _error,
    Extension: _extension,
    Execute: lambda _: {},
    End: lambda _: {},
    Interrupt: lambda _: {},
}
#: Other shapes of a line, by the `form` in its note: a result as it is stored, or as plain text.
FORMS: dict[str, Callable[[Any], Obj]] = {
    "stored": _draw_stored,
    "text": lambda e: {"content": e.message if isinstance(e, Error) else e.content},
}


def draw_piece(text: str) -> Obj:
    """Return the line of a piece of a thought without its timestamp."""
    return {"type": "think", "content": text}


def _shift_timestamp(value: Any, _lines: int, ms: int) -> Any:
    is_number = isinstance(value, float | int) and not isinstance(value, bool)
    return round(value + ms / 1000, 3) if is_number else value


#: Fields that grow from one piece of a thought to the next (see `passthrough`).
SHIFTS = {"timestamp": _shift_timestamp}


def draw_line(event: Event, form: str = "") -> Obj:
    """Return the line of an event without its timestamp."""
    return {"type": event.type, **FORMS.get(form, DRAW[type(event)])(event)}


def time_of(obj: Mapping[str, Any]) -> float:
    """Return the timestamp (epoch seconds, in whole milliseconds), 0 if it is not a time."""
    value = obj.get("timestamp")
    return (
        read_epoch(value * 1000)
        if isinstance(value, float | int) and not isinstance(value, bool)
        else 0.0
    )


def read_counts(value: Any) -> Counts:
    """Return the counts that this format has, all 0 if one is invalid (the note keeps them)."""
    counts = {k: v for k, v in value.items() if k in COUNTED} if isinstance(value, dict) else {}
    try:
        return msgspec.convert(counts, Counts)
    except msgspec.ValidationError:
        return Counts()
