"""What an iterator of somebody else's gives, as what a decoder takes: bytes, a JSON object, or an
event of ours.

Why: other systems hand out parsed objects, models of pydantic or msgspec, SSE events of a client
library, chunks of bytes, or lines whose ends are gone; a viewer that asked for one of them would
need glue in every notebook.

Rules
- A text item that is a whole JSON object is a line, whether or not its newline is there.
- Stripped SSE lines are told from chunks by the first two texts, of which the first is held that
  long; nothing else is held.
- What cannot be read is a UsageError that says what can.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from ..errors import UsageError
from ..events import Event

Piece = bytes | Mapping[str, Any] | Event
_FIELD = re.compile(rb"(?:data|event|id|retry)\s*:|:")
_DATA = re.compile(rb"data\s*:\s*(.*)", re.DOTALL)
_AG_UI = "are not events of an agent's run in a format that is known here. {how} gives AG-UI events, which are read as they are"
_MODEL = "come from a model, not from an agent. Let an agent ask it, as in Agent(model={name!r}), and watch that"
#: By the package that an object comes from: what to watch instead.
ADAPTERS = {
    "pydantic_ai": _AG_UI.format(
        how='run_stream() of pydantic_ai.ui.ag_ui.AGUIAdapter (pip install "pydantic-ai-slim[ag-ui]")'
    ),
    **dict.fromkeys(
        ("langchain", "langchain_core", "langgraph"),
        _AG_UI.format(how="run() of ag_ui_langgraph.LangGraphAgent (pip install ag-ui-langgraph)"),
    ),
    "crewai": _AG_UI.format(how="The package ag-ui-crewai"),
    "strands": _AG_UI.format(how="The package ag-ui-strands"),
    "google": _AG_UI.format(how="The package ag-ui-adk, for agents of google.adk,"),
    "openai": _MODEL.format(name="openai/…"),
    "anthropic": _MODEL.format(name="anthropic/…"),
}
KNOWN = (
    "bytes, texts, dicts, dataclasses, pydantic or msgspec objects, SSE events, events of agent_nb"
)


class Pieces:
    """Items in, pieces out."""

    def __init__(self) -> None:
        self._held: bytes | None = None
        self._lines: bool | None = None  # stripped SSE lines, chunks, or not yet known
        self._fresh = True

    def feed(self, item: Any) -> list[Piece]:
        """Return the pieces of one item. Raises UsageError when it is none of those known."""
        found = plain(item)
        return self._text(found) if isinstance(found, bytes) else [found]

    def close(self) -> list[Piece]:
        """Return what was held."""
        held, self._held = self._held, None
        return [held] if held else []

    def _text(self, data: bytes) -> list[Piece]:
        if self._held is not None:
            return self._second(data)
        if (
            self._lines is None
            and self._fresh
            and b"\n" not in data
            and b"\r" not in data
            and _FIELD.match(data)
        ):
            self._held = data
            return []
        return [self._chunk(data)] if data or self._lines else []

    def _second(self, data: bytes) -> list[Piece]:
        """Tell lines from chunks by the text after the first."""
        first, self._held = self._held or b"", None
        self._lines = (
            _whole_line(first)
            and (not data.strip(b"\r\n") or bool(_FIELD.match(data)))
            and data[:1] not in (b"\n", b"\r")
        )
        return [self._chunk(first), self._chunk(data)]

    def _chunk(self, data: bytes) -> bytes:
        if (self._lines and data[-1:] != b"\n") or (
            self._fresh and data[:1] == b"{" and data[-1:] == b"}" and is_json(data)
        ):
            data += b"\n"
        self._fresh = data[-1:] == b"\n" if data else self._fresh
        return data


def _whole_line(line: bytes) -> bool:
    """Return whether a line can stand alone: of data, its JSON must be whole."""
    data = _DATA.fullmatch(line)
    return data is None or is_json(data[1]) or data[1].strip() == b"[DONE]"


def is_json(data: bytes) -> bool:
    """Return whether a text is one JSON value."""
    try:
        msgspec.json.decode(data, type=msgspec.Raw)
    except (ValueError, RecursionError):
        return False
    return True


def plain(item: Any) -> Piece:
    """Return an item as bytes, a mapping or an event. Raises UsageError when it is
    nothing known.
    """
    if isinstance(item, Event | Mapping):
        return item
    if isinstance(item, str):
        return item.encode("utf-8", "replace")
    if isinstance(item, bytes | bytearray | memoryview):
        return bytes(item)
    if isinstance(getattr(item, "data", None), str) and isinstance(
        getattr(item, "event", None), str | None
    ):
        return _sse(item)
    found = _object(item)
    if not isinstance(found, Mapping):
        hint = adapter_of(type(item)) or f"Known: {KNOWN}."
        raise UsageError(f"A {type(item).__name__} cannot be read as an event. {hint}")
    return found


def adapter_of(kind: type | None) -> str:
    """Return a sentence on what to watch instead of objects of a known package, "" for others."""
    package = getattr(kind, "__module__", "").partition(".")[0]
    return f"Objects of {package} {ADAPTERS[package]}." if package in ADAPTERS else ""


def _sse(item: Any) -> bytes:
    """Return the frame of an SSE event as client libraries give it: `event`, `data`, `id`."""
    event, number = getattr(item, "event", None), getattr(item, "id", None)
    head = (
        f"id: {number}\n"
        if isinstance(number, str) and number and not re.search(r"[\r\n\0]", number)
        else ""
    )
    kind = (
        f"event: {event}\n"
        if event and event != "message" and not re.search(r"[\r\n]", event)
        else ""
    )
    data = "".join(f"data: {line}\n" for line in item.data.split("\n"))
    return f"{head}{kind}{data}\n".encode("utf-8", "replace")


def _object(item: Any) -> Any:
    dump = getattr(item, "model_dump", None)
    if callable(dump) and not isinstance(item, type):
        return _told(
            dump(mode="json", by_alias=True), dump(mode="json", by_alias=True, exclude_unset=True)
        )
    for name in ("to_dict", "_asdict"):
        own = getattr(item, name, None)
        if callable(own) and not isinstance(item, type):
            return own()
    try:
        return msgspec.to_builtins(item)
    except (TypeError, RecursionError):
        return None


def _told(whole: Any, given: Any) -> Any:
    """Return an object as it was `given`, with those defaults of the `whole` that say something:
    the type of an event is often one.
    """
    if isinstance(whole, dict) and isinstance(given, dict):
        return {
            k: _told(v, given[k]) if k in given else v
            for k, v in whole.items()
            if k in given or v is not None
        }
    if isinstance(whole, list) and isinstance(given, list) and len(whole) == len(given):
        return [_told(v, g) for v, g in zip(whole, given, strict=True)]
    return given
