"""Makes frames of evaluations and comparisons, of the same kind as the data.

Rule: the columns depend on data and options, not on failures. The original columns come first; a
new name that is taken gets the prefix `out_`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...wire import dumps
from ..map.row import RowResult
from ..map.table.frame_out import Columns, add_columns, frame_out, read_columns
from .compared import Compared
from .evaluated import Evaluated
from .pairing import Pair
from .scores import sum_costs

_ROW: Columns = {  # of a ScoredRow
    "answer": ("text", lambda row: format_answer(row.results[0])),
    "score": ("float", lambda row: row.score),
    "_scored": ("count", lambda row: len(row.scores) - row.unscored),
    "_reason": ("text", lambda row: row.scores[0].reason or None),
    "_error": ("text", lambda row: row.error or None),
    "_tokens": ("count", lambda row: sum(r.input + r.written for r in row.results)),
    "_cost": ("float", lambda row: sum_costs(r.cost for r in row.results)),
}
_ANSWER: Columns = {  # of a Score
    "score": ("float", lambda score: score.value),
    "_reason": ("text", lambda score: score.reason or None),
    "_unscored": ("text", lambda score: score.error or None),
}
_PAIR: Columns = {  # of a Pair
    "answer_a": ("text", lambda pair: format_answer(pair.a.results[0])),
    "answer_b": ("text", lambda pair: format_answer(pair.b.results[0])),
    "score_a": ("float", lambda pair: pair.a.score),
    "score_b": ("float", lambda pair: pair.b.score),
    "difference": ("float", lambda pair: pair.difference),
    "change": ("text", lambda pair: pair.change),
}


def row_frame(evaluation: Evaluated) -> Any:
    """Return a frame with a row for each row of the data; with one repeat, also with its answer."""
    rows = evaluation.scored
    single_repeat = evaluation.repeats == 1
    shown = {"answer": single_repeat, "_reason": single_repeat and evaluation.judged}
    columns = {name: column for name, column in _ROW.items() if shown.get(name, True)}
    return add_columns(evaluation.data, [row.position for row in rows], read_columns(columns, rows))


def answer_frame(evaluation: Evaluated) -> Any:
    """Return a frame with a row for each answer: the frame of the map, with the scores."""
    rows = evaluation.scored
    results = [result for row in rows for result in row.results]
    scores = [score for row in rows for score in row.scores]
    columns = {n: c for n, c in _ANSWER.items() if evaluation.judged or n != "_reason"}
    return frame_out(
        evaluation.data, results, evaluation.output, more=read_columns(columns, scores)
    )


def pair_frame(comparison: Compared, pairs: Sequence[Pair]) -> Any:
    """Return a frame with a row for each pair, beside the columns of evaluation `a`'s data."""
    single_repeat = comparison.a.repeats == comparison.b.repeats == 1
    columns = {n: c for n, c in _PAIR.items() if single_repeat or not n.startswith("answer")}
    return add_columns(
        comparison.a.data, [pair.a.position for pair in pairs], read_columns(columns, pairs)
    )


def format_answer(result: RowResult) -> str | None:
    """Return an answer as text, a typed one as JSON; None for one that failed."""
    if result.status != "ok":
        return None
    if result.output is None:
        return result.answer
    return result.output if isinstance(result.output, str) else dumps(result.output)
