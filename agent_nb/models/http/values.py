"""Reads JSON of servers that follow no schema.

Compatible servers copy an API loosely, and one odd value must not cost the user an answer. So any
value may be missing, null, of another type or in a further wrapper; nothing here raises.
"""

from __future__ import annotations

import json
from typing import Any, TypeGuard

from ...events import whole_input, whole_output
from ...wire import as_dict
from ..parts import Usage
from .retry import is_retryable_status

# words in the type or code of a temporary error
_TEMPORARY = ("overloaded", "rate_limit", "server_error", "api_error", "timeout_error")


def to_text(value: Any) -> str:
    """Return `value` as text; None is "", a value nested too deeply "…"."""
    if isinstance(value, str):
        return value
    try:
        return "" if value is None else str(value)
    except RecursionError:
        return "…"


def to_json(value: Any) -> str:
    """Return a value that was read from JSON as JSON text; "…" if it is nested too deeply."""
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return "…"


def flatten_text(piece: Any, depth: int = 8) -> str:
    """Return the text of a piece of content: a text, an object with one, or a list of either."""
    if isinstance(piece, str):
        return piece
    if not depth:
        return ""
    if isinstance(piece, list):
        return "".join(flatten_text(each, depth - 1) for each in piece)
    if isinstance(piece, dict):
        values = (piece.get(key) for key in ("text", "refusal", "thinking", "content"))
        return flatten_text(next(filter(None, values), ""), depth - 1)
    return ""


def is_empty(value: Any, depth: int = 8) -> bool:
    """Return whether a value is None, "", [], 0, False or an object of such, to `depth` levels."""
    if isinstance(value, dict) and depth:
        return all(is_empty(member, depth - 1) for member in value.values())
    return value is None or value in ("", [], False)


def is_temporary(error: Any) -> bool:
    """Return whether an error in the stream may pass, so that a retry makes sense."""
    if not isinstance(error, dict):
        return False
    code = error.get("status_code", error.get("code"))
    kind = f"{error.get('type', '')} {code}".lower()
    is_named_so = any(word in kind for word in _TEMPORARY)
    return is_named_so or (isinstance(code, int) and is_retryable_status(code))


def make_usage(usage: dict[str, Any]) -> Usage:
    """Return the Usage of an OpenAI usage object (chat completions or Responses) of any vendor."""
    prompt = as_dict(usage.get("prompt_tokens_details"))
    prompt = prompt or as_dict(usage.get("input_tokens_details"))
    completion = as_dict(usage.get("completion_tokens_details"))
    completion = completion or as_dict(usage.get("output_tokens_details"))
    cost = usage.get("cost")
    if isinstance(cost, dict):  # some servers list the parts of the cost
        cost = cost.get("total_cost")
    prompt_tokens = count_tokens(usage.get("prompt_tokens", usage.get("input_tokens")))
    output = count_tokens(usage.get("completion_tokens", usage.get("output_tokens")))
    cached = count_tokens(
        prompt.get("cached_tokens")
        or usage.get("cached_tokens")
        or usage.get("prompt_cache_hit_tokens")
    )
    total = count_tokens(usage.get("total_tokens"))
    whole_prompt = whole_input(prompt_tokens, cached, output=output, total=total)
    reasoning = count_tokens(completion.get("reasoning_tokens") or usage.get("reasoning_tokens"))
    output, reasoning = whole_output(output, reasoning, input_tokens=whole_prompt, total=total)
    cache_written = count_tokens(
        prompt.get("cache_write_tokens") or usage.get("cache_creation_input_tokens")
    )
    return Usage(
        input=whole_prompt,
        output=output,
        cached=cached,
        cache_written=cache_written,
        reasoning=reasoning,
        cost=float(cost) if _is_amount(cost) else None,
        raw=usage,
    )


def count_tokens(value: Any) -> int:
    """Return a count of tokens, 0 for anything else."""
    return int(value) if _is_amount(value) else 0


def _is_amount(value: Any) -> TypeGuard[float]:
    # not NaN, which would disable every budget, nor a number that only a fault can bring
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e15
