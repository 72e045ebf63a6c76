"""Formats one line about a run, from the numbers in the metadata of the run's output.

    ok, replayed · openai/gpt-5 · 2 turns · 1 call · 812 → 96 tokens · $0.002 · 3.1 s

Rule: code of the notebook can write any output, so each number may be missing or of a wrong type.
"""

from __future__ import annotations

import math
from typing import Any, TypeGuard

from ..events import Interrupt
from ..view import format_money


def summary_line(numbers: dict[str, Any]) -> str:
    """Return the line: status, model, work, tokens, cost, seconds and error, as far as known."""
    tokens = numbers.get("tokens")
    if not _is_pair(tokens):
        tokens = [0, 0]
    cost, seconds = numbers.get("cost"), numbers.get("seconds", 0)
    status = str(numbers.get("status", "?"))
    if numbers.get("limit"):
        status = f"{Interrupt.AT_LIMIT}{numbers['limit']}"
    words = {"replayed": "replayed", "scripted": "scripted", "drift": "drifted"}
    parts = (
        ", ".join([status, *(word for key, word in words.items() if numbers.get(key))]),
        str(numbers.get("model", "")),
        *_work(numbers),
        f"{tokens[0]} → {tokens[1]} tokens",
        format_money(cost) if _is_number(cost) else "",
        f"{seconds} s" if _is_number(seconds) else "",
        str(numbers.get("error", "")),
    )
    # a model's name or an error may hold line ends
    return " · ".join(" ".join(part.split()) for part in parts if part)


def _work(numbers: dict[str, Any]) -> tuple[str, ...]:
    """Return the amount of work of a run: the finished rows of a map, else turns and calls."""
    rows = numbers.get("rows")
    if _is_pair(rows):
        return (f"{rows[0]} of {_count(rows[1], 'row')}",)
    denied, calls = numbers.get("denied"), _count(numbers.get("calls", 0), "call")
    if calls and denied and _is_number(denied):
        calls += f" ({denied} denied)"
    return _count(numbers.get("turns", 0), "turn"), calls


def _count(number: Any, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}" if _is_number(number) else ""


def _is_pair(value: Any) -> TypeGuard[list[float]]:
    return isinstance(value, list) and len(value) == 2 and all(map(_is_number, value))


def _is_number(value: Any) -> TypeGuard[float]:
    is_number = isinstance(value, float | int) and not isinstance(value, bool)
    return is_number and abs(value) < math.inf
