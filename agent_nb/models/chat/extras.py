"""Unknown fields of a chunk, passed on as Extra parts.

Servers add fields of their own (citations, safety ratings), and a record should hold them.
"""

from __future__ import annotations

from typing import Any

from ..http.values import is_empty
from ..parts import Extra

# fields that the decoder reads, or that are the protocol's bookkeeping
KNOWN = frozenset({
    "id", "object", "created", "model", "choices", "usage", "x_groq", "error", "provider",
    "system_fingerprint", "service_tier", "obfuscation", "index", "delta", "message",
    "finish_reason", "native_finish_reason", "stop_reason", "text", "role", "content", "refusal",
    "reasoning", "reasoning_content", "reasoning_details", "tool_calls", "function_call", "channel",
    "name", "type", "padding", "p", "timings", "status_code", "token_ids", "prompt_token_ids",
})  # fmt: skip
_MOST_VALUES = 100  # values kept of one field that holds an object or a list


class Extras:
    """The unknown fields of one response; empty values (also 0 and false) do not count.

    A scalar is passed on when it first appears, an object or list whenever it changes, at most
    `_MOST_VALUES` times.
    """

    def __init__(self, provider: str) -> None:
        self._provider = provider
        self._latest: dict[str, Any] = {}  # name of a field -> the value kept last
        self._count: dict[str, int] = {}  # name of a field -> how many values were kept

    def collect_new(self, holder: dict[str, Any]) -> list[Extra]:
        """Return the new unknown fields of a chunk, choice or delta."""
        if holder.keys() <= KNOWN:
            return []
        extras = []
        for name, value in holder.items():
            if name in KNOWN or is_empty(value) or self._latest.get(name) == value:
                continue
            count = self._count.get(name, 0)
            if count < (_MOST_VALUES if isinstance(value, dict | list) else 1):
                self._latest[name] = value
                self._count[name] = count + 1
                extras.append(Extra(self._provider, name, value))
        return extras
