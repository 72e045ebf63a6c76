"""Where a request to the Messages API may be cached: up to four breakpoints.

An agent sends its instructions, tools and earlier turns again with every turn. What lies before a
breakpoint is written to the provider's cache once and then read at a tenth of the price. The mark
at the newest user message writes the request to the cache; the mark at the one before finds what
the last request wrote, even after many calls.
"""

from __future__ import annotations

from typing import Any

from ...wire import as_list

FIELD = "cache_control"
MARK = {FIELD: {"type": "ephemeral"}}
TURNS = 2  # user messages with a breakpoint, beside the tools and the system text
# type of a block that can carry a breakpoint -> the field that must not be empty
_MARKABLE = {"text": "text", "tool_result": "content", "image": "source", "document": "source"}


def with_breakpoints(body: dict[str, Any]) -> dict[str, Any]:
    """Return the body of a request with breakpoints for the cache; unchanged if it has any.

    New ones are at the last tool, and at the ends of the system text and the newest user messages.
    A body that has some got them from the user (`extra_body`).
    """
    holders = [body, *_objects(body.get("tools")), *_objects(body.get("system"))]
    holders += [b for m in _objects(body.get("messages")) for b in _objects(m.get("content"))]
    if any(FIELD in holder for holder in holders):
        return body
    marked = dict(body)
    if body.get("tools"):
        marked["tools"] = [*body["tools"][:-1], {**body["tools"][-1], **MARK}]
    if body.get("system"):
        marked["system"] = _mark_last(body["system"])
    messages = list(body.get("messages", ()))
    users = [i for i, message in enumerate(messages) if message["role"] == "user"]
    for i in users[-TURNS:]:
        messages[i] = {**messages[i], "content": _mark_last(messages[i]["content"])}
    return {**marked, "messages": messages}


def _mark_last(content: str | list[dict[str, Any]]) -> str | list[dict[str, Any]]:
    """Return content as blocks with a breakpoint at the last that can carry it; else unchanged.

    Thoughts and empty texts cannot.
    """
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    for i in reversed(range(len(blocks))):
        value_field = _MARKABLE.get(blocks[i].get("type", ""))
        value = blocks[i].get(value_field) if value_field else None
        if value and (not isinstance(value, str) or value.strip()):
            return [*blocks[:i], {**blocks[i], **MARK}, *blocks[i + 1 :]]
    return content


def _objects(value: Any) -> list[dict[str, Any]]:
    return [item for item in as_list(value) if isinstance(item, dict)]
