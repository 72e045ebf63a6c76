"""The first line of a run: status, model, turns, usage, and the Stop button.

Why: one line must say, live and in a file read years later, what the run did and what it cost. A
page that is drawn once does not say "running", unless the run is known to go on (`alive`).

Rule: a text that is true only while the run goes on is marked `T.now`, except the status and the
clock: a narrow live view (`live.css`) leaves it out.
"""

from __future__ import annotations

from ...events import Interrupt
from ...wire import as_dict
from ..format import (
    clip_text,
    count_noun,
    format_clock,
    format_count,
    format_duration,
    format_money,
    join_parts,
)
from ..nodes import Button, Node, Row, T, Tone
from ..state.cards import CallCard, ThinkCard
from ..state.fold import RunView
from .base import Context

# status of an ended run -> (mark, tone, word)
ENDED: dict[str, tuple[str, Tone, str]] = {
    "ok": ("✓", "ok", "done"),
    "error": ("✕", "bad", "failed"),
    "interrupted": ("■", "wait", "stopped"),
    "limit": ("■", "wait", "stopped at a limit"),
    "awaiting": ("?", "wait", "waits for an answer"),
}
# on a page that is drawn once and cannot know how the run ended
UNFINISHED: tuple[str, Tone, str] = ("○", "muted", "unfinished")
# on a page that is saved while the run goes on: it waits for the user, or it does not
WAITING: tuple[str, Tone, str] = ("?", "wait", "waiting for your yes")
GOING_ON: tuple[str, Tone, str] = ("●", "run", "still running")
# beginnings of `settings["source"]` (where the model's name comes from) if the user did not name it
CHOSEN = ("by", "because", "imported", "first", "the embedded")
LETTERS_PER_TOKEN = 4  # to estimate tokens that no metric has counted yet


def card(state: RunView, context: Context) -> Node:
    """Return the header row of a run."""
    mark, tone, word = ENDED.get(_status(state), ("●", "run", "running"))
    if state.running:
        word, tone = describe_phase(state)
        mark = "?" if tone == "wait" else mark
        if context.still:
            going_on = WAITING if tone == "wait" else GOING_ON
            mark, tone, word = going_on if context.alive else UNFINISHED
    elif state.limit:
        word = f"{Interrupt.AT_LIMIT}{state.limit}"
    left = (T(f"{mark} {word}", tone=tone, bold=True), T("  "), *_who(state))
    return Row(
        left, _figures(state, context), live=True, wrap=True, buttons=_buttons(state, context)
    )


def _status(state: RunView) -> str:
    """Return the status of a run; a map that ended without an answer to any row failed."""
    table = state.map.card
    no_answer = table is not None and table.done and table.counts.all_failed
    return "error" if no_answer and state.status == "ok" else state.status


def describe_phase(state: RunView) -> tuple[str, Tone]:
    """Return what a running run is doing, in words, with its tone."""
    calls = state.calls.list_open()
    if any(map(_waits_for_user, calls)):
        return "waiting for you", "wait"
    running = [c for c in calls if c.status == "running"]
    if running:
        what = running[0].name if len(running) == 1 else count_noun(len(running), "tool")
        return f"running {what}", "run"
    if state.doing:
        return state.doing, "run"
    # the order matters: a map hides the retries of its rows, a retry the thought that broke off
    if state.map.card is not None:
        rows = state.map.card.counts.rows_under_way
        return f"asking {count_noun(rows, 'row')}" if rows else "asking rows", "run"
    if state.retries.waiting is not None:
        return "waiting to try again", "run"
    last = state.cards[-1] if state.cards else None
    if isinstance(last, ThinkCard) and not last.done:
        return "thinking", "run"
    if state.texts.answer is not None and state.texts.answer.writing:
        return "answering", "run"
    if isinstance(last, CallCard) and last.status == "writing":
        return "writing a call", "run"
    return ("starting" if not state.events else "waiting for the model"), "run"


def _waits_for_user(call: CallCard) -> bool:
    """Return whether a call, or a call of a sub-agent inside it, waits for the user."""
    inside = (c for view in call.children for c in view.cards)
    return call.status == "waiting" or any(
        _waits_for_user(c) for c in inside if isinstance(c, CallCard) and c.open
    )


def _who(state: RunView) -> tuple[T, ...]:
    """Return the model, and remarks about it and the run, such as why a replay asked it anew."""
    source = str(state.settings.get("source") or "").removeprefix("given")
    named = not source.startswith(CHOSEN)  # by the user, who knows the source
    instead = f"instead of {clip_text(state.instead_of, 80)}" if state.instead_of else ""
    turns = _turns(state)
    remarks = filter(None, (instead, "" if named else source, turns, state.badge, state.left_out))
    muted = (
        T(f"{' · ' if n else '  '}{text}", tone="muted", now=text == turns and state.running)
        for n, text in enumerate(remarks)
    )
    model = (T(state.model, mono=True, hint=source if named else ""),) if state.model else ()
    warned = (T(f"  {clip_text(state.foreign, 100)}", tone="wait"),) if state.foreign else ()
    asked_anew = state.changed and not state.badge  # a badge marks a replay, which asks no model
    why = clip_text(f"asked anew: {state.changed}", 120)
    changed = (T(f"  {why}", tone="wait"),) if asked_anew else ()
    return (*model, *warned, *changed, *muted)


def _turns(state: RunView) -> str:
    """Return `turn 2 of 20`; of an ended run, the turns and a limit that forced the answer."""
    most = as_dict(state.settings.get("limits")).get("turns")
    if not state.running:
        turns = count_noun(state.turn, "turn") if state.turn > 1 else ""
        forced = clip_text(state.forced, 40) if state.status != "limit" else ""
        return join_parts(turns, f"had to answer at the limit of {forced}" if forced else "")
    return f"turn {state.turn} of {most}" if state.turn and most else ""


def _figures(state: RunView, context: Context) -> tuple[T, ...]:
    """Return time, tokens and cost; `≈`: with an estimate, `≥`: without the price of a request."""
    running = state.running
    clock_stands = context.now is None or state.recorded or not running
    end = state.ended or state.last if clock_stands else context.now or 0.0
    spent = max(0.0, end - state.started) if state.started else 0.0
    # a clock that ticks while the run goes on, a duration after it, nothing for a run without times
    time = ""
    if running:
        time = "" if context.still else format_clock(spent)
    elif state.started:
        time = format_duration(spent)
    total, approximate = state.usage.total, "≈ " if state.usage.estimated else ""
    streamed = _round_estimate(state.usage.streamed // LETTERS_PER_TOKEN)
    read = f"{approximate}{format_count(total.input)} in" if total.input else ""
    written = total.output + streamed
    sign = "≈ " if streamed else approximate
    wrote = f"{sign}{format_count(written)} out" if written else ""
    cost_sign = "≥ " if state.usage.unpriced else approximate
    cost = f"{cost_sign}{format_money(total.cost)}" if total.cost else ""
    figures = join_parts(read, wrote, cost)
    gap = " · " if time and figures else ""
    return (T(time, tone="muted"), T(f"{gap}{figures}", tone="muted", now=running and bool(gap)))


def _round_estimate(tokens: int) -> int:
    """Return an estimate in steps of about a tenth, so that it does not change with every frame."""
    if tokens < 100:
        return tokens // 10 * 10
    step = 50 if tokens < 1000 else 500
    return tokens // step * step


def _buttons(state: RunView, context: Context) -> tuple[Button, ...]:
    """Return the Stop button; one that cannot be pressed says what to do instead."""
    if not context.live or not state.running:
        return ()
    if not context.can_click:
        hint = "Clicks do not arrive while this cell runs: interrupt the kernel."
        return (Button("stop", "use ■ to stop", enabled=False, hint=hint),)
    if "stop:" in context.pressed:
        return (Button("stop", "stopping…", enabled=False),)
    hint = "Stop the run; what came so far is kept."
    return (Button("stop", "■ Stop", tone="bad", busy="stopping…", hint=hint),)
