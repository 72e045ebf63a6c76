"""`agent.eval`: asks every row `repeats` times, and scores every answer.

A model answers the same row differently, and one answer hides that. Asking is a map, and so is
judging: both are recorded, replayed, stored and stopped like a map. Only the choice of a `sample`
by `seed` is random: the same answers give the same figures.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import Any

import msgspec

from ...agent import Configuration, OutputType
from ...errors import UsageError, did_you_mean, unknown_name
from ...wire import plain_value
from ..map.finish import FinalState
from ..map.options import MapOptions
from ..map.row_result import typed_output
from ..map.stream import MapStream, start_map
from ..map.table.rows import Rows, rows_of
from .evaluated import Spent
from .evaluation import Evaluation
from .intervals import check_level
from .judge import JudgeScore
from .pairing import row_key
from .recorded_scores import KIND, compare_scores, scores_payload
from .scores import Candidate, Score, ScoredRow, Scores
from .scoring import LARGEST_SCORE, ColumnScore, FunctionScore, Scorer

EXPECTED = "expected"  # the column that a judge reads by default
_JUDGE_OPTIONS = ("store", "view", "record")  # options of the map that a judge's map has too
_MAP_OPTIONS = ("concurrency", "limit", "on_error", "rpm")  # those of `MapOptions`
_OPTIONS = sorted((*_JUDGE_OPTIONS, *_MAP_OPTIONS, "attachments", "client"))


class EvaluationOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How answers are scored, and over which rows; `Agent.eval` documents the fields."""

    score: Any
    repeats: int
    output: Any
    expected: str | None
    failed: float | None
    sample: int | None
    seed: int
    level: float
    name: str


async def evaluate_prompt(
    agent: Configuration, data: Any, prompt: str, setup: EvaluationOptions, **options: Any
) -> Evaluation:
    """Ask `prompt` for the rows of `data` and return the evaluation; see `Agent.eval`."""
    check_level(setup.level)
    _check_failed(setup.failed)
    _check_options(options)
    shared = {n: options.pop(n) for n in _MAP_OPTIONS if n in options}
    map_options = MapOptions(repeats=setup.repeats, **shared).checked()
    rows = sample_rows(rows_of(data, map_options.limit), setup.sample, setup.seed)
    map_options = msgspec.structs.replace(map_options, limit=None)  # `rows` are cut already
    answer_type = agent.output if setup.output is None else OutputType(setup.output)
    scorer = scorer_of(
        setup.score,
        rows,
        output=answer_type,
        expected=setup.expected,
        options=map_options,
        judge_options={n: options[n] for n in _JUDGE_OPTIONS if n in options},
        folder=agent.folder,
    )
    scoring = Scoring(scorer, rows, answer_type)
    is_judge = isinstance(scorer, JudgeScore)
    # the map's record holds the scores, except a judge's: they are in the record of the judge's map
    finish = None if is_judge else scoring.finish
    stream = start_map(
        agent, rows.data, prompt, map_options, output=setup.output, finish=finish, **options
    )
    await stream
    candidates, scores = await scoring.score(stream)
    return Evaluation.of(
        scored_rows(candidates, scores.each, setup.failed),
        name=str(setup.name) or agent.name,
        prompt=agent.redaction().value(prompt),
        scored_by=scorer.title,
        data=rows,
        repeats=setup.repeats,
        level=setup.level,
        bounded=scores.bounded,
        judged=is_judge,
        failed_as=setup.failed,
        judging=Spent(scores.tokens, scores.cost),
        output=answer_type,
    )


class Scoring:
    """Scores the answers of one map, once for both uses: the map's record, and the evaluation."""

    def __init__(self, scorer: Scorer, rows: Rows, output: OutputType | None) -> None:
        self._scorer, self._rows, self._output = scorer, rows, output
        self._outcome: tuple[list[Candidate], Scores] | None = None

    async def score(self, stream: MapStream) -> tuple[list[Candidate], Scores]:
        """Return the answers of a finished map, and their scores."""
        if self._outcome is None:
            candidates = [
                Candidate(
                    position=row.position,
                    repeat=row.repeat,
                    result=result,
                    row=self._rows.values(row.position),
                    prompt=row.prompt,
                    pictures=partial(stream.pictures, row),
                    value=(
                        result.answer
                        if self._output is None
                        else typed_output(result, self._output)
                    ),
                )
                for row, result in zip(stream.rows, stream.results, strict=True)
            ]
            self._outcome = candidates, await score_candidates(self._scorer, candidates)
        return self._outcome

    async def finish(self, stream: MapStream) -> FinalState:
        """Return the scores of a map as the final state for its record; all rows have ended."""
        candidates, scores = await self.score(stream)
        inputs = self._scorer.inputs(candidates) or {}
        payload = scores_payload(self._scorer.title, candidates, scores.each, inputs)
        return FinalState(KIND, payload, compare_scores)


def scorer_of(
    score: Any,
    rows: Rows,
    *,
    output: OutputType | None,
    expected: str | None,
    options: MapOptions,
    judge_options: Mapping[str, Any],
    folder: str = ".",
) -> Scorer:
    """Return the scorer for the argument `score` of `Agent.eval`. Raises UsageError.

    `output`: the type of the answers. `expected`: the column with the expected answers. `options`,
    `judge_options`: options that the judge's map shares. `folder`: the notebook's.
    """
    if expected is not None and expected not in rows:
        raise UsageError(f"expected={expected!r} names no column. {rows.hint(expected)}")
    column = EXPECTED if expected is None and EXPECTED in rows else expected
    read_column = column if isinstance(score, Configuration) else score
    if isinstance(read_column, str) and (problem := rows.ambiguity(read_column)):
        raise UsageError(f"The answers cannot be scored: {problem}.")
    if isinstance(score, Configuration):
        return JudgeScore(score, column, msgspec.structs.replace(options, repeats=1), judge_options)
    if isinstance(score, str):
        return ColumnScore(score, rows.names, output)
    if callable(score):
        return FunctionScore(score, folder)
    raise UsageError(
        f"score is a {type(score).__name__}. Give a function of (answer, row), the name of the column with the expected value, or an Agent as judge."
    )


def sample_rows(rows: Rows, sample: int | None, seed: int) -> Rows:
    """Return `sample` random rows, in the order of the data, the same for the same `seed`.

    Return all rows if `sample` is None, or at least their number. Raises UsageError for other
    values than whole numbers from 1.
    """
    sample, seed = plain_value(sample), plain_value(seed)  # numbers of NumPy become built-in ones
    if sample is None:
        return rows
    if not isinstance(sample, int) or isinstance(sample, bool) or sample < 1:
        raise UsageError(f"sample={sample!r}: give a whole number of rows, at least 1.")
    if sample >= len(rows):
        return rows
    positions = sorted(random.Random(seed).sample(range(len(rows)), sample))  # noqa: S311  (a sample, not a secret)
    if rows.kind == "pandas":
        return rows_of(rows.data.iloc[positions])
    if rows.kind == "polars":
        return rows_of(rows.data[positions])
    return rows_of([rows.data[position] for position in positions])


def _check_failed(failed: Any) -> None:
    """Raise UsageError unless `failed` is None or a number that can be a score."""
    number = plain_value(failed)
    is_score = isinstance(number, int | float) and abs(number) <= LARGEST_SCORE
    if failed is not None and not is_score:
        raise UsageError(
            f"failed={failed!r}: give the score of a failed answer, such as 0, or None."
        )


def _check_options(options: Mapping[str, Any]) -> None:
    """Raise UsageError for an option that a map does not have."""
    for name in options:
        if name not in _OPTIONS:
            hint = did_you_mean(name, _OPTIONS)
            raise UsageError(unknown_name("option", name, _OPTIONS, hint=hint))


async def score_candidates(scorer: Scorer, candidates: Sequence[Candidate]) -> Scores:
    """Return a score for each candidate; a failed answer has its run's error and no score."""
    answered = [c for c in candidates if c.result.status == "ok"]
    scores = await scorer.score(answered)
    scores_of_answered = iter(scores.each)
    each = [
        next(scores_of_answered)
        if result.status == "ok"
        else Score(None, result.failure, result.error or result.status)
        for result in (candidate.result for candidate in candidates)
    ]
    return msgspec.structs.replace(scores, each=each)


def scored_rows(
    candidates: Sequence[Candidate], scores: Sequence[Score], failed: float | None
) -> list[ScoredRow]:
    """Return the rows with the scores of their answers; the repeats of a row are neighbours."""
    rows = []
    pairs = zip(candidates, scores, strict=True)
    for position, answers in groupby(pairs, key=lambda pair: pair[0].position):
        repeats, row_scores = zip(*answers, strict=True)
        values, results = repeats[0].row, tuple(each.result for each in repeats)
        rows.append(ScoredRow(position, row_key(values), values, results, row_scores, failed))
    return rows
