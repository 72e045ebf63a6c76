"""Converts between the token counts of other protocols and our `Counts`.

Protocols name the same few figures differently, and disagree on whether the input includes cached
tokens; that of `Counts` does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..events import Counts, whole_input

#: Our fields -> the names of the chat completions API.
CHAT_NAMES = {"input": "prompt_tokens", "output": "completion_tokens", "total": "total_tokens"}


def read_usage(usage: Mapping[str, Any], names: Mapping[str, str]) -> Counts:
    """Return the counts in `usage`; `names`: field of Counts, or `total` -> its key in `usage`."""
    values = {field: usage.get(name) for field, name in names.items()}
    counts = {k: v if type(v) is int and v >= 0 else 0 for k, v in values.items()}
    total, reported_input = counts.pop("total", 0), counts.pop("input", 0)
    cached, output = counts.get("cached", 0), counts.get("output", 0)
    return Counts(input=whole_input(reported_input, cached, output=output, total=total), **counts)


def to_chat_usage(counts: Counts) -> dict[str, int]:
    """Return the input, the output and their sum under the names of chat completions."""
    total = counts.input + counts.output
    values = {"input": counts.input, "output": counts.output, "total": total}
    return {name: values[field] for field, name in CHAT_NAMES.items()}
