"""The figures of an evaluation: how well a prompt did over the rows of a table.

They stand apart from `evaluation` only because frames, pages and plots read these figures, and an
`Evaluation` makes frames, pages and plots.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import msgspec

from ...agent import OutputType
from ..map.table.rows import Rows
from .scores import ScoredRow, count_failures, sum_costs
from .statistic import StatisticResult, summarize_rows


class Spent(msgspec.Struct, frozen=True):
    """What model calls used: tokens, and dollars as far as known (None: no cost is known)."""

    tokens: int = 0
    cost: float | None = None

    def __add__(self, other: Spent) -> Spent:
        return Spent(self.tokens + other.tokens, sum_costs((self.cost, other.cost)))


class Evaluated(StatisticResult, frozen=True, kw_only=True, eq=False):
    """The scores of one prompt over `len(scored)` rows, each asked `repeats` times.

    `scored_by` names the scorer; `judged`: the scorer is a judge. `level`: of the interval.
    `bounded`: no score of a row can lie outside 0 to 1. `answering` and `judging` are the tokens
    and dollars of the answers and of the judge. `failed_as`: the score of an answer that failed or
    could not be scored (None: left out).
    """

    name: str
    prompt: str
    scored_by: str
    scored: tuple[ScoredRow, ...]
    data: Rows
    repeats: int = 1
    level: float = 0.95
    bounded: bool = False
    judged: bool = False
    failed_as: float | None = None
    answering: Spent = Spent()
    judging: Spent = Spent()
    output: OutputType | None = None

    @classmethod
    def of(cls, scored: Sequence[ScoredRow], *, bounded: bool = False, **about: Any) -> Self:
        """Return the figures of scored rows; `about`: the other fields, by name.

        `bounded`: the scorer's scores lie in 0 to 1; a failed answer may score outside.
        """
        scores = [row.score for row in scored if row.score is not None]
        results = [result for row in scored for result in row.results]
        failed_as = about.get("failed_as")
        bounded = bounded and (failed_as is None or 0 <= failed_as <= 1)
        statistic = summarize_rows(
            scores, repeats=about.get("repeats", 1), level=about.get("level", 0.95), bounded=bounded
        )
        tokens = sum(result.input + result.written for result in results)
        answering = Spent(tokens, sum_costs(result.cost for result in results))
        return cls(
            scored=tuple(scored), statistic=statistic, answering=answering, bounded=bounded, **about
        )

    @property
    def mean(self) -> float | None:
        """The mean score of the rows that have one; None if no row has."""
        return self.statistic.value

    @property
    def rows(self) -> int:
        """How many rows were asked."""
        return len(self.scored)

    @property
    def failed(self) -> int:
        """How many rows have no answer with a score."""
        return sum(row.unscored == len(row.scores) for row in self.scored)

    @property
    def failures(self) -> dict[str, int]:
        """Kind of error -> how many answers have no score because of it."""
        return count_failures(self.scored)

    @property
    def unsteady(self) -> int:
        """How many rows have repeats that score differently."""
        return sum(len({s.value for s in r.scores if s.value is not None}) > 1 for r in self.scored)

    @property
    def tokens(self) -> int:
        """The tokens of answers and judge."""
        return (self.answering + self.judging).tokens

    @property
    def cost(self) -> float | None:
        """The dollars of answers and judge, as far as known; None if no cost is known."""
        return (self.answering + self.judging).cost
