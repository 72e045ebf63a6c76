"""The numbers of a run, as they stand in the metadata of its output, as one line for a terminal.

Rules
- The numbers come from another process: what is missing or of another type is left out.
"""

from __future__ import annotations

from typing import Any

from ..events import Interrupt
from ..view import format_money


def summary_line(numbers: dict[str, Any]) -> str:
    """Return a summary, or the numbers of a replay, as one line for a terminal."""
    tokens = numbers.get("tokens") or [0, 0]
    how = [
        word
        for key, word in (("replayed", "replayed"), ("scripted", "scripted"), ("drift", "drifted"))
        if numbers.get(key)
    ]
    parts = (
        ", ".join(
            [
                f"{Interrupt.AT_LIMIT}{numbers['limit']}"
                if numbers.get("limit")
                else str(numbers.get("status", "?")),
                *how,
            ]
        ),
        str(numbers.get("model", "")),
        *_work(numbers),
        f"{tokens[0]} → {tokens[1]} tokens",
        format_money(numbers["cost"]) if isinstance(numbers.get("cost"), float | int) else "",
        f"{numbers.get('seconds', 0)} s",
        str(numbers.get("error", "")),
    )
    return " · ".join(" ".join(w.split()) for w in parts if w)


def _work(numbers: dict[str, Any]) -> tuple[str, ...]:
    """Return how much a run has done: rows, or turns and calls."""
    rows = numbers.get("rows")
    if isinstance(rows, list) and len(rows) == 2:
        return (f"{rows[0]} of {_count(rows[1], 'row')}",)
    denied = f" ({numbers['denied']} denied)" if numbers.get("denied") else ""
    calls = _count(numbers.get("calls", 0), "call")
    return (_count(numbers.get("turns", 0), "turn"), f"{calls}{denied}")


def _count(number: Any, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
