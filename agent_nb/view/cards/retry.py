"""The card of a failed request that is made again: one row counts down, then reports the wait."""

from __future__ import annotations

from ..format import MINUTE, clip_text, count_noun, format_duration
from ..nodes import Fold, Node, Pre, Row, T
from ..state.cards import RetryCard
from ..values import bound_text
from .base import Context


def card(state: RetryCard, context: Context) -> Node:
    """Return the row; after the last try, it opens to the server's last reply if that is known."""
    why, pause = state.failures[-1]
    if not state.done:
        now = state.since if context.now is None else context.now  # without a clock, the whole wait
        seconds_left = state.since + pause - now if state.since else 0.0
        return draw_try(why, len(state.failures) + 1, seconds_left)
    tries = f"waited {format_duration(state.waited)}, {count_noun(state.tries, 'try')}"
    outcome = Row(
        (T("↻ ", tone="muted", label="Retry"), T(clip_text(why, 300), tone="muted")),
        (T(tries, tone="muted"),),
    )
    if state.raw:
        return Fold((outcome,), (Pre(bound_text(state.raw, 4000)),), title=clip_text(why, 100))
    return outcome


def draw_try(why: str, number: int, seconds_left: float) -> Row:
    """Return the row of try `number`, which follows in some seconds (0 or less: now or unknown).

    `why`: the failure before it.
    """
    seconds = max(1, round(seconds_left))
    wait = format_duration(seconds) if seconds >= MINUTE else f"{seconds} s"
    when = f"trying again in {wait}" if seconds_left > 0 else "trying again"
    left = (T("↻ ", tone="wait", label="Retry"), T(clip_text(why, 300), tone="wait", bold=True))
    return Row(left, (T(f"{when} · try {number}", tone="muted"),))
