"""The scores of answers, and of rows: each row counts once, however often it was asked.

The repeats of one row tend to agree. Counted separately, they would make the interval too narrow.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import fsum
from typing import Any

import msgspec

from ..map.row import RowResult
from .intervals import exact_mean

SCORE = "scoring"  # the `kind` of a Score whose answer could not be scored
UNSCORED = " could not be scored: "  # stands in its `error`, between the row and the reason


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """An answer to score: the result of its run, the values of its row, and its prompt.

    `position` and `repeat` count from 0. `value` is the typed answer, or the text of an answer that
    has no type. `pictures` returns the pictures of the prompt.
    """

    position: int
    repeat: int
    result: RowResult
    row: Mapping[str, Any]
    prompt: str = ""
    pictures: Callable[[], Sequence[Any]] = tuple
    value: Any = None


class Score(msgspec.Struct, frozen=True):
    """The score (`value`) of one answer, or the code (`kind`) and message of its error.

    `reason`: why a judge chose this score.
    """

    value: float | None = None
    kind: str = ""
    error: str = ""
    reason: str = ""


class Scores(msgspec.Struct, frozen=True):
    """Scores in the order of the candidates, and the tokens and dollars that the scoring used.

    `bounded`: no score can lie outside 0 to 1. `cost`: None if it is unknown.
    """

    each: Sequence[Score]
    bounded: bool
    tokens: int = 0
    cost: float | None = None


class ScoredRow(msgspec.Struct, frozen=True):
    """One row: its position in the data, the digest of its values, its answers and their scores.

    `failed`: the score of an answer that has none (None: left out).
    """

    position: int
    key: str
    values: Mapping[str, Any]
    results: tuple[RowResult, ...]
    scores: tuple[Score, ...]
    failed: float | None = None

    @property
    def score(self) -> float | None:
        """The mean score of the answers; None if none counts."""
        all_values = [self.failed if s.value is None else s.value for s in self.scores]
        values = [value for value in all_values if value is not None]
        return exact_mean(values) if values else None

    @property
    def error(self) -> str:
        """The first error of the row's answers; "" if they have none."""
        return next((s.error for s in self.scores if s.error), "")

    @property
    def unscored(self) -> int:
        """How many of its answers have no score of their own."""
        return sum(s.value is None for s in self.scores)


def count_failures(rows: Iterable[ScoredRow]) -> dict[str, int]:
    """Return how many answers have no score of their own, by kind, the most frequent first."""
    counts = Counter(s.kind for row in rows for s in row.scores if s.value is None)
    return dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))


def sum_costs(costs: Iterable[float | None]) -> float | None:
    """Return the sum of the known costs, in dollars; None if no cost is known."""
    known_costs = [c for c in costs if c is not None]
    return round(fsum(known_costs), 12) if known_costs else None
