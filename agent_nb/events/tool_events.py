"""ToolEvents, a tool's progress or result as JSON, as our events; how progress is read.

    {"type": "progress", "toolName": "fit", "data": {"percent": 65, "message": "fold 3"}}

A native tool, a stream of another system and the view read the same text and the same progress bar
from the same data.

Rules
- A string is output, and so is the `content` of a chunk that `subtype` or `stream` names as stdout
  or stderr (`CHUNKS`, `STREAMS`).
- `percent` is a progress bar, and so is `done` of a `total`.
- In a Progress, text, `percent` or a lone message replaces the data. Other data stays as it is; the
  view decides how to show it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, TypeGuard

import msgspec

from ..errors import UsageError
from .types import Progress, Result

CHUNKS = ("stdout_chunk", "stderr_chunk")  # values of `subtype`
STREAMS = ("stdout", "stderr")  # values of `stream`
_LARGEST_NUMBER = 1e15  # a larger count or percentage is ignored: a record may hold any number


class Meaning(msgspec.Struct, frozen=True):
    """The content of progress data: output, progress (0 to 1), a message, and other fields."""

    text: str = ""
    fraction: float | None = None
    message: str = ""
    rest: Mapping[str, Any] = {}


def adapt_tool_event(event: Mapping[str, Any], *, call_id: str = "") -> Progress | Result:
    """Return the event of a ToolEvent of the call `call_id`.

    `{"type": "progress", "toolName", "data"}` becomes a Progress, `{"type": "result", "toolName",
    "output", "isError"?}` a Result. Raises UsageError for anything else.
    """
    if not is_tool_event(event):
        raise UsageError(
            'A ToolEvent is {"type": "progress", "toolName": …, "data": …} or {"type": "result", "toolName": …, "output": …}.'
        )
    if event["type"] == "progress":
        return Progress(call_id=call_id, origin="tool", **progress_fields(event))
    return Result(call_id=call_id, name=event["toolName"], origin="tool", **result_fields(event))


def is_tool_event(value: Any) -> TypeGuard[Mapping[str, Any]]:
    """Return whether a value is a ToolEvent."""
    if not isinstance(value, Mapping) or not isinstance(value.get("toolName"), str):
        return False
    content = {"progress": "data", "result": "output"}.get(str(value.get("type")))
    return content is not None and content in value


def progress_fields(event: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a Progress from a ToolEvent of the type `progress`.

    A message alone replaces only data that has no other field.
    """
    data = event.get("data")
    progress = meaning(data)
    message = {"message": progress.message} if progress.message else {}
    if progress.text or isinstance(data, str):  # an empty string is output too
        return {"text": progress.text, **message}
    if progress.fraction is not None and isinstance(data, Mapping) and "percent" in data:
        return {"fraction": progress.fraction, **message}
    return message if message and not progress.rest else {"data": data}


def result_fields(event: Mapping[str, Any]) -> dict[str, Any]:
    """Return status and content of a Result from a ToolEvent of the type `result`.

    Also reads a `tool_error` with its `error`, which the codec `agent_event` knows.
    """
    failed = event.get("isError") is True or event.get("type") == "tool_error"
    content = event.get("output", event.get("error", ""))
    return {"status": "error" if failed else "ok", "content": content}


def meaning(data: Any) -> Meaning:
    """Return the meaning of progress data. Never raises."""
    if isinstance(data, str):
        return Meaning(text=data)
    if not isinstance(data, Mapping):
        return Meaning()
    readings = (read(data) for read in _SHAPES)
    reading = next((each for each in readings if each is not None), _Reading())
    known, message = reading.fields, data.get("message")
    if message and isinstance(message, str):
        known |= {"message"}
    else:
        message = ""
    rest = {name: value for name, value in data.items() if name not in known}
    return Meaning(reading.text, reading.fraction, message, rest)


class _Reading(msgspec.Struct, frozen=True):
    """What data of a known shape says; `fields` are the names of the data that were read."""

    text: str = ""
    fraction: float | None = None
    fields: frozenset[str] = frozenset()


def _read_chunk(data: Mapping[str, Any]) -> _Reading | None:
    content = data.get("content")
    is_chunk = data.get("subtype") in CHUNKS or data.get("stream") in STREAMS
    if not is_chunk or not isinstance(content, str):
        return None
    return _Reading(content, fields=frozenset({"subtype", "stream", "content"}))


def _read_percent(data: Mapping[str, Any]) -> _Reading | None:
    percent = data.get("percent")
    if not _is_usable(percent) or not 0 <= percent <= 100:
        return None
    # 7 % is 0.07, not 0.07000000000000001; numpy writes its floats in another way than Python
    fraction = float(Decimal(repr(float(percent))) * Decimal("0.01"))
    return _Reading(fraction=fraction, fields=frozenset({"subtype", "percent"}))


def _read_count(data: Mapping[str, Any]) -> _Reading | None:
    done, total = data.get("done"), data.get("total")
    if not _is_usable(done) or not _is_usable(total) or total <= 0:
        return None
    # without fields: the counts are shown beside the bar
    return _Reading(fraction=min(1.0, max(0.0, done / total)))


# tried in this order: the first reading that is not None counts
_SHAPES: tuple[Callable[[Mapping[str, Any]], _Reading | None], ...] = (
    _read_chunk,
    _read_percent,
    _read_count,
)


def _is_usable(value: Any) -> TypeGuard[float]:
    """Return whether a value is a number that may be a count or a percentage."""
    usable = isinstance(value, int | float) and not isinstance(value, bool)
    return usable and abs(value) <= _LARGEST_NUMBER
