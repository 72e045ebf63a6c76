"""What each kind of server streams for a text and for a call, for the server of `model_server`."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

PROVIDERS = ("openai", "openai-responses", "anthropic")
Answer = Callable[[Any], None]


def _events(*found: dict[str, Any]) -> Answer:
    return lambda peer: peer.stream(
        *(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in found)
    )


def _chat(delta: dict[str, Any], reason: str) -> Answer:
    chunks = (
        {"id": "r", "model": "m", "choices": [{"index": 0, "delta": delta}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]},
    )
    return lambda peer: peer.stream(*chunks, "data: [DONE]\n\n")


def _response(item: dict[str, Any]) -> Answer:
    done = {"status": "completed", "output": [item], "usage": {}}
    return _events(
        {"type": "response.created", "response": {"id": "r", "model": "m", "output": []}},
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": done},
    )


def _message(block: dict[str, Any], delta: dict[str, Any], reason: str) -> Answer:
    started = {"id": "r", "model": "m", "usage": {"input_tokens": 1, "output_tokens": 1}}
    return _events(
        {"type": "message_start", "message": started},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": reason},
            "usage": {"output_tokens": 2},
        },
        {"type": "message_stop"},
    )


def says(provider: str, text: str) -> Answer:
    """Return the behaviour of a server that answers with a text."""
    if provider == "openai":
        return _chat({"content": text}, "stop")
    if provider == "openai-responses":
        content = [{"type": "output_text", "text": text}]
        return _response({"type": "message", "id": "m1", "role": "assistant", "content": content})
    return _message({"type": "text", "text": ""}, {"type": "text_delta", "text": text}, "end_turn")


def calls(provider: str, name: str, args: dict[str, Any], call_id: str = "c1") -> Answer:
    """Return the behaviour of a server that calls a tool."""
    text = json.dumps(args)
    if provider == "openai":
        function = {"name": name, "arguments": text}
        call = {"index": 0, "id": call_id, "type": "function", "function": function}
        return _chat({"tool_calls": [call]}, "tool_calls")
    if provider == "openai-responses":
        return _response(
            {
                "type": "function_call",
                "id": "f1",
                "call_id": call_id,
                "name": name,
                "arguments": text,
            }
        )
    return _message(
        {"type": "tool_use", "id": call_id, "name": name, "input": {}},
        {"type": "input_json_delta", "partial_json": text},
        "tool_use",
    )


def refuses(status: int, words: str) -> Answer:
    """Return the behaviour of a server that refuses a request."""
    return lambda peer: peer.reply(status, json.dumps({"error": {"message": words}}))
