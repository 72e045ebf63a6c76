"""Convert the result of an MCP tool to what our tools return: text or JSON, and pictures.

Why: a server often sends one result as text and as JSON, and the model should read it once. So text
that only repeats the structured content, or one of its fields, is dropped. Nothing is fetched.
"""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any

from ...wire import dumps
from ..display import PICTURE_TYPES
from ..values import byte_size

_MOST_PICTURES = 20  # pictures of one result


def read_result(result: Any) -> tuple[Any, list[bytes]]:
    """Return the value of the SDK's result of a call, a text or JSON, and its pictures as bytes."""
    texts: list[str] = []
    pictures: list[bytes] = []
    for block in result.content:
        picture = _read_picture(block) if len(pictures) < _MOST_PICTURES else None
        if picture is not None:
            pictures.append(picture)
        else:
            texts.append(_write_block(block))
    return _combine(texts, result.structured_content), pictures


def _combine(texts: list[str], structured: Any) -> Any:
    """Return texts and structured content as one value that says nothing twice."""
    text = "\n".join(text for text in texts if text)
    if structured is None:
        return text
    fields = list(structured.values()) if isinstance(structured, dict) else []
    # the SDK for Python puts a result that is not an object below the name `result`
    wrapped = isinstance(structured, dict) and structured.keys() == {"result"}
    if text and not any(_is_same(text, texts, value) for value in (structured, *fields)):
        return f"{text}\n{dumps(structured)}"
    return fields[0] if wrapped else structured


def _is_same(text: str, texts: list[str], value: Any) -> bool:
    """Return whether the texts only repeat the JSON value `value`, as a whole or item by item.

    `texts`: those of the blocks. `text`: the same, joined to one.
    """
    if value in (text, texts):
        return True
    try:
        return bool(json.loads(text) == value)
    except (ValueError, RecursionError):
        pass
    if not isinstance(value, list) or len(value) != len(texts):
        return False
    return all(_is_same(text, [], item) for text, item in zip(texts, value, strict=True))


def _read_picture(block: Any) -> bytes | None:
    """Return the picture in a block, or None."""
    resource = getattr(block, "resource", None)
    if block.type == "image":
        kind, data = block.mime_type, block.data
    elif resource is not None and hasattr(resource, "blob"):
        kind, data = resource.mime_type, resource.blob
    else:
        return None
    if kind not in PICTURE_TYPES:
        return None
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return None


def _write_block(block: Any) -> str:
    """Return the text of a block of content; for a block of another kind, words about it."""
    if block.type == "text":
        return str(block.text)
    if block.type in ("image", "audio"):
        return f"({block.mime_type}, {_write_size(block.data)})"
    if block.type == "resource_link":
        about = f": {block.description}" if block.description else ""
        return f"(a link to {block.name}, {block.uri}{about})"
    if block.type != "resource":
        return f"(content of the type {block.type})"
    resource = block.resource
    if hasattr(resource, "text"):
        return f"{resource.uri}:\n{resource.text}"
    return f"({resource.uri}, {resource.mime_type or 'a file'}, {_write_size(resource.blob)})"


def _write_size(data: str) -> str:
    return byte_size(len(data) * 3 // 4)
