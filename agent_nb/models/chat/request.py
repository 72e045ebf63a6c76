"""Encodes a request for chat completions.

Most servers speak this API, but not all of it: the arguments of `encode` name the differences.

Rule: reasoning goes back only with a message that calls tools, in the field of the answer that it
came in: some servers refuse it elsewhere.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import msgspec

from ..messages import (
    Block,
    CallBlock,
    ImageBlock,
    Message,
    OutputSchema,
    Request,
    ResultBlock,
    TextBlock,
    ThoughtBlock,
    ToolSpec,
)
from ..settings import add_extra_body, check_settings, list_stops, read_effort
from ..strict_schema import OPENAI, make_strict
from .decoder import PROVIDER

# settings that the API has under the same names
_PLAIN = ("temperature", "top_p", "seed")
_ERROR = re.compile(r'\s*(?:\{")?error', re.IGNORECASE)  # the beginning of a result that says so


def encode(
    request: Request,
    model: str,
    *,
    grammar: bool = False,
    router: bool = False,
    usage: bool = True,
    max_tokens_field: str = "max_tokens",
) -> dict[str, Any]:
    """Return the body of the request. Raises UsageError for a wrong setting.

    `grammar`: the server takes a grammar. `router`: it reads OpenRouter's `reasoning`. `usage`: ask
    for usage. `max_tokens_field`: the server's field for the setting `max_tokens`.
    """
    body: dict[str, Any] = {
        "model": model,
        "messages": list(write_messages(request.messages)),
        "stream": True,
    }
    if usage:
        body["stream_options"] = {"include_usage": True}
    if request.native_tools and request.tools:
        body["tools"] = [write_tool(spec) for spec in request.tools]
    if grammar and request.grammar:
        body["grammar"] = request.grammar
    settings = check_settings(request.settings)
    body |= {name: settings[name] for name in _PLAIN if name in settings}
    if "max_tokens" in settings:
        body[max_tokens_field] = settings["max_tokens"]
    if "stop" in settings:
        body["stop"] = list_stops(settings["stop"])
    if "reasoning" in settings:
        body |= _write_reasoning(settings["reasoning"], router=router)
    if request.output is not None:
        schema = write_schema(request.output)
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    add_extra_body(body, settings)
    return body


def write_schema(output: OutputSchema) -> dict[str, Any]:
    """Return the schema of the answer as OpenAI's APIs take it; strict if it has a strict form."""
    strict = make_strict(output.schema, OPENAI)
    schema = output.schema if strict is None else strict
    return {"name": output.name, "schema": schema, "strict": strict is not None}


def write_tool(spec: ToolSpec) -> dict[str, Any]:
    """Return a tool as the API describes it."""
    function = {"name": spec.name, "description": spec.description, "parameters": spec.parameters}
    return {"type": "function", "function": function}


def _write_reasoning(value: Any, *, router: bool) -> dict[str, Any]:
    if not router:
        return {"reasoning_effort": read_effort(value)}
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return {"reasoning": {"max_tokens": value}}
    return {"reasoning": {"effort": read_effort(value)}}


def write_messages(history: Iterable[Message]) -> Iterable[dict[str, Any]]:
    """Yield the messages of `history` in the form of the API.

    Results become `tool` messages, one for each call; one user message after them holds their
    pictures. Blocks of other providers are left out.
    """
    for message in history:
        if message.role == "assistant":
            yield _write_assistant(message)
            continue
        other_blocks: list[Block] = []
        pictures: list[Block] = []
        for block in message.blocks:
            if isinstance(block, ResultBlock):
                content = write_result(block)
                yield {"role": "tool", "tool_call_id": block.call_id, "content": content}
                pictures += label_pictures(block)
            else:
                other_blocks.append(block)
        other_blocks = [*pictures, *other_blocks]
        if other_blocks:
            yield {
                "role": "user" if message.role == "tool" else message.role,
                "content": _write_content(other_blocks),
            }


def label_pictures(block: ResultBlock) -> list[Block]:
    """Return a text that names a result, then its pictures; [] without pictures.

    The pictures need a user message, since a `tool` message holds only text.
    """
    if not block.pictures:
        return []
    return [TextBlock(f"Pictures of {block.name} (call {block.call_id}):"), *block.pictures]


def write_result(block: ResultBlock) -> str:
    """Return the text of a result; a failure that does not say so itself begins with "Error: "."""
    if block.error and not _ERROR.match(block.content):
        return f"Error: {block.content}"
    return block.content


def _write_content(blocks: list[Block]) -> str | list[dict[str, Any]]:
    if not any(isinstance(block, ImageBlock) for block in blocks):
        return "".join(block.text for block in blocks if isinstance(block, TextBlock))
    return [piece for block in blocks if (piece := _write_piece(block))]


def _write_piece(block: Block) -> dict[str, Any] | None:
    if isinstance(block, TextBlock):
        return {"type": "text", "text": block.text} if block.text else None
    if isinstance(block, ImageBlock):
        return {"type": "image_url", "image_url": {"url": block.data_url}}
    return None


def _write_assistant(message: Message) -> dict[str, Any]:
    """Return a message of the model, with its reasoning if it calls tools."""
    calls = [block for block in message.blocks if isinstance(block, CallBlock)]
    encoded: dict[str, Any] = {
        "role": "assistant",
        "content": message.text or (None if calls else ""),
    }
    if not calls:
        return encoded
    opaque = message.payloads_of(PROVIDER)
    extras: dict[str, Any] = {}  # call id -> its other fields
    for payload in opaque:
        extras |= payload.get("tool_calls") or {}
    encoded["tool_calls"] = [_write_call(block) | extras.get(block.call_id, {}) for block in calls]
    for payload in opaque:
        encoded |= payload.get("message") or {}
    if "reasoning_details" not in encoded:  # which hold the same reasoning as its plain text
        for thought in [block for block in message.blocks if isinstance(block, ThoughtBlock)]:
            if field := _find_reasoning_field(thought):
                encoded[field] = encoded.get(field, "") + thought.text
    return encoded


def _find_reasoning_field(thought: ThoughtBlock) -> str:
    """Return the field that a thought came in, "" if it must not be sent."""
    opaque = thought.opaque_of(PROVIDER)
    field = opaque.get("field") if opaque is not None else ""
    return field if field in ("reasoning", "reasoning_content") else ""


def _write_call(block: CallBlock) -> dict[str, Any]:
    return {
        "id": block.call_id,
        "type": "function",
        "function": {"name": block.name, "arguments": write_arguments(block)},
    }


def write_arguments(block: CallBlock) -> str:
    """Return a past call's arguments: as written if that is JSON of `args`, else `args` as JSON."""
    with suppress(ValueError, RecursionError):
        # servers refuse what `lenient_loads` takes, such as a line break in a text
        if block.raw_args and msgspec.json.decode(block.raw_args) == block.args:
            return block.raw_args
    return json.dumps(block.args, ensure_ascii=False)
