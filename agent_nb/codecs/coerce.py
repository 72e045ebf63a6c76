"""Coerces a caller's items to what a decoder takes: bytes, JSON objects or events.

Other systems yield parsed objects, models, SSE events of a client library, chunks, or lines without
their ends. Each would need code of its own in every notebook.

Rule: a text item that is one JSON object counts as a line, with or without its newline. The first
text like an SSE line that lacks its line end (`data: {"a": 1}`) is held. If it is whole, and the
text after it is empty or another field, the texts are lines; else they are chunks.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from ..errors import UsageError
from ..events import Event
from ..wire import plain_value

# what a decoder takes: bytes to `feed`, an object to `read`, or an event that passes unchanged
Piece = bytes | Mapping[str, Any] | Event
_READABLE = (
    "bytes, texts, dicts, dataclasses, pydantic or msgspec objects, SSE events, events of agent_nb"
)
_FIELD = re.compile(rb"(?:data|event|id|retry)\s*:|:")
_DATA = re.compile(rb"data\s*:\s*(.*)", re.DOTALL)
# The fields of an SSE client's events, beside `data`: the event's name, its id, and one more, by
# which such an object is recognized.
_SSE_FIELDS = (
    ("event", "id", "retry"),  # httpx-sse, sseclient, aiosseclient, sse-starlette
    ("type", "last_event_id", "origin"),  # requests-sse, aiohttp-sse-client
)


class ItemCoercer:
    """Coerces the items of one stream."""

    def __init__(self) -> None:
        self._form: Literal["lines", "chunks"] | None = None  # what texts are; None: unclear yet
        # the text of which the next one shows whether it is a line or a chunk
        self._undecided: bytes | None = None
        self._at_line_start = True  # the next text begins a line

    def feed(self, item: Any) -> list[Piece]:
        """Return the pieces of one item. Raises UsageError if its type is unknown."""
        piece = piece_of(item)
        return self._feed_text(piece) if isinstance(piece, bytes) else [piece]

    def close(self) -> list[Piece]:
        """Return the text that is still held."""
        data, self._undecided = self._undecided, None
        return [data] if data else []

    def _feed_text(self, data: bytes) -> list[Piece]:
        """Return a text with its line end; hold the first that may be an SSE line without one."""
        if self._undecided is not None:
            first, self._undecided = self._undecided, None
            # after a whole line comes another field, or the empty text of a blank line
            are_lines = _is_whole_line(first) and (not data or _FIELD.match(data))
            self._form = "lines" if are_lines else "chunks"
            return [self._complete_line(first), self._complete_line(data)]
        if self._form is None and self._at_line_start and _is_field_without_end(data):
            self._undecided = data
            return []
        if not data and self._form != "lines":
            return []
        # an empty text counts if texts are lines: it is the blank line that ends a frame
        return [self._complete_line(data)]

    def _complete_line(self, data: bytes) -> bytes:
        """Return a text with its line end: of an SSE line, or of a whole JSON object."""
        if self._form == "lines" and data[-1:] != b"\n":
            data += b"\n"
        elif self._at_line_start and _is_object(data):
            data = b" ".join(data.strip().split(b"\n")) + b"\n"
        if data:
            self._at_line_start = data[-1:] == b"\n"
        return data


def _is_field_without_end(data: bytes) -> bool:
    """Return whether a text begins like an SSE line and has no line end."""
    return b"\n" not in data and b"\r" not in data and _FIELD.match(data) is not None


def _is_object(data: bytes) -> bool:
    """Return whether a text is one JSON object that is not yet one line."""
    body = data.strip()
    lacks_line_end = data[-1:] == b"}" or b"\n" in body  # or has too many
    return lacks_line_end and body[:1] == b"{" and body[-1:] == b"}" and _is_json(body)


def _is_whole_line(line: bytes) -> bool:
    """Return whether a text is a whole SSE line, not the beginning of one."""
    data = _DATA.fullmatch(line)
    return data is None or _is_json(data[1]) or data[1].strip() == b"[DONE]"


def _is_json(data: bytes) -> bool:
    """Return whether a text is one JSON value."""
    try:
        msgspec.json.decode(data, type=msgspec.Raw)
    except (ValueError, RecursionError):
        return False
    return True


def piece_of(item: Any) -> Piece:
    """Return an item as bytes, mapping or event. Raises UsageError if its type is unknown."""
    if isinstance(item, Event):
        fields = {name: getattr(item, name) for name in item.__struct_fields__}
        # texts and numbers of built-in types, such as float for a numpy float
        return msgspec.structs.replace(item, **plain_value(fields))
    if isinstance(item, Mapping):
        return item
    if isinstance(item, str):
        return item.encode("utf-8", "replace")
    if isinstance(item, bytes | bytearray | memoryview):
        return bytes(item)
    if isinstance(getattr(item, "data", None), str):
        for name, number, other in _SSE_FIELDS:
            if hasattr(item, name) and hasattr(item, number) and hasattr(item, other):
                return _write_frame(item.data, getattr(item, name), getattr(item, number))
    obj = _to_object(item)
    if not isinstance(obj, Mapping):
        hint = f"{suggest_adapter(type(item))} Known: {_READABLE}.".lstrip()
        raise UsageError(f"A {type(item).__name__} cannot be read as an event. {hint}")
    return obj


# package that defines an object -> what gives AG-UI events instead
_AG_UI_SOURCES = {
    "pydantic_ai": 'run_stream() of pydantic_ai.ui.ag_ui.AGUIAdapter (pip install "pydantic-ai-slim[ag-ui]")',
    **dict.fromkeys(
        ("langchain", "langchain_core", "langgraph"),
        "run() of ag_ui_langgraph.LangGraphAgent (pip install ag-ui-langgraph)",
    ),
    "crewai": "The package ag-ui-crewai",
    "strands": "The package ag-ui-strands",
    "google": "The package ag-ui-adk, for agents of google.adk,",
}
_MODEL_PACKAGES = ("openai", "anthropic")
_DICT_HINT = (
    "A dict is read if it is an event of one of these formats, such as"
    ' {"type": "respond", "content": "…"} (canonical)'
    ' or {"type": "TEXT_MESSAGE_CONTENT", "messageId": "1", "delta": "…"} (ag-ui).'
)


def suggest_adapter(kind: type | None) -> str:
    """Return a hint on what to watch instead of items of type `kind` ("" for none)."""
    package = getattr(kind, "__module__", "").partition(".")[0]
    if package in _AG_UI_SOURCES:
        return f"Objects of {package} are not events of an agent's run in a format that is known here. {_AG_UI_SOURCES[package]} gives AG-UI events, which are read as they are."
    if package in _MODEL_PACKAGES:
        return f"Objects of {package} come from a model, not from an agent. Let an agent ask it, as in Agent(model='{package}/…'), and watch that."
    if kind is not None and issubclass(kind, Mapping):
        return _DICT_HINT
    if package in sys.stdlib_module_names or not package:
        return ""
    return f"If there is an AG-UI adapter for {package} (docs.ag-ui.com lists them), watch the events that it gives; they are read as they are."


def _write_frame(text: str, name: Any, number: Any) -> bytes:
    """Return an SSE event as a frame; a name or an id that no frame can hold is left out."""
    frame = ""
    if isinstance(number, str) and number and not re.search(r"[\r\n\0]", number):
        frame += f"id: {number}\n"
    if isinstance(name, str) and name not in ("", "message") and not re.search(r"[\r\n]", name):
        frame += f"event: {name}\n"
    frame += "".join(f"data: {line}\n" for line in text.split("\n"))
    return f"{frame}\n".encode("utf-8", "replace")


def _to_object(item: Any) -> Any:
    """Return an item as plain values, by a method of its own or by msgspec; None if neither can."""
    dump = getattr(item, "model_dump", None)
    if callable(dump) and not isinstance(item, type):
        return _with_defaults(
            dump(mode="json", by_alias=True), dump(mode="json", by_alias=True, exclude_unset=True)
        )
    for name in ("to_dict", "_asdict"):
        method = getattr(item, name, None)
        if callable(method) and not isinstance(item, type):
            return method()
    try:
        return msgspec.to_builtins(item)
    except (TypeError, RecursionError):
        return None


def _with_defaults(whole: Any, partial: Any) -> Any:
    """Return `partial` (the fields that were set), with the defaults in `whole` that are not None.

    The type of an event is often such a default.
    """
    if isinstance(whole, dict) and isinstance(partial, dict):
        return {
            k: _with_defaults(v, partial[k]) if k in partial else v
            for k, v in whole.items()
            if k in partial or v is not None
        }
    if isinstance(whole, list) and isinstance(partial, list) and len(whole) == len(partial):
        return [_with_defaults(w, p) for w, p in zip(whole, partial, strict=True)]
    return partial
