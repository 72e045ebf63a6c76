"""A map: its plan, a bar of its progress, and what became of its rows.

Why: a map may take hours and dollars, so its card says early how long, how much, and what fails.

Rules
- The first line is the plan, and at the end the outcome; it opens to details of the plan.
- A limit that will end the map before its last row is announced while there is time to stop it.
- The estimate made before the first request is shown until answered rows yield a forecast.
- The table shows the latest rows, at the end a sample, with each text on one line.
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
    text_row,
)
from ..nodes import Bar, Fold, Node, Row, Stack, T, Table
from ..state.map import STOPPED, Line, MapCard, MapCounts, MapPlan
from .base import Context

SHOWN = 12  # rows of the table
KINDS = 6  # kinds of failures that are named
WORDS = 160  # characters of a prompt or an answer; most pages are too narrow to show all
# a common beginning of at least WORTH characters is left out, if at least FEW prompts are shown
WORTH, FEW = 12, 3
NAMES = 200  # characters of the columns' names
DAY = 86_400  # seconds; a longer time left is not shown
CENT = 0.01  # dollars
LEAST = 0.01  # cents; a lower price is written as `less than` this

# status of a row -> (mark, word)
STATUS = {
    "ok": ("✓", "ok"),
    "error": ("✕", "failed"),
    "limit": ("■", "at a limit"),
    "interrupted": ("■", "stopped"),
    "pending": ("○", "not asked"),
}


def card(state: MapCard, context: Context) -> Node:
    """Return the first line, the bar, the failures and some rows."""
    counts, over = state.counts, state.done or context.still
    measured = state.counts.forecast is not None
    first_line = outcome(state) if over else plan(state, guess=not measured)
    rows = counts.sample or counts.last
    return Stack(
        (
            Fold((first_line,), _details(state), title="map"),
            *(() if over else _limit_warning(state)),
            _bar(state, over=over),
            *_failures(counts),
            *((_table(rows, state),) if rows else ()),
        )
    )


def plan(state: MapCard, *, guess: bool = True) -> Row:
    """Return what the map is about to do, in one line; `guess`: with the estimate."""
    known = state.plan.known if state.plan is not None else 0
    answered = f"{known:,} answered already" if known else ""
    cost = estimate(state.plan) if state.plan is not None and guess else ""
    remarks = join_parts(answered, cost, _describe_requests(state.plan))
    return Row((T(_size(state), bold=True), T(f"  {remarks}", tone="muted")), wrap=True)


def outcome(state: MapCard) -> Row:
    """Return what became of the rows, in one line."""
    counts = state.counts
    unasked = counts.total - counts.done
    rows = count_noun(counts.total, "row")
    size = _size(state)
    total = f"{rows} answered" if size == rows else f"{counts.total:,} answered ({size})"
    parts: list[T] = [T(f"{counts.ok:,} of {total}", bold=True)]
    parts += [T(f"  {counts.failed:,} failed", tone="bad")] if counts.failed else []
    parts += [T(f"  {counts.stopped:,} stopped", tone="wait")] if counts.stopped else []
    parts += [T(f"  {unasked:,} not asked", tone="wait")] if unasked > 0 else []
    reused = f"{counts.known:,} of them found, not asked again" if counts.known else ""
    tokens = f"{format_count(counts.tokens)} tokens" if counts.tokens else ""
    remarks = join_parts(reused, tokens, _price(counts.cost) if counts.cost else "")
    return Row((*parts, T(f"  {remarks}", tone="muted")), wrap=True)


def estimate(plan_: MapPlan) -> str:
    """Return the tokens and the cost that a map may take, in words."""
    guess = plan_.estimate
    if guess is None or not (guess.input or guess.written):
        return ""
    tokens = f"about {format_count(guess.input)} tokens in, {format_count(guess.written)} out"
    return join_parts(tokens, f"about {_price(guess.cost)}" if guess.cost is not None else "")


def pace(state: MapCard, counts: MapCounts, *, over: bool) -> str:
    """Return how many rows have ended, the speed, the time left and the cost.

    If the map is `over`, return only how many rows have an answer.
    """
    rows = f"{counts.ok if over else counts.done:,} of {_asked(state)}"
    if over:
        return rows
    left = counts.left if counts.left is not None and counts.left < DAY else None
    cost = "" if counts.cost is None else _price(counts.cost)
    forecast = "" if counts.forecast is None else f"of about {_price(counts.forecast)}"
    return join_parts(
        rows,
        _speed(counts.rate) if counts.rate else "",
        f"{format_duration(max(1, round(left)))} left" if left else "",
        f"{cost} {forecast}".strip() if counts.cost else "",
    )


def _size(state: MapCard) -> str:
    """Return the number of rows, and how often each is asked: `20 rows × 3`."""
    repeats = state.plan.repeats if state.plan is not None else 1
    if state.plan is None or repeats <= 1:
        return count_noun(state.counts.total, "row")
    return f"{count_noun(state.plan.rows, 'row')} × {repeats:,}"


def _asked(state: MapCard) -> str:
    """Return how many answers the map asks for: `20 rows`, or `60 answers` if it repeats rows."""
    repeats = state.plan.repeats if state.plan is not None else 1
    return count_noun(state.counts.total, "row" if repeats <= 1 else "answer")


def _describe_requests(plan_: MapPlan | None) -> str:
    """Return how the rows are asked: how many at once, how fast, where."""
    if plan_ is None:
        return ""
    return join_parts(
        f"{plan_.concurrency:,} at once" if plan_.concurrency else "",
        f"{plan_.rpm:,} requests a minute" if plan_.rpm else "",
        f"on {clip_text(plan_.where, 40)}" if plan_.where else "",
    )


def _speed(rate: float) -> str:
    if rate * MINUTE < 1:
        return ""
    return f"{rate:.3g} rows/s" if rate >= 1 else f"{rate * MINUTE:.2g} rows/min"


def _bar(state: MapCard, *, over: bool) -> Bar:
    """Return a bar of the rows that have ended; once the map is over, of those with an answer."""
    counts, label = state.counts, pace(state, state.counts, over=over)
    if not over:
        return Bar(counts.fraction, label, "run", "rows")
    return Bar(counts.answered, label, "ok", "rows answered")


def _details(state: MapCard) -> tuple[Node, ...]:
    """Return what the first line opens to."""
    plan_ = state.plan
    if plan_ is None:
        return ()
    lines = {
        "columns": clip_text(", ".join(plan_.columns), NAMES),
        "estimate": join_parts(estimate(plan_), clip_text(plan_.estimate.basis, NAMES))
        if plan_.estimate is not None
        else "",
        "asked": _describe_requests(plan_),
    }
    return tuple(
        Row((T(f"{name}  ", tone="muted"), T(value)), wrap=True)
        for name, value in lines.items()
        if value
    )


def _limit_warning(state: MapCard) -> tuple[Node, ...]:
    """Return a line about the limit that will end the map, as measured, else as estimated."""
    guess = state.plan.estimate if state.plan is not None else None
    limit = state.counts.limit  # None: not measured yet, "": no limit will
    if limit is None:
        limit = guess.limit if guess is not None else ""
    return (text_row(clip_text(limit, NAMES), "wait", wrap=True),) if limit else ()


def _price(dollars: float) -> str:
    """Return a price; one below a cent in cents, because zeros after a point are hard to read."""
    if not 0 < dollars < CENT:
        return format_money(dollars)
    cents = dollars / CENT
    return f"{cents:.2g} cents" if cents >= LEAST else f"less than {LEAST} cents"


def _failures(counts: MapCounts) -> tuple[Node, ...]:
    """Return the failures by kind, in one line."""
    failures = [(kind, number) for kind, number in counts.failures.items() if kind != STOPPED]
    if not failures:
        return ()
    named = [f"{number:,} {describe_failure(kind)}" for kind, number in failures[:KINDS]]
    further_kinds = len(failures) - KINDS
    text = join_parts(*named, f"{further_kinds:,} more kinds" if further_kinds > 0 else "")
    left = (T("✕ ", tone="bad", label="Failed:"), T(text, tone="bad"))
    return (Row(left, wrap=True),)


def _table(rows: tuple[Line, ...], state: MapCard) -> Table:
    shown, counts = rows[-SHOWN:], state.counts
    shared = _common_beginning([line.prompt for line in shown])
    unshown = counts.total - len(shown)
    kind_of_rows = "a sample" if counts.sample else "the latest"
    note = f"{kind_of_rows} of {_asked(state)}" if unshown > 0 else ""
    columns = ("row", "prompt", "answer", "status", "time")
    return Table(
        columns, tuple(_row(line, shared) for line in shown), note, figures=(0, 4), cut=(1, 2)
    )


def _common_beginning(prompts: list[str]) -> int:
    """Return the length of the prompts' common beginning, in whole words; 0 if it is short.

    It comes from the template and would leave no room for what differs.
    """
    least, most = min(prompts), max(prompts)  # in the order of text; the others are between them
    pairs = enumerate(zip(least, most, strict=False))
    alike = next((n for n, letters in pairs if letters[0] != letters[1]), len(least))
    whole_words = least.rfind(" ", 0, alike) + 1
    return whole_words if len(prompts) >= FEW and whole_words >= WORTH else 0


def _row(line: Line, same: int) -> tuple[str, ...]:
    mark, word = STATUS.get(line.status, ("○", clip_text(line.status, 20)))
    prompt = clip_text(("…" if same else "") + line.prompt[same:], WORDS)
    answered = clip_text(line.answered, WORDS)
    time = format_duration(line.seconds) if line.seconds else ""
    return (f"{line.position:,}", prompt, answered, f"{mark} {word}", time)
