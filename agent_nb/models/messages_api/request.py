"""Encodes a request for Anthropic's Messages API, which has blocks and an order of its own.

Rule: signed and redacted thoughts and blocks of server tools go back unchanged. Unsigned thoughts,
blocks of other providers and empty texts are left out: the API refuses them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from ...errors import UsageError
from ..messages import (
    Block,
    CallBlock,
    ImageBlock,
    Message,
    OpaqueBlock,
    Request,
    ResultBlock,
    TextBlock,
    ThoughtBlock,
    ToolSpec,
)
from ..settings import add_extra_body, check_settings, list_stops, read_budget, read_effort
from ..strict_schema import ANTHROPIC, make_strict
from .decoder import PROVIDER

MAX_TOKENS = 8192  # tokens of the answer, beside a thinking budget
LEAST_BUDGET = 1024  # tokens; the API refuses a smaller thinking budget
# efforts that the API lacks -> the nearest that it has
_EFFORTS = {"minimal": "low", "xhigh": "high"}


def encode(
    request: Request,
    model: str,
    *,
    adaptive: bool = False,
    after: list[dict[str, Any]] | None = None,
) -> dict[str, Any]:
    """Return the body of the request. Raises UsageError for a wrong setting.

    `adaptive`: send an effort instead of a thinking budget, and let the model decide. `after`: the
    API's blocks of a paused turn, which the model is to continue; None: a new turn.
    """
    settings = check_settings(request.settings)
    if "seed" in settings:
        raise UsageError("Anthropic's models have no setting seed. Leave it out.")
    body: dict[str, Any] = {
        "model": model,
        "max_tokens": settings.get("max_tokens", MAX_TOKENS),
        "stream": True,
    }
    if request.system:
        body["system"] = request.system
    body["messages"] = write_messages(request.messages)
    if after:
        body["messages"] = _append(body["messages"], "assistant", after)
    if request.native_tools and request.tools:
        body["tools"] = [write_tool(spec) for spec in request.tools]
    body |= {name: settings[name] for name in ("temperature", "top_p") if name in settings}
    if "stop" in settings:
        body["stop_sequences"] = list_stops(settings["stop"])
    if "reasoning" in settings:
        limit = settings.get("max_tokens")
        body |= _encode_thinking(settings["reasoning"], limit, adaptive=adaptive)
    if request.output is not None:
        form = {"type": "json_schema", "schema": make_strict(request.output.schema, ANTHROPIC)}
        body["output_config"] = {**body.get("output_config", {}), "format": form}
    add_extra_body(body, settings, "output_config")
    return body


def _encode_thinking(value: Any, limit: int | None, *, adaptive: bool) -> dict[str, Any]:
    """Return the fields for a reasoning setting; `limit` is the user's `max_tokens`, or None."""
    tokens = read_budget(value)
    if not tokens:
        return {"thinking": {"type": "disabled"}}
    if adaptive:
        effort = read_effort(value)
        output_config = {"effort": _EFFORTS.get(effort, effort)}
        return {"thinking": {"type": "adaptive"}, "output_config": output_config}
    tokens = max(LEAST_BUDGET, tokens)
    if limit is None:
        thinking = {"type": "enabled", "budget_tokens": tokens}
        return {"thinking": thinking, "max_tokens": tokens + MAX_TOKENS}
    if limit <= LEAST_BUDGET:
        raise UsageError(
            f"With reasoning, max_tokens must be more than {LEAST_BUDGET}; it is {limit}."
        )
    # the API wants `max_tokens`, which includes the thinking, to be larger than the budget
    return {"thinking": {"type": "enabled", "budget_tokens": min(tokens, limit - 1)}}


def write_tool(spec: ToolSpec) -> dict[str, Any]:
    """Return a tool as the API describes it."""
    return {"name": spec.name, "description": spec.description, "input_schema": spec.parameters}


def write_messages(history: Iterable[Message]) -> list[dict[str, Any]]:
    """Return a history as messages of the API, without the system text (`encode`).

    Consecutive messages of one role are merged; tool results come first in their message.
    """
    encoded: list[dict[str, Any]] = []
    for message in history:
        if message.role == "system":
            continue
        pieces = [piece for block in message.blocks if (piece := _write_piece(block))]
        encoded = _append(encoded, "assistant" if message.role == "assistant" else "user", pieces)
    for entry in encoded:
        if entry["role"] == "user":
            entry["content"].sort(key=lambda piece: piece["type"] != "tool_result")
    # the API refuses white space at the end of a last message of the assistant
    if encoded and encoded[-1]["role"] == "assistant":
        last_piece = encoded[-1]["content"][-1]
        if last_piece.get("type") == "text":
            last_piece["text"] = last_piece["text"].rstrip()
    return encoded


def _append(
    encoded: list[dict[str, Any]], role: str, pieces: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Add pieces to the last message if it has the role, else as a new message."""
    if not pieces:
        return encoded
    if encoded and encoded[-1]["role"] == role:
        return [*encoded[:-1], {"role": role, "content": [*encoded[-1]["content"], *pieces]}]
    return [*encoded, {"role": role, "content": pieces}]


def _write_piece(block: Block) -> dict[str, Any] | None:
    write = _WRITERS.get(type(block))
    return write(block) if write else None


def _write_text(block: TextBlock) -> dict[str, Any] | None:
    return {"type": "text", "text": block.text} if block.text.strip() else None


def _write_thought(block: ThoughtBlock) -> dict[str, Any] | None:
    opaque = block.opaque_of(PROVIDER)
    if opaque is None:
        return None
    if "block" in opaque:
        redacted: dict[str, Any] = opaque["block"]
        return redacted
    return {"type": "thinking", "thinking": block.text, "signature": opaque.get("signature", "")}


def _write_call(block: CallBlock) -> dict[str, Any]:
    call_id = _clean_id(block.call_id)
    return {"type": "tool_use", "id": call_id, "name": block.name, "input": block.args}


def _write_result(block: ResultBlock) -> dict[str, Any]:
    content: Any = block.content
    if block.pictures:
        text = _write_text(TextBlock(block.content))
        content = [*([text] if text else []), *map(_write_image, block.pictures)]
    call_id = _clean_id(block.call_id)
    encoded = {"type": "tool_result", "tool_use_id": call_id, "content": content}
    return encoded | {"is_error": True} if block.error else encoded


def _write_image(block: ImageBlock) -> dict[str, Any]:
    source = {"type": "base64", "media_type": block.media_type, "data": block.data}
    return {"type": "image", "source": source}


def _clean_id(call_id: str) -> str:
    """Return a call id in the characters that the API accepts."""
    return re.sub(r"[^a-zA-Z0-9_-]", "_", call_id)


# type of a block -> the function that writes it for the API
_WRITERS: dict[type[Block], Callable[[Any], dict[str, Any] | None]] = {
    TextBlock: _write_text,
    ThoughtBlock: _write_thought,
    CallBlock: _write_call,
    ResultBlock: _write_result,
    ImageBlock: _write_image,
    OpaqueBlock: lambda block: block.payload_of(PROVIDER),
}
