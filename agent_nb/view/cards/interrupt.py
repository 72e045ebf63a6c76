"""The run was stopped: by whom or by which limit, and what to do to go on."""

from __future__ import annotations

from ..cardstates import InterruptCard
from ..nodes import Box, Node, Row, T
from .base import Context

REASONS = {
    "user": ("Stopped", "What came so far is kept; run the cell again to start over."),
    "timeout": ("Out of time", "What came so far is kept; a longer time is set with --time."),
    "limit": ("Limit reached", "What came so far is kept; limits are options of the cell, such as --max-turns."),
}
BY = {"stop button": "by you", "kernel interrupt": "by you", "from elsewhere": "from elsewhere", "stopped over HTTP": "over HTTP"}


def card(state: InterruptCard, context: Context) -> Node:
    """Return why the run was stopped and what to do next."""
    title, after = REASONS.get(state.reason, ("Stopped", ""))
    by = BY.get(state.detail, "") if state.reason == "user" else ""
    title, detail = (f"{title} {by}", "") if by else (title, f"  {state.detail}" if state.detail else "")
    return Box(
        (Row((T(f"■ {title}", tone="wait", bold=True), T(detail)), wrap=True), Row((T(after, tone="muted"),), wrap=True)), tone="wait"
    )
