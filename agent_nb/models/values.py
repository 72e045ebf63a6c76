"""Reading JSON of servers that keep to no schema.

Why: every value of a provider may be missing, null, of another type or wrapped once more; nothing here ever raises.
"""

from __future__ import annotations

import math
from typing import Any

from ..parts import Usage
from .retry import retryable_status


def word(value: Any) -> str:
    """Return `value` as text; None is none."""
    return value if isinstance(value, str) else "" if value is None else str(value)


def flat(piece: Any) -> str:
    """Return the text of a piece of content: a text, an object with one, or a list of either."""
    if isinstance(piece, str):
        return piece
    if isinstance(piece, list):
        return "".join(map(flat, piece))
    if isinstance(piece, dict):
        return flat(piece.get("text") or piece.get("refusal") or piece.get("thinking") or piece.get("content") or "")
    return ""


def empty(value: Any) -> bool:
    """Whether there is nothing in a value, however it is wrapped."""
    if isinstance(value, dict):
        return all(map(empty, value.values()))
    return value is None or value in ("", [], False)


def passing(error: Any) -> bool:
    """Whether an error in the stream is of a kind that passes."""
    if not isinstance(error, dict):
        return False
    code = error.get("status_code", error.get("code"))
    kind = f"{error.get('type', '')} {code}".lower()
    return (isinstance(code, int) and retryable_status(code)) or any(word in kind for word in ("overloaded", "rate_limit", "server_error"))


def usage_part(usage: dict[str, Any]) -> Usage:
    """Return the Usage of a chat completions usage object of any vendor."""
    prompt, completion = _inner(usage, "prompt_tokens_details"), _inner(usage, "completion_tokens_details")
    cost = usage.get("cost")
    if isinstance(cost, dict):
        cost = cost.get("total_cost")
    return Usage(
        input=_number(usage.get("prompt_tokens", usage.get("input_tokens"))),
        output=_number(usage.get("completion_tokens", usage.get("output_tokens"))),
        cached=_number(prompt.get("cached_tokens") or usage.get("cached_tokens") or usage.get("prompt_cache_hit_tokens")),
        reasoning=_number(completion.get("reasoning_tokens") or usage.get("reasoning_tokens")),
        cost=float(cost) if isinstance(cost, int | float) else None,
        raw=usage,
    )


def _inner(usage: dict[str, Any], name: str) -> dict[str, Any]:
    value = usage.get(name)
    return value if isinstance(value, dict) else {}


def _number(value: Any) -> int:
    return int(value) if isinstance(value, int | float) and math.isfinite(value) and abs(value) < 1e15 else 0
