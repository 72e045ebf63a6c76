"""A map: what it is about to do, a bar while it goes on, and what became of its rows.

Rules
- The first line says the plan and at the end the outcome; it opens to what they are made of.
- A limit that will end the map before its last row is said while there is time to stop it. What was
  estimated before the first request is withdrawn as soon as rows show what they take.
- The rows are the latest ones, at the end a sample. Their texts are beginnings, on one line.
"""

from __future__ import annotations

from ..format import (
    MINUTE,
    clip_text,
    count_noun,
    describe_failure,
    format_count,
    format_duration,
    format_money,
    join_parts,
)
from ..nodes import Bar, Fold, Node, Row, Stack, T, Table
from ..state.map import STOPPED, Counts, Line, MapCard, MapPlan
from .base import Context

SHOWN = 12  # rows of the table
KINDS = 6  # kinds of failures by name
WORDS = 60  # characters of a prompt or an answer
# prompts, and letters they begin with alike, from which on those letters are left out
FEW, WORTH = 3, 12
NAMES = 200  # characters of the columns' names
DAY = 86_400  # s
CENT, LEAST = 0.01, 0.01  # dollars, cents

# status of a row: (mark, word)
STATUS = {
    "ok": ("✓", "ok"),
    "error": ("✕", "failed"),
    "limit": ("■", "at a limit"),
    "interrupted": ("■", "stopped"),
    "pending": ("○", "not asked"),
}


def card(state: MapCard, context: Context) -> Node:
    """Return the plan or the outcome, the bar, the failures and some rows."""
    counts, over = state.counts, state.done or context.still
    measured = state.counts.forecast is not None
    head = outcome(state) if over else plan(state, guess=not measured)
    rows = counts.sample or counts.last
    return Stack(
        (
            Fold((head,), _details(state), title="map"),
            *(() if over else _too_small(state)),
            _bar(state, over=over),
            *_failures(counts),
            *((_table(rows, state),) if rows else ()),
        )
    )


def plan(state: MapCard, *, guess: bool = True) -> Row:
    """Return what the map is about to do, in one line; `guess`: with what it may take."""
    found = state.plan.known if state.plan is not None else 0
    known = f"{found:,} answered already" if found else ""
    cost = estimate(state.plan) if state.plan is not None and guess else ""
    about = join_parts(known, cost, _how(state.plan))
    return Row((T(_size(state), bold=True), T(f"  {about}", tone="muted")), wrap=True)


def outcome(state: MapCard) -> Row:
    """Return what became of the rows, in one line."""
    counts = state.counts
    left = counts.total - counts.done
    rows = count_noun(counts.total, "row")
    each = _size(state)
    said = f"{rows} answered" if each == rows else f"{counts.total:,} answered ({each})"
    words: list[T] = [T(f"{counts.ok:,} of {said}", bold=True)]
    words += [T(f"  {counts.failed:,} failed", tone="bad")] if counts.failed else []
    words += [T(f"  {counts.stopped:,} stopped", tone="wait")] if counts.stopped else []
    words += [T(f"  {left:,} not asked", tone="wait")] if left > 0 else []
    known = f"{counts.known:,} of them found, not asked again" if counts.known else ""
    tokens = f"{format_count(counts.tokens)} tokens" if counts.tokens else ""
    about = join_parts(known, tokens, _sum(counts.cost) if counts.cost else "")
    return Row((*words, T(f"  {about}", tone="muted")), wrap=True)


def estimate(known: MapPlan) -> str:
    """Return the tokens and the cost that a map may take, in words."""
    guess = known.estimate
    if guess is None or not (guess.input or guess.written):
        return ""
    tokens = f"about {format_count(guess.input)} tokens in, {format_count(guess.written)} out"
    return join_parts(tokens, f"about {_sum(guess.cost)}" if guess.cost is not None else "")


def pace(state: MapCard, counts: Counts, *, over: bool) -> str:
    """Return how far a map is, how fast, how long it takes still and what it costs."""
    rows = f"{counts.ok if over else counts.done:,} of {_asked(state)}"
    if over:
        return rows
    left = counts.left if counts.left is not None and counts.left < DAY else None
    cost = "" if counts.cost is None else _sum(counts.cost)
    whole = "" if counts.forecast is None else f"of about {_sum(counts.forecast)}"
    return join_parts(
        rows,
        _speed(counts.rate) if counts.rate else "",
        f"{format_duration(max(1, round(left)))} left" if left else "",
        f"{cost} {whole}".strip() if counts.cost else "",
    )


def _size(state: MapCard) -> str:
    repeats = state.plan.repeats if state.plan is not None else 1
    if state.plan is None or repeats <= 1:
        return count_noun(state.counts.total, "row")
    return f"{count_noun(state.plan.rows, 'row')} × {repeats:,}"


def _asked(state: MapCard) -> str:
    """Return how often the map asks: its rows, or all answers if it repeats them."""
    repeats = state.plan.repeats if state.plan is not None else 1
    return count_noun(state.counts.total, "row" if repeats <= 1 else "answer")


def _how(known: MapPlan | None) -> str:
    if known is None:
        return ""
    return join_parts(
        f"{known.concurrency:,} at once" if known.concurrency else "",
        f"{known.rpm:,} requests a minute" if known.rpm else "",
        f"on {clip_text(known.where, 40)}" if known.where else "",
    )


def _speed(rate: float) -> str:
    if rate * MINUTE < 1:
        return ""
    return f"{rate:.3g} rows/s" if rate >= 1 else f"{rate * MINUTE:.2g} rows/min"


def _bar(state: MapCard, *, over: bool) -> Bar:
    """Return the share of the rows that are over; at the end, of those that were answered."""
    counts, said = state.counts, pace(state, state.counts, over=over)
    if not over:
        return Bar(counts.fraction, said, "run", "rows")
    return Bar(counts.answered, said, "ok", "rows answered")


def _details(state: MapCard) -> tuple[Node, ...]:
    """Return what the first line opens to."""
    known = state.plan
    if known is None:
        return ()
    lines = {
        "columns": clip_text(", ".join(known.columns), NAMES),
        "estimate": join_parts(estimate(known), clip_text(known.estimate.basis, NAMES))
        if known.estimate is not None
        else "",
        "asked": _how(known),
    }
    return tuple(
        Row((T(f"{name}  ", tone="muted"), T(said)), wrap=True)
        for name, said in lines.items()
        if said
    )


def _too_small(state: MapCard) -> tuple[Node, ...]:
    """Return the words about a limit that will end the map: as measured, else as estimated."""
    guess = state.plan.estimate if state.plan is not None else None
    words = state.counts.limit
    if words is None:
        words = guess.limit if guess is not None else ""
    return (Row((T(clip_text(words, NAMES), tone="wait"),), wrap=True),) if words else ()


def _sum(dollars: float) -> str:
    """Return a sum; one below a cent in cents, because zeros after a point are hard to read."""
    if not 0 < dollars < CENT:
        return format_money(dollars)
    cents = dollars / CENT
    return f"{cents:.2g} cents" if cents >= LEAST else f"less than {LEAST} cents"


def _failures(counts: Counts) -> tuple[Node, ...]:
    """Return the failures by kind, in one line."""
    found = [(kind, number) for kind, number in counts.failures.items() if kind != STOPPED]
    if not found:
        return ()
    named = [f"{number:,} {describe_failure(kind)}" for kind, number in found[:KINDS]]
    rest = len(found) - KINDS
    words = join_parts(*named, f"{rest:,} more kinds" if rest > 0 else "")
    left = (T("✕ ", tone="bad", label="Failed:"), T(words, tone="bad"))
    return (Row(left, wrap=True),)


def _table(rows: tuple[Line, ...], state: MapCard) -> Table:
    shown, counts = rows[-SHOWN:], state.counts
    same = _shared([line.prompt for line in shown])
    left = counts.total - len(shown)
    whose = "a sample" if counts.sample else "the latest"
    note = f"{whose} of {_asked(state)}" if left > 0 else ""
    columns = ("row", "prompt", "answer", "status", "time")
    return Table(columns, tuple(_row(line, same) for line in shown), note, figures=(0, 4))


def _shared(prompts: list[str]) -> int:
    """Return how many characters all prompts begin with alike, in whole words.

    What a template says of every row would leave no room for what differs.
    """
    least, most = min(prompts), max(prompts)  # every other prompt is between them
    pairs = enumerate(zip(least, most, strict=False))
    alike = next((n for n, (one, other) in pairs if one != other), len(least))
    words = least.rfind(" ", 0, alike) + 1
    return words if len(prompts) >= FEW and words >= WORTH else 0


def _row(line: Line, same: int) -> tuple[str, ...]:
    mark, word = STATUS.get(line.status, ("○", clip_text(line.status, 20)))
    said = clip_text(("…" if same else "") + line.prompt[same:], WORDS)
    answered = clip_text(line.answered, WORDS)
    time = format_duration(line.seconds) if line.seconds else ""
    return (f"{line.position:,}", said, answered, f"{mark} {word}", time)
