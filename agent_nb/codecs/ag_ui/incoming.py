"""Normalises AG-UI's lines before they are read.

`model_dump()` of AG-UI's Python objects yields `message_id` for `messageId`, and some agents send
their whole conversation in one event and stream nothing. Names that are not AG-UI's, and the user's
own values (states, arguments, payloads), stay unchanged.
"""

from __future__ import annotations

import re
from typing import Any

from ...wire import as_list
from ..run_builder import Obj

_NAMES = (
    "activityType", "cacheWriteTokens", "cachedInputTokens", "encryptedValue", "entityId",
    "expiresAt", "inputTokens", "interruptId", "messageId", "outputTokens", "parentMessageId",
    "parentRunId", "parentToolCallId", "rawEvent", "reasoningTokens", "responseSchema", "runId",
    "stepName", "subagentRunId", "threadId", "toolCallId", "toolCallName", "toolCalls",
    "totalTokens",
)  # fmt: skip
# snake case -> name on the wire
_TO_WIRE = {re.sub("([A-Z])", lambda match: f"_{match[1].lower()}", name): name for name in _NAMES}
# fields whose objects have names of AG-UI too
_NESTED = frozenset({"messages", "outcome", "usage", "interrupts"})


def use_wire_names(obj: Obj) -> Obj:
    """Return an object with wire names instead of snake case; if it has both names, both stay."""
    if not obj.keys() & _TO_WIRE.keys() and not obj.keys() & _NESTED:
        return obj
    renamed = {}
    for name, value in obj.items():
        wire_name = _TO_WIRE.get(name, name)
        # if the object has the wire name too, the snake-case name stays: no value is lost
        key = name if wire_name in obj else wire_name
        renamed[key] = _use_nested_names(value) if name in _NESTED else value
    return renamed


def _use_nested_names(value: Any) -> Any:
    if isinstance(value, list):
        return [_use_nested_names(v) for v in value]
    return use_wire_names(value) if isinstance(value, dict) else value


def read_last_turn(messages: Any) -> tuple[str, list[dict[str, Any]]]:
    """Return the user's last message in a snapshot ("" for none), and the messages after it.

    Only messages of the assistant and of tools are among them.
    """
    prompt, after = "", list[dict[str, Any]]()
    for message in as_list(messages):
        role = message.get("role") if isinstance(message, dict) else ""
        if role == "user":
            prompt, after = content_text(message.get("content")), []
        elif role in ("assistant", "tool"):
            after.append(message)
    return prompt, after


def content_text(content: Any) -> str:
    """Return the text of a message's content: a string or a list of parts."""
    if isinstance(content, list):
        texts = [part.get("text") for part in content if isinstance(part, dict)]
        return "".join(text for text in texts if isinstance(text, str))
    return content if isinstance(content, str) else ""
