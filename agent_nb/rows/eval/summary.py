"""Renders an evaluation or a comparison as a short static page, and as one line of text.

The page also lists the rows worth looking at, because a score does not show what to change.

Rule: secrets are removed before a text is cut, because half a secret would not be recognised. The
nodes of the view escape and bound the texts of models and data.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal

from ...models import collect_secrets
from ...view import (
    Fold,
    Node,
    Page,
    Row,
    Section,
    Stack,
    T,
    Table,
    clip_text,
    count_noun,
    describe_failure,
    format_count,
    format_money,
    join_parts,
    page_forms,
)
from ...wire import Redaction
from ..map.table.rows import Rows
from .compared import Compared, changed_pairs
from .evaluated import Evaluated, Spent
from .intervals import Interval
from .score_frame import format_answer
from .scores import UNSCORED, ScoredRow

TABLE_ROWS = 10  # the most that a table shows
CELL_LENGTH = 80  # the most characters of a value
DATA_COLUMNS = 2  # the most columns of the data that a table shows
NONE = "–"  # shown for an unknown figure
_LARGEST_INTEGER = 1e15  # a larger score is written with an exponent


def format_score(value: float | None, *, signed: bool = False) -> str:
    """Return a score with three decimals; from 100 with four digits; from 1,000 as an integer.

    Return `NONE` for None.
    """
    if value is None:
        return NONE
    value = round(value, 3) or 0.0  # no -0.000
    size, form = abs(value), ",.4g"
    if size < 100:
        form = ".3f"
    elif 1000 <= size < _LARGEST_INTEGER:
        form = ",.0f"
    return f"{value:{'+' if signed else ''}{form}}".replace("-", "−")


def format_interval(interval: Interval | None, *, signed: bool = False) -> str:
    """Return an interval as `0.790 to 0.881`."""
    if interval is None:
        return NONE
    return f"{format_score(interval.low, signed=signed)} to {format_score(interval.high, signed=signed)}"


def evaluation_line(evaluation: Evaluated) -> str:
    """Return an evaluation in one line of text."""
    name = f"{_clip_name(_make_redaction(), evaluation.name, 60)}: " if evaluation.name else ""
    interval = f" ({format_interval(evaluation.interval)})" if evaluation.interval else ""
    return join_parts(
        f"{name}{format_score(evaluation.mean)}{interval}",
        evaluation.words,
        *describe_unscored(evaluation),
    )


def comparison_line(comparison: Compared) -> str:
    """Return a comparison in one line of text."""
    interval = (
        f" ({format_interval(comparison.interval, signed=True)})" if comparison.interval else ""
    )
    hide = _make_redaction()
    a, b = (_clip_name(hide, name, 60) for name in comparison.names)
    return join_parts(
        f"{b} − {a}: {format_score(comparison.difference, signed=True)}{interval}",
        comparison.words,
        describe_changes(comparison),
    )


def describe_unscored(evaluation: Evaluated) -> list[str]:
    """Return, in words, how many answers have no score, and how they count; [] if none."""
    remarks = []
    if kinds := evaluation.failures:
        named = ", ".join(f"{n:,} {describe_failure(kind)}" for kind, n in kinds.items())
        remarks.append(f"{count_noun(sum(kinds.values()), 'answer')} without a score ({named})")
    if evaluation.failed_as is not None and kinds:
        remarks.append(f"each counts as {evaluation.failed_as:g}")
    elif evaluation.failed:
        remarks.append(f"{count_noun(evaluation.failed, 'row')} left out")
    return remarks


def describe_changes(comparison: Compared) -> str:
    """Return how many rows changed, in words."""
    return ", ".join(
        f"{n:,} {change}" for change, n in comparison.changes.items() if n or change != "missing"
    )


def find_lowest(evaluation: Evaluated) -> list[ScoredRow]:
    """Return the rows that score less than the highest score, the lowest first."""
    scores = {row.position: row.score for row in evaluation.scored if row.score is not None}
    highest = max(scores.values(), default=0.0)
    lower = [r for r in evaluation.scored if scores.get(r.position, highest) < highest]
    return sorted(lower, key=lambda row: (scores[row.position], row.position))


def render_evaluation(evaluation: Evaluated) -> dict[str, str]:
    """Return the static forms of an evaluation: MIME type -> text."""
    hide = _make_redaction()
    lowest_rows = find_lowest(evaluation)
    rows_with_errors = [r for r in evaluation.scored if r.error]
    unsteady = f"the repeats differ in {count_noun(evaluation.unsteady, 'row')}"
    nodes: list[Node] = [
        _figure_line(
            format_score(evaluation.mean),
            evaluation.interval,
            _clip_name(hide, evaluation.name, 80),
        ),
        _muted_line(
            evaluation.words,
            f"score: {hide.value(evaluation.scored_by)}" if evaluation.scored_by else "",
            unsteady if evaluation.repeats > 1 else "",
        ),
        *(_text_line(T(word, tone="bad")) for word in describe_unscored(evaluation)),
        _muted_line(*_describe_cost(evaluation)),
    ]
    if lowest_rows:
        is_single = evaluation.repeats == 1
        table = _scores_table(
            hide,
            evaluation.data,
            [(row,) for row in lowest_rows],
            ("",),
            has_answers=is_single,
            has_reasons=is_single and evaluation.judged,
        )
        nodes.append(_folded_table("Rows with the lowest scores", table))
    if rows_with_errors:
        table = _faults_table(hide, rows_with_errors)
        nodes.append(_folded_table("Answers without a score", table))
    return page_forms(_wrap_page("evaluation", nodes))


def render_comparison(comparison: Compared) -> dict[str, str]:
    """Return the static forms of a comparison: MIME type -> text."""
    hide = _make_redaction()
    a, b = comparison.names
    head = _figure_line(
        format_score(comparison.difference, signed=True),
        comparison.interval,
        _clip_name(hide, f"{b} − {a}", 80),
        signed=True,
    )
    nodes: list[Node] = [
        head,
        _verdict_line(comparison, hide.value(comparison.verdict)),
        _muted_line(comparison.words),
        _sides_table(hide, comparison),
        _text_line(T("Rows: ", tone="muted"), T(describe_changes(comparison))),
        *(_text_line(T(hide.value(note), tone="wait")) for note in comparison.notes),
    ]
    is_single = comparison.a.repeats == comparison.b.repeats == 1
    sides = [f" {_clip_name(hide, name, 30)}" for name in comparison.names]
    for change, title in (("worse", "Rows that got worse"), ("improved", "Rows that improved")):
        pairs = [(p.a, p.b) for p in changed_pairs(comparison.pairs) if p.change == change]
        if pairs:
            table = _scores_table(hide, comparison.a.data, pairs, sides, has_answers=is_single)
            nodes.append(_folded_table(f"{title} ({len(pairs):,})", table))
    return page_forms(_wrap_page("comparison", nodes))


def _make_redaction() -> Redaction:
    return Redaction(collect_secrets())


def _clip_name(hide: Redaction, name: str, limit: int) -> str:
    return clip_text(hide.value(name), limit)


def _wrap_page(label: str, parts: Sequence[Node]) -> Page:
    return Page(label, (Section("summary", Stack(tuple(parts))),))


def _figure_line(figure: str, interval: Interval | None, name: str, *, signed: bool = False) -> Row:
    level = f"{interval.level * 100:g} % interval " if interval else "no interval"
    return Row(
        (
            T(f"{name}  " if name else "", tone="muted"),
            T(figure, bold=True),
            T(f"  {level}", tone="muted"),
            T(format_interval(interval, signed=signed) if interval else ""),
        ),
        wrap=True,
    )


def _verdict_line(comparison: Compared, verdict: str) -> Row:
    """Return the verdict, coloured by the side of 0 on which the whole interval is."""
    tone: Literal["ok", "bad", "wait", ""] = ""
    if (interval := comparison.interval) is not None:
        tone = "ok" if interval.low > 0 else "bad" if interval.high < 0 else "wait"
    return _text_line(T(verdict, tone=tone, bold=True))


def _text_line(*texts: T) -> Row:
    return Row(texts, wrap=True)


def _muted_line(*texts: str) -> Row:
    return _text_line(T(join_parts(*texts), tone="muted"))


def _folded_table(title: str, node: Node) -> Fold:
    return Fold((Row((T(title),)),), (node,), title=title)


def _describe_cost(evaluation: Evaluated) -> Iterator[str]:
    repeats = f" × {evaluation.repeats}" if evaluation.repeats > 1 else ""
    yield f"{count_noun(evaluation.rows, 'row')}{repeats}"
    yield _format_spent(evaluation.answering + evaluation.judging)
    if evaluation.judging.tokens:
        yield f"of which the judge {_format_spent(evaluation.judging)}"


def _format_spent(spent: Spent) -> str:
    cost = format_money(spent.cost) if spent.cost is not None else ""
    return ", ".join(filter(None, (f"{format_count(spent.tokens)} tokens", cost)))


def _sides_table(hide: Redaction, comparison: Compared) -> Table:
    """Return both sides and their difference as a table."""
    rows = [
        (
            _clip_name(hide, name, 60),
            format_score(side.mean),
            format_interval(side.interval),
            f"{side.rows - side.failed:,}",
            f"{spent.tokens:,}",
            NONE if spent.cost is None else format_money(spent.cost),
        )
        for name, side, spent in zip(
            comparison.names, (comparison.a, comparison.b), comparison.spent, strict=True
        )
    ]
    dollars = comparison.cost
    difference_row = (
        "difference",
        format_score(comparison.difference, signed=True),
        format_interval(comparison.interval, signed=True),
        f"{comparison.rows:,}",
        f"{comparison.tokens:+,}".replace("-", "−"),
        NONE if dollars is None else f"{'−' if dollars < 0 else '+'}{format_money(abs(dollars))}",
    )
    columns = ("", "mean", "interval", "rows", "tokens", "cost")
    return Table(columns, (*rows, difference_row), figures=(1, 2, 3, 4, 5))


def _scores_table(
    hide: Redaction,
    data: Rows,
    lines: Sequence[Sequence[ScoredRow]],
    sides: Sequence[str],
    *,
    has_answers: bool,
    has_reasons: bool = False,
) -> Table:
    """Return a table of scored rows: a line has the same row of each side.

    `sides`: what follows "answer" and "score" in the names of the columns, such as " a".
    `has_answers`: the rows were asked once, so that a score belongs to one answer.
    """
    names = [*data.unique][:DATA_COLUMNS]
    answer_columns = [f"answer{side}" for side in sides] if has_answers else []
    columns = ["row", *_format_cells(hide, names), *answer_columns]
    figures = (0, *range(len(columns), len(columns) + len(sides)))
    columns += [f"score{side}" for side in sides]
    columns += ["reason"] if has_reasons else []
    cells = []
    for line in lines[:TABLE_ROWS]:
        first = line[0]
        texts: list[Any] = list(map(first.values.__getitem__, names))
        texts += [format_answer(row.results[0]) for row in line] if has_answers else []
        scores = [format_score(row.score) for row in line]
        reason = _format_cells(hide, [first.scores[0].reason] if has_reasons else [])
        cells.append((str(first.position), *_format_cells(hide, texts), *scores, *reason))
    return _cut_table(columns, cells, len(lines), figures)


def _faults_table(hide: Redaction, rows: Sequence[ScoredRow]) -> Table:
    cells = [
        (
            str(row.position),
            f"{row.unscored} of {len(row.scores)}",
            # without the row's number, which has a column of its own
            _format_cell(hide, row.error.partition(UNSCORED)[2] or row.error, CELL_LENGTH * 3),
        )
        for row in rows[:TABLE_ROWS]
    ]
    return _cut_table(("row", "answers", "first error"), cells, len(rows), figures=(0,))


def _cut_table(
    columns: Sequence[str], cells: Sequence[tuple[str, ...]], rows: int, figures: Iterable[int]
) -> Table:
    """Return a table of the first of `rows`, with a note on how many it leaves out.

    `figures`: the indexes of the columns with numbers.
    """
    note = ""
    if rows > len(cells):
        note = f"{count_noun(rows - len(cells), 'more row')}: the frame has them all"
    return Table(tuple(columns), tuple(cells), note, figures=tuple(figures))


def _format_cells(hide: Redaction, values: Iterable[Any]) -> list[str]:
    return [_format_cell(hide, value) for value in values]


def _format_cell(hide: Redaction, value: Any, limit: int = CELL_LENGTH) -> str:
    if value is None or value == "":
        return NONE
    return clip_text(hide.value(str(value)), limit)
