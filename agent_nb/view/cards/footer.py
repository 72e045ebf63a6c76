"""The last line of a run: speed, cached and reasoning tokens; it opens to its id, size and code."""

from __future__ import annotations

from ..format import count_noun, format_count, format_duration, join_parts
from ..nodes import Fold, Node, Row, T
from ..state.fold import RunView
from .base import Context

# seconds to the first token; less means a script or a recording, not a model
LEAST_TO_FIRST_TOKEN = 0.001
# seconds of answering and written tokens below which a pace would mean nothing
LEAST_SECONDS, LEAST_TOKENS = 0.5, 20


def card(state: RunView, context: Context) -> Node | None:
    """Return the footer of a finished run, or None while it runs."""
    if state.running:
        return None
    total = state.usage.total
    first = ""
    if total.ttft is not None and total.ttft >= LEAST_TO_FIRST_TOKEN:
        first = f"first token {format_duration(total.ttft)}"
    # estimated tokens, or rows asked at once, do not show how fast the model writes
    measures_model = (
        not state.usage.estimated and state.map.card is None and total.output >= LEAST_TOKENS
    )
    pace = ""
    if measures_model and total.duration and total.duration >= LEAST_SECONDS:
        pace = f"{total.output / total.duration:.0f} tok/s"
    counts = (
        (total.cached, "cached"),
        (total.cache_written, "written to the cache"),
        (total.reasoning, "reasoning"),
    )
    tokens = [f"{format_count(number)} {kind}" for number, kind in counts if number]
    left = (
        T("ℹ", tone="muted", label="About this run"),
        T(f"  {join_parts(first, pace, *tokens) or 'details'}", tone="muted"),
    )
    run = f"run {state.run[:12]}" if state.run else ""
    size = T(join_parts(run, count_noun(state.events, "event")), tone="muted")
    variable = "_map.frame" if state.map.ran_in_kernel else "_agent.to_frame()"
    code = (T(variable, tone="muted", mono=True),) if context.latest else ()
    details = Row((size,), code)
    return Fold((Row(left),), (details,), title="About this run")
