"""A map: its plan, a bar of its progress, and what became of its rows.

Why: a map may take hours and dollars, so its card says early how long, how much, and what fails. A
limit that will end it before its last row is announced while there is time to stop it.
"""

from __future__ import annotations

from itertools import takewhile

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
from ..state.map import STOPPED, Estimate, MapCard, MapCounts, MapPlan, RowLine
from .base import Context

MOST_ROWS = 12  # of the table
MOST_KINDS = 6  # of failures that are named
LONGEST_CELL = 160  # characters of a prompt or an answer; most pages are too narrow to show all
LONGEST_DETAIL = 200  # characters of the columns' names, of how it was estimated, of a limit
# a common beginning of so many characters is left out, if so many prompts are shown
SHORTEST_COMMON, FEWEST_PROMPTS = 12, 3
DAY = 86_400  # seconds; a longer time left is not shown
CENT = 0.01  # dollars
LEAST_CENTS = 0.01  # a lower price is written as `less than` this

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
    measured = counts.forecast is not None
    if over:
        first_line = describe_outcome(state)
    else:
        first_line = describe_plan(state, with_estimate=not measured)
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


def describe_plan(state: MapCard, *, with_estimate: bool = True) -> Row:
    """Return what the map is about to do, in one line."""
    plan, remarks = state.plan, ""
    if plan is not None:
        answered = f"{plan.known:,} answered already" if plan.known else ""
        estimate = _describe_estimate(plan.estimate) if with_estimate else ""
        remarks = join_parts(answered, estimate, _describe_requests(plan))
    return Row((T(_describe_size(state), bold=True), T(f"  {remarks}", tone="muted")), wrap=True)


def describe_outcome(state: MapCard) -> Row:
    """Return what became of the rows, in one line."""
    counts = state.counts
    unasked = counts.total - counts.done
    rows = count_noun(counts.total, "row")
    size = _describe_size(state)
    total = f"{rows} answered" if size == rows else f"{counts.total:,} answered ({size})"
    parts: list[T] = [T(f"{counts.ok:,} of {total}", bold=True)]
    parts += [T(f"  {counts.failed:,} failed", tone="bad")] if counts.failed else []
    parts += [T(f"  {counts.stopped:,} stopped", tone="wait")] if counts.stopped else []
    parts += [T(f"  {unasked:,} not asked", tone="wait")] if unasked > 0 else []
    reused = f"{counts.known:,} of them found, not asked again" if counts.known else ""
    tokens = f"{format_count(counts.tokens)} tokens" if counts.tokens else ""
    remarks = join_parts(reused, tokens, _format_price(counts.cost) if counts.cost else "")
    return Row((*parts, T(f"  {remarks}", tone="muted")), wrap=True)


def describe_pace(state: MapCard, counts: MapCounts) -> str:
    """Return how many rows have ended, the speed, the time left and the cost."""
    left = counts.seconds_left
    cost = "" if counts.cost is None else _format_price(counts.cost)
    forecast = "" if counts.forecast is None else f"of about {_format_price(counts.forecast)}"
    return join_parts(
        f"{counts.done:,} of {_describe_answers(state)}",
        _format_speed(counts.rate) if counts.rate else "",
        f"{format_duration(max(1, round(left)))} left" if left and left < DAY else "",
        f"{cost} {forecast}".strip() if counts.cost else "",
    )


def _describe_size(state: MapCard) -> str:
    """Return the number of rows, and how often each is asked: `20 rows × 3`."""
    plan = state.plan
    if plan is None or plan.repeats <= 1:
        return count_noun(state.counts.total, "row")
    return f"{count_noun(plan.rows, 'row')} × {plan.repeats:,}"


def _describe_answers(state: MapCard) -> str:
    """Return how many answers the map asks for: `20 rows`, or `60 answers` if it repeats rows."""
    repeats = state.plan is not None and state.plan.repeats > 1
    return count_noun(state.counts.total, "answer" if repeats else "row")


def _describe_estimate(estimate: Estimate | None) -> str:
    """Return the tokens and the cost that a map may take, in words; "" if they are unknown."""
    if estimate is None or not (estimate.input or estimate.written):
        return ""
    tokens = f"about {format_count(estimate.input)} tokens in, {format_count(estimate.written)} out"
    cost = "" if estimate.cost is None else f"about {_format_price(estimate.cost)}"
    return join_parts(tokens, cost)


def _describe_requests(plan: MapPlan) -> str:
    """Return how the rows are asked: how many at once, how fast, where."""
    return join_parts(
        f"{plan.concurrency:,} at once" if plan.concurrency else "",
        f"{plan.rpm:,} requests a minute" if plan.rpm else "",
        f"on {clip_text(plan.where, 40)}" if plan.where else "",
    )


def _format_speed(rate: float) -> str:
    if rate * MINUTE < 1:
        return ""
    return f"{rate:.3g} rows/s" if rate >= 1 else f"{rate * MINUTE:.2g} rows/min"


def _bar(state: MapCard, *, over: bool) -> Bar:
    """Return a bar of the rows that have ended; once the map is over, of those with an answer."""
    counts = state.counts
    if not over:
        return Bar(counts.fraction, describe_pace(state, counts), "run", "rows")
    answered = counts.ok / counts.total if counts.total else 1.0
    label = f"{counts.ok:,} of {_describe_answers(state)}"
    return Bar(answered, label, "ok", "rows answered")


def _details(state: MapCard) -> tuple[Node, ...]:
    """Return what the first line opens to."""
    plan = state.plan
    if plan is None:
        return ()
    basis = plan.estimate.basis if plan.estimate is not None else ""
    lines = {
        "columns": clip_text(", ".join(plan.columns), LONGEST_DETAIL),
        "estimate": join_parts(_describe_estimate(plan.estimate), clip_text(basis, LONGEST_DETAIL)),
        "asked": _describe_requests(plan),
    }
    return tuple(
        Row((T(f"{name}  ", tone="muted"), T(value)), wrap=True)
        for name, value in lines.items()
        if value
    )


def _limit_warning(state: MapCard) -> tuple[Node, ...]:
    """Return a line about the limit that will end the map, as measured, else as estimated."""
    limit = state.counts.limit  # None: not measured yet, "": no limit will
    if limit is None and state.plan is not None and state.plan.estimate is not None:
        limit = state.plan.estimate.limit
    return (text_row(clip_text(limit, LONGEST_DETAIL), "wait", wrap=True),) if limit else ()


def _format_price(dollars: float) -> str:
    """Return a price; one below a cent in cents, because zeros after a point are hard to read."""
    if not 0 < dollars < CENT:
        return format_money(dollars)
    cents = dollars / CENT
    return f"{cents:.2g} cents" if cents >= LEAST_CENTS else f"less than {LEAST_CENTS} cents"


def _failures(counts: MapCounts) -> tuple[Node, ...]:
    """Return the failures by kind, in one line."""
    failures = [(kind, number) for kind, number in counts.failures.items() if kind != STOPPED]
    if not failures:
        return ()
    named = [f"{number:,} {describe_failure(kind)}" for kind, number in failures[:MOST_KINDS]]
    further_kinds = len(failures) - MOST_KINDS
    text = join_parts(*named, f"{further_kinds:,} more kinds" if further_kinds > 0 else "")
    return (Row((T("✕ ", tone="bad", label="Failed:"), T(text, tone="bad")), wrap=True),)


def _table(rows: tuple[RowLine, ...], state: MapCard) -> Table:
    shown, counts = rows[-MOST_ROWS:], state.counts
    common = _measure_common_beginning([line.prompt for line in shown])
    unshown = counts.total - len(shown)
    kind_of_rows = "a sample" if counts.sample else "the latest"
    note = f"{kind_of_rows} of {_describe_answers(state)}" if unshown > 0 else ""
    columns = ("row", "prompt", "answer", "status", "time")
    return Table(
        columns, tuple(_row(line, common) for line in shown), note, figures=(0, 4), cut=(1, 2)
    )


def _measure_common_beginning(prompts: list[str]) -> int:
    """Return the length of the prompts' common beginning, in whole words; 0 if it is short.

    It comes from the template and would leave no room for what differs.
    """
    if len(prompts) < FEWEST_PROMPTS:
        return 0
    first, last = min(prompts), max(prompts)  # in the order of text, the others are between them
    pairs = zip(first, last, strict=False)
    alike = sum(1 for _ in takewhile(lambda letters: letters[0] == letters[1], pairs))
    whole_words = first.rfind(" ", 0, alike) + 1
    return whole_words if whole_words >= SHORTEST_COMMON else 0


def _row(line: RowLine, common: int) -> tuple[str, ...]:
    """Return the cells of a row, without the first `common` characters of its prompt."""
    mark, word = STATUS.get(line.status, ("○", clip_text(line.status, 20)))
    prompt = clip_text(("…" if common else "") + line.prompt[common:], LONGEST_CELL)
    answer = clip_text(line.answer, LONGEST_CELL)
    time = format_duration(line.seconds) if line.seconds else ""
    return (f"{line.position:,}", prompt, answer, f"{mark} {word}", time)
