"""Evaluations and comparisons as a short static page: figures, what they are, the rows to look at.

Rules
- Nodes of the view, so that texts of models and data are escaped, bounded, and free of secrets:
  these are removed before anything is cut.
- Every figure says in words what it is. A colour only repeats a word.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

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
from .compared import Compared
from .evaluated import Evaluated, Spent
from .intervals import Interval
from .pairing import Pair
from .score_frame import format_answer
from .scores import UNSCORED, ScoredRow

ROWS = 10  # of each table of rows
CELL, COLUMNS = 80, 2  # characters of a value, and columns of the data that are shown
NONE = "–"


def format_score(value: float | None, *, signed: bool = False) -> str:
    """Return a score with three decimals, a large one with four digits; NONE for None."""
    if value is None:
        return NONE
    value = value + 0.0 if value else 0.0  # no -0.000
    form = ".3f" if abs(value) < 100 else ",.4g"
    text = f"{value:{'+' if signed else ''}{form}}"
    return text.replace("-", "−")


def format_interval(interval: Interval | None, *, signed: bool = False) -> str:
    """Return an interval as `0.790 to 0.881`."""
    if interval is None:
        return NONE
    return f"{format_score(interval.low, signed=signed)} to {format_score(interval.high, signed=signed)}"


def evaluation_line(of: Evaluated) -> str:
    """Return an evaluation in one line of text."""
    name = f"{clip_text(of.name, 60)}: " if of.name else ""
    interval = f" ({format_interval(of.interval)})" if of.interval else ""
    return join_parts(f"{name}{format_score(of.mean)}{interval}", of.words, *unscored(of))


def compared_line(of: Compared) -> str:
    """Return a comparison in one line of text."""
    interval = f" ({format_interval(of.interval, signed=True)})" if of.interval else ""
    name = f"{clip_text(of.names[1], 60)} − {clip_text(of.names[0], 60)}"
    return join_parts(
        f"{name}: {format_score(of.difference, signed=True)}{interval}", of.words, changes(of)
    )


def unscored(of: Evaluated) -> list[str]:
    """Return what has no score, and how it counts."""
    remarks = []
    if kinds := of.failures:
        named = ", ".join(f"{n:,} {describe_failure(kind)}" for kind, n in kinds.items())
        remarks.append(f"{count_noun(sum(kinds.values()), 'answer')} without a score ({named})")
    if of.failed_as is not None and kinds:
        remarks.append(f"each counts as {of.failed_as:g}")
    elif of.failed:
        remarks.append(f"{count_noun(of.failed, 'row')} left out")
    return remarks


def changes(of: Compared) -> str:
    """Return how many rows changed, in words."""
    return ", ".join(
        f"{n:,} {change}" for change, n in of.changes.items() if n or change != "missing"
    )


def lowest(of: Evaluated) -> list[ScoredRow]:
    """Return the rows that score less than others, the lowest first."""
    scores = [(row.score, row.position, row) for row in of.scored if row.score is not None]
    best = max((score for score, *_ in scores), default=0.0)
    return [row for score, _, row in sorted(scores, key=lambda s: s[:2]) if score < best]


def of_evaluation(of: Evaluated) -> dict[str, str]:
    """Return the static forms of an evaluation."""
    hide = Redaction(collect_secrets())
    low = lowest(of)
    failed = [r for r in of.scored if r.error]
    steady = f"the repeats differ in {count_noun(of.unsteady, 'row')}" if of.repeats > 1 else ""
    parts: list[Node] = [
        _head(format_score(of.mean), of.interval, of.name),
        _muted(join_parts(of.words, f"score: {of.scored_by}" if of.scored_by else "", steady)),
        *(_line(T(word, tone="bad")) for word in unscored(of)),
        _muted(_spent(of)),
    ]
    if low:
        parts.append(_fold("Rows with the lowest scores", _rows_table(hide, of, low)))
    if failed:
        parts.append(_fold("Answers without a score", _faults_table(hide, failed)))
    return page_forms(_page("evaluation", parts))


def of_comparison(of: Compared) -> dict[str, str]:
    """Return the static forms of a comparison."""
    hide = Redaction(collect_secrets())
    a, b = of.names
    head = _head(format_score(of.difference, signed=True), of.interval, f"{b} − {a}", signed=True)
    parts: list[Node] = [
        head,
        _verdict(of),
        _muted(of.words),
        _sides(of),
        _line(T("Rows: ", tone="muted"), T(changes(of))),
        *(_line(T(note, tone="wait")) for note in of.notes),
    ]
    for change, title in (("worse", "Rows that got worse"), ("improved", "Rows that improved")):
        pairs = [p for p in of.pairs if p.change == change]
        if pairs:
            parts.append(_fold(f"{title} ({len(pairs):,})", _pairs_table(hide, of, pairs)))
    return page_forms(_page("comparison", parts))


def _page(label: str, parts: Sequence[Node]) -> Page:
    return Page(label, (Section("summary", Stack(tuple(parts))),))


def _head(figure: str, interval: Interval | None, name: str, *, signed: bool = False) -> Row:
    level = f"{interval.level * 100:g} % interval " if interval else "no interval"
    return Row(
        (
            T(f"{clip_text(name, 80)}  " if name else "", tone="muted"),
            T(figure, bold=True),
            T(f"  {level}", tone="muted"),
            T(format_interval(interval, signed=signed) if interval else ""),
        ),
        wrap=True,
    )


def _verdict(of: Compared) -> Row:
    """Return the verdict, coloured by the side of 0 on which the whole interval is."""
    if of.interval is None:
        return _line(T(of.verdict, bold=True))
    low, high = of.interval.low, of.interval.high
    return _line(T(of.verdict, tone="ok" if low > 0 else "bad" if high < 0 else "wait", bold=True))


def _line(*texts: T) -> Row:
    return Row(texts, wrap=True)


def _muted(text: str) -> Row:
    return _line(T(text, tone="muted"))


def _fold(title: str, node: Node) -> Fold:
    return Fold((Row((T(title),)),), (node,), title=title)


def _spent(of: Evaluated) -> str:
    both = of.answering + of.judging
    judge = f"of which the judge {_amount(of.judging)}" if of.judging.tokens else ""
    return join_parts(
        count_noun(of.rows, "row") + (f" × {of.repeats}" if of.repeats > 1 else ""),
        _amount(both),
        judge,
    )


def _amount(spent: Spent) -> str:
    cost = format_money(spent.cost) if spent.cost is not None else ""
    return ", ".join(filter(None, (f"{format_count(spent.tokens)} tokens", cost)))


def _sides(of: Compared) -> Table:
    """Return both sides and their difference as a table."""
    rows = [
        (
            clip_text(name, 60),
            format_score(side.mean),
            format_interval(side.interval),
            f"{side.rows - side.failed:,}",
            f"{spent.tokens:,}",
            NONE if spent.cost is None else format_money(spent.cost),
        )
        for name, side, spent in zip(of.names, (of.a, of.b), of.spent, strict=True)
    ]
    more = (
        "difference",
        format_score(of.difference, signed=True),
        format_interval(of.interval, signed=True),
        f"{of.rows:,}",
        f"{of.tokens:+,}".replace("-", "−"),
        NONE if of.cost is None else _signed_money(of.cost),
    )
    columns = ("", "mean", "interval", "rows", "tokens", "cost")
    return Table(columns, (*rows, more), figures=(1, 2, 3, 4, 5))


def _signed_money(dollars: float) -> str:
    return f"{'−' if dollars < 0 else '+'}{format_money(abs(dollars))}"


def _rows_table(hide: Redaction, of: Evaluated, rows: Sequence[ScoredRow]) -> Table:
    names = [*of.data.unique][:COLUMNS]
    judged = of.judged and of.repeats == 1
    columns = ("row", *names, "answer", "score", *(("reason",) if judged else ()))
    cells = [
        (
            str(row.position),
            *_values(hide, row.values, names),
            _cell(hide, format_answer(row.results[0])),
            format_score(row.score),
            *((_cell(hide, row.scores[0].reason),) if judged else ()),
        )
        for row in rows[:ROWS]
    ]
    return _table(columns, cells, len(rows), figures=(0, len(names) + 2))


def _pairs_table(hide: Redaction, of: Compared, pairs: Sequence[Pair]) -> Table:
    names = [*of.a.data.unique][:COLUMNS]
    a, b = (clip_text(name, 30) for name in of.names)
    columns = ("row", *names, f"answer {a}", f"answer {b}", f"score {a}", f"score {b}")
    largest = sorted(pairs, key=lambda pair: -abs(pair.difference or 0))
    cells = [
        (
            str(pair.a.position),
            *_values(hide, pair.a.values, names),
            _cell(hide, format_answer(pair.a.results[0])),
            _cell(hide, format_answer(pair.b.results[0])),
            format_score(pair.a.score),
            format_score(pair.b.score),
        )
        for pair in largest[:ROWS]
    ]
    return _table(columns, cells, len(pairs), figures=(0, len(names) + 3, len(names) + 4))


def _faults_table(hide: Redaction, rows: Sequence[ScoredRow]) -> Table:
    cells = [
        (
            str(row.position),
            f"{row.unscored} of {len(row.scores)}",
            _cell(hide, _why(row), CELL * 3),
        )
        for row in rows[:ROWS]
    ]
    return _table(("row", "answers", "first error"), cells, len(rows), figures=(0,))


def _why(row: ScoredRow) -> str:
    """Return the first error of a row without the row's number, which has a column of its own."""
    return row.error.partition(UNSCORED)[2] or row.error


def _table(
    columns: Sequence[str], cells: Sequence[tuple[str, ...]], rows: int, figures: Iterable[int]
) -> Table:
    left = f"{count_noun(rows - len(cells), 'more row')}: the frame has them all"
    note = left if rows > len(cells) else ""
    return Table(tuple(columns), tuple(cells), note, figures=tuple(figures))


def _values(hide: Redaction, values: Mapping[Any, Any], names: Sequence[str]) -> list[str]:
    return [_cell(hide, values[name]) for name in names]


def _cell(hide: Redaction, value: Any, limit: int = CELL) -> str:
    if value is None or value == "":
        return NONE
    return clip_text(hide.value(value if isinstance(value, str) else str(value)), limit)
