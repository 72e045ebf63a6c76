"""How the lines of Cogency look: each event on the wire, and the values in it that need reading
(seed 000 § Event Schema).

Rules: pure functions of one event or value, without the timestamp, which the reader and the writer
handle.
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
#: The outcome that only repeats the status.
OUTCOMES: dict[ResultStatus, str] = {
    "ok": "Success",
    "error": "Error",
    "denied": "Denied",
    "cancelled": "Cancelled",
    "timeout": "Timeout",
}
STATUS = {word: status for status, word in OUTCOMES.items()}
COUNTED = ("input", "output", "duration")


def _dumps(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


# What a line holds beside type and timestamp, from the event alone.


def _content(event: Any) -> Obj:
    return {"content": event.content}


def _call(event: Call) -> Obj:
    return {"content": _dumps({"name": event.name, "args": event.args})}


def _outcome(event: Result) -> Any:
    return (event.display or {}).get("text/plain", OUTCOMES[event.status])


def own_outcome(event: Result) -> Any:
    """Return the outcome of our result: for a failure the error's message, not its traceback."""
    if event.status != "error":
        return _outcome(event)
    shown = (event.display or {}).get("text/plain")
    text = event.content
    if isinstance(shown, str) and shown.startswith("Traceback"):
        lines = shown.split("\n")
        frames = [
            number for number, line in enumerate(lines) if line.startswith((" ", "Traceback"))
        ]
        text = "\n".join(lines[frames[-1] + 1 :])
    return text.strip() if isinstance(text, str) and text.strip() else OUTCOMES["error"]


def _payload(event: Result) -> Obj:
    return {
        "payload": {
            "outcome": _outcome(event),
            "content": event.content,
            "error": event.status != "ok",
        }
    }


def _stored(event: Result) -> Obj:
    return {"content": _dumps({"outcome": _outcome(event), "content": event.content})}


def counts_of(counts: Counts) -> Obj:
    """Write the counts that this wire has."""
    return {"input": counts.input, "output": counts.output, "duration": counts.duration}


def _metric(event: Metric) -> Obj:
    return {"step": counts_of(event.step), "total": counts_of(event.total)}


def _error(event: Error) -> Obj:
    return {"payload": {"error": event.message}}


def extension_line(event: Extension) -> Obj:
    """Write an event of another type than the ten."""
    return {"type": event.name, **(event.payload if isinstance(event.payload, dict) else {})}


def batch_line(results: list[Result]) -> Obj:
    """Write the results of one batch as the array that the system writes."""
    done = sum(r.status == "ok" for r in results)
    counts = {
        "tools_executed": len(results),
        "success_count": done,
        "failure_count": len(results) - done,
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
    User: _content,
    Think: _content,
    Respond: _content,
    Call: _call,
    Result: _payload,
    Metric: _metric,
    Error: _error,
    Extension: extension_line,
    Execute: lambda _: {},
    End: lambda _: {},
    Interrupt: lambda _: {},
}
#: Other shapes of a line, by the `form` of its note.
FORMS: dict[str, Callable[[Any], Obj]] = {
    "stored": _stored,
    "text": lambda e: {"content": e.message if isinstance(e, Error) else e.content},
}


def draw_piece(text: str) -> Obj:
    """Return the line of a piece of a thought without its timestamp."""
    return {"type": "think", "content": text}


def _later(value: Any, _lines: int, ms: int) -> Any:
    sound = isinstance(value, float | int) and not isinstance(value, bool)
    return round(value + ms / 1000, 3) if sound else value


#: How the timestamps of the pieces of a thought go on (see `passthrough`).
SHIFTS = {"timestamp": _later}


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
    """Read the counts that this wire has; an invalid count stays in the note."""
    known = {k: v for k, v in value.items() if k in COUNTED} if isinstance(value, dict) else {}
    try:
        return msgspec.convert(known, Counts)
    except msgspec.ValidationError:
        return Counts()
