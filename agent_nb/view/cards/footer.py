"""The last line of a run: its size, its pace, and the variable that has the rest."""

from __future__ import annotations

from ..format import count_noun, format_count, format_duration, join_parts
from ..nodes import Node, Row, T
from ..state.fold import RunView
from .base import Context

MEASURED = 0.001  # seconds to the first token; below it no model was asked (a script, a recording)
PACED = 0.1  # seconds of answering below which a pace would mean nothing


def card(state: RunView, context: Context) -> Node | None:
    """Return the footer of a finished run, or None while it runs."""
    if state.status in {"", "running"}:
        return None
    total = state.usage.total
    first = (
        f"first token {format_duration(total.ttft)}"
        if total.ttft is not None and total.ttft >= MEASURED
        else ""
    )
    pace = (
        f"{total.output / total.duration:.0f} tok/s"
        if total.output and total.duration and total.duration >= PACED
        else ""
    )
    cached = f"{format_count(total.cached)} cached" if total.cached else ""
    written = (
        f"{format_count(total.cache_written)} written to the cache" if total.cache_written else ""
    )
    reasoning = f"{format_count(total.reasoning)} reasoning" if total.reasoning else ""
    about = join_parts(
        f"run {state.run[:12]}" if state.run else "",
        count_noun(state.events, "event"),
        first,
        pace,
        cached,
        written,
        reasoning,
    )
    where = "_map.frame" if state.maps.here else "_agent.to_frame()"
    return Row((T(about, tone="muted"),), (T(where, tone="muted", mono=True),))
