"""A stopped run: who or which limit stopped it, and what to do next."""

from __future__ import annotations

from ...events import Interrupt
from ..format import text_row
from ..nodes import Box, Node, Row, T
from ..state.cards import InterruptCard
from .base import Context

# reason of an interrupt (`map`: the user stopped a map) -> (title, what to do next)
REASONS = {
    "user": ("Stopped", "What came so far is kept; run the cell again to start over."),
    "map": ("Stopped", "The rows so far are kept; run the cell again to ask only the others."),
    "timeout": ("Out of time", "What came so far is kept; a longer time is set with --time."),
    "limit": (
        "Limit reached",
        "What came so far is kept; limits are options of the cell, such as --max-turns.",
    ),
}
# words in the name of a limit -> the option that sets the limit
OPTIONS = {
    "$": "--budget",
    "turn": "--max-turns",
    "tool call": "--max-calls",
    "tool failure": "--max-failures",
    "token": "--max-tokens",
}
# detail of an interrupt -> who stopped the run, in words
BY = {
    "stop button": "by you",
    "kernel interrupt": "by you",
    "from elsewhere": "from elsewhere",
    "stopped over HTTP": "over HTTP",
}


def card(state: InterruptCard, context: Context) -> Node:
    """Return why the run was stopped and what to do next."""
    kind = "map" if state.mapped and state.reason == "user" else state.reason
    title, advice = REASONS.get(kind, ("Stopped", ""))
    limit, stopped_by = Interrupt.limit_in(state.detail), BY.get(state.detail)
    detail = state.detail
    if stopped_by and state.reason == "user":
        title, detail = f"{title} {stopped_by}", ""
    elif limit and state.reason != "user":
        title = f"{Interrupt.AT_LIMIT.capitalize()}{limit}"
        detail = detail.partition(" (")[2].rstrip(")")  # it may end with a remark in brackets
    option = next((OPTIONS[words] for words in OPTIONS if words in limit), "")
    if option and state.reason == "limit":
        advice = f"What came so far is kept; a higher limit is set with {option}."
    detail_words = (T(f"  {detail}"),) if detail else ()
    head = Row((T(f"■ {title}", tone="wait", bold=True), *detail_words), wrap=True)
    return Box((head, text_row(advice, wrap=True)), tone="wait")
