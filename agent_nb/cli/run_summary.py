"""Formats one line about a run, from the numbers in the metadata of the run's output.

    ok, replayed · openai/gpt-5 · 2 turns · 1 call · 812 → 96 tokens · $0.002 · 3.1 s

Why from the metadata: the output of a run is all that the command gets from the kernel.

Rule: code of the notebook can write any output, so each number may be missing or of a wrong type.
"""

from __future__ import annotations

import math
from typing import Any

from ..events import Interrupt
from ..view import format_money


def summary_line(numbers: dict[str, Any]) -> str:
    """Return the line: status, model, work, tokens, cost, seconds and error, as far as known."""
    tokens = numbers.get("tokens")
    if not isinstance(tokens, list) or len(tokens) != 2:
        tokens = [0, 0]
    cost = numbers.get("cost")
    if not isinstance(cost, float | int) or not abs(cost) < math.inf:
        cost = None
    status = str(numbers.get("status", "?"))
    if numbers.get("limit"):
        status = f"{Interrupt.AT_LIMIT}{numbers['limit']}"
    words = {"replayed": "replayed", "scripted": "scripted", "drift": "drifted"}
    parts = (
        ", ".join([status, *(word for key, word in words.items() if numbers.get(key))]),
        str(numbers.get("model", "")),
        *_work(numbers),
        f"{tokens[0]} → {tokens[1]} tokens",
        "" if cost is None else format_money(cost),
        f"{numbers.get('seconds', 0)} s",
        str(numbers.get("error", "")),
    )
    # a model's name or an error may hold line ends
    return " · ".join(" ".join(part.split()) for part in parts if part)


def _work(numbers: dict[str, Any]) -> tuple[str, ...]:
    """Return the amount of work of a run: the finished rows of a map, else turns and calls."""
    rows = numbers.get("rows")
    if isinstance(rows, list) and len(rows) == 2:
        return (f"{rows[0]} of {_count(rows[1], 'row')}",)
    denied = f" ({numbers['denied']} denied)" if numbers.get("denied") else ""
    calls = _count(numbers.get("calls", 0), "call")
    return (_count(numbers.get("turns", 0), "turn"), f"{calls}{denied}")


def _count(number: Any, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
