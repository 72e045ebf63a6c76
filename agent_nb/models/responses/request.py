"""Encodes a request for the Responses API, a flat list of items instead of messages.

Rule: the server stores nothing (`store: false`), so each request holds the whole conversation.
Items that the decoder marked to be sent back (`Resend`) go back unchanged, except reasoning
(`_encode_resent`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from ...errors import UsageError
from ..chat.request import label_pictures, write_arguments, write_result, write_schema
from ..messages import (
    Block,
    CallBlock,
    ImageBlock,
    Message,
    OpaqueBlock,
    Request,
    ResultBlock,
    TextBlock,
    ToolSpec,
)
from ..settings import add_extra_body, check_settings, read_effort
from .decoder import PROVIDER


def encode(
    request: Request,
    model: str,
    *,
    encrypted: bool = True,
    summary: bool = True,
    pictures_in_results: bool = True,
) -> dict[str, Any]:
    """Return the body of the request. Raises UsageError for a wrong setting.

    `encrypted`: ask for reasoning that can be sent back. `summary`: ask for readable reasoning, if
    reasoning is set. `pictures_in_results`: send the pictures of a result within it; if False, they
    stand in a message after the results.
    """
    settings = check_settings(request.settings)
    for name in ("stop", "seed"):
        if name in settings:
            raise UsageError(
                f"The Responses API has no setting {name}. Leave it out, or use the model through openai/… instead."
            )
    body: dict[str, Any] = {"model": model, "stream": True, "store": False}
    if encrypted:
        body["include"] = ["reasoning.encrypted_content"]
    if request.system:
        body["instructions"] = request.system
    # the system text is sent as `instructions`; as an item too, it would count twice
    body["input"] = [
        item
        for message in request.messages
        if message.role != "system"
        for item in write_items(message if pictures_in_results else _move_pictures(message))
    ]
    if request.native_tools and request.tools:
        body["tools"] = [write_tool(spec) for spec in request.tools]
    body |= {name: settings[name] for name in ("temperature", "top_p") if name in settings}
    if "max_tokens" in settings:
        body["max_output_tokens"] = settings["max_tokens"]
    if "reasoning" in settings:
        body["reasoning"] = {"effort": read_effort(settings["reasoning"])}
        if summary:
            body["reasoning"]["summary"] = "auto"
    if request.output is not None:
        body["text"] = {"format": {"type": "json_schema", **write_schema(request.output)}}
    add_extra_body(body, settings, "text")
    return body


def write_tool(spec: ToolSpec) -> dict[str, Any]:
    """Return a tool as the API describes it."""
    return {
        "type": "function",
        "name": spec.name,
        "description": spec.description,
        "parameters": spec.parameters,
        "strict": False,  # the API's default is true, which refuses schemas outside its subset
    }


def _move_pictures(message: Message) -> Message:
    """Return a message with the pictures of its results as blocks after them."""
    pictures = [p for b in message.blocks if isinstance(b, ResultBlock) for p in label_pictures(b)]
    bare = [
        msgspec.structs.replace(b, pictures=()) if isinstance(b, ResultBlock) else b
        for b in message.blocks
    ]
    return msgspec.structs.replace(message, blocks=(*bare, *pictures))


def write_items(message: Message) -> Iterable[dict[str, Any]]:
    """Yield the input items of a message, in order."""
    opaque = message.payloads_of(PROVIDER)
    # the decoder keeps a message's `phase` as a block of its own (`_complete_item`)
    phase = next((payload["phase"] for payload in opaque if payload.keys() == {"phase"}), "")
    content: list[dict[str, Any]] = []
    for block in message.blocks:
        if isinstance(block, TextBlock | ImageBlock):
            content += _write_content(block, message.role)
            continue
        item = _write_item(block)
        if item is not None:
            yield from _write_message(message.role, content, phase)
            content = []
            yield item
    yield from _write_message(message.role, content, phase)


def _write_message(role: str, content: list[Any], phase: str) -> Iterable[dict[str, Any]]:
    if content:
        encoded: dict[str, Any] = {
            "type": "message",
            "role": "assistant" if role == "assistant" else "user",
            "content": content,
        }
        yield encoded | {"phase": phase} if phase and role == "assistant" else encoded


def _write_content(block: Block, role: str) -> list[dict[str, Any]]:
    if isinstance(block, ImageBlock):
        return [{"type": "input_image", "image_url": block.data_url}]
    if isinstance(block, TextBlock) and block.text:
        kind = "output_text" if role == "assistant" else "input_text"
        return [{"type": kind, "text": block.text}]
    return []


def _write_item(block: Block) -> dict[str, Any] | None:
    """Return the input item of a call, a result or a resent item; None for other blocks."""
    if isinstance(block, CallBlock):
        return {
            "type": "function_call",
            "call_id": block.call_id,
            "name": block.name,
            "arguments": write_arguments(block),
        }
    if isinstance(block, ResultBlock):
        output = _write_output(block)
        return {"type": "function_call_output", "call_id": block.call_id, "output": output}
    payload = block.payload_of(PROVIDER) if isinstance(block, OpaqueBlock) else None
    return _encode_resent(payload) if payload is not None else None


def _write_output(block: ResultBlock) -> str | list[dict[str, Any]]:
    text = write_result(block)
    if not block.pictures:
        return text
    blocks: list[Block] = [TextBlock(text), *block.pictures]
    return [piece for each in blocks for piece in _write_content(each, "user")]


def _encode_resent(item: dict[str, Any]) -> dict[str, Any] | None:
    """Return an item to send back, None for a `phase` or if the server could not read the item.

    Reasoning loses an empty `status` and, without encryption, its `id`.
    """
    if "type" not in item:  # a `phase`, which is part of its message
        return None
    if item["type"] != "reasoning":
        return item
    if not item.get("encrypted_content") and not item.get("content"):
        return None
    fields = {key: value for key, value in item.items() if key != "status" or value}
    if item.get("encrypted_content"):
        return fields
    return {key: value for key, value in fields.items() if key != "id"}
