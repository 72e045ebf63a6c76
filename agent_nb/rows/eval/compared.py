"""The figures of a comparison of two prompts over the same rows, paired by row (`pairing`).

They stand apart from `comparison` for the reason that `evaluated` gives.

Rule: a row without a score on one side is left out on both, and counted as missing.
"""

from __future__ import annotations

from collections.abc import Sequence

from .evaluated import Evaluated, Spent
from .pairing import Pair
from .statistic import StatisticResult

CHANGES = ("improved", "worse", "same", "missing")


class Compared(StatisticResult, frozen=True, kw_only=True, eq=False):
    """Two evaluations of the same rows, `b` compared with `a`.

    `names`: what texts call `a` and `b`. `pairs` holds each row with its scores on both sides.
    `statistic` is the mean difference with its interval.
    """

    a: Evaluated
    b: Evaluated
    names: tuple[str, str]
    pairs: tuple[Pair, ...]

    @property
    def difference(self) -> float | None:
        """The mean difference, b minus a, over the rows with both scores; None if no row has."""
        return self.statistic.value

    @property
    def verdict(self) -> str:
        """In one sentence, which side scores higher, if the whole interval is on one side of 0."""
        a, b = self.names
        if self.interval is None:
            return "These rows do not show which scores higher: an interval cannot be given."
        if self.interval.low > 0:
            return f"{b} scores higher than {a}: the whole interval is above 0."
        if self.interval.high < 0:
            return f"{b} scores lower than {a}: the whole interval is below 0."
        return "These rows do not show which scores higher: the interval includes 0."

    @property
    def rows(self) -> int:
        """How many rows were compared: those with both scores."""
        return self.statistic.rows

    @property
    def changes(self) -> dict[str, int]:
        """How many rows improved, got worse, stayed the same, and are missing a score."""
        changes = [pair.change for pair in self.pairs]
        return {change: changes.count(change) for change in CHANGES}

    @property
    def cost(self) -> float | None:
        """How many dollars more b cost than a; None if the cost of a side is unknown."""
        if self.a.cost is None or self.b.cost is None:
            return None
        # floats are inexact: 0.3 - 0.1 would be shown as 0.19999999999999998
        return round(self.b.cost - self.a.cost, 12)

    @property
    def tokens(self) -> int:
        """How many tokens more b took than a."""
        return self.b.tokens - self.a.tokens

    @property
    def spent(self) -> tuple[Spent, Spent]:
        """The tokens and dollars of a and of b, judges included."""
        return (self.a.answering + self.a.judging, self.b.answering + self.b.judging)

    @property
    def notes(self) -> list[str]:
        """Sentences on how a and b were scored or asked differently; [] if they were not."""
        a, b = self.a, self.b
        notes = []
        if a.scored_by != b.scored_by:
            notes.append(f"The two are scored differently: {a.scored_by}, and {b.scored_by}.")
        if a.failed_as != b.failed_as:
            notes.append("Answers that failed count differently on the two sides.")
        if a.repeats != b.repeats:
            notes.append(
                f"Each row was asked {_times(a.repeats)}, and {_times(b.repeats)}: tokens and cost count all answers."
            )
        return notes


def changed_pairs(pairs: Sequence[Pair]) -> list[Pair]:
    """Return the pairs that improved or got worse, the largest change first, then in order."""
    changed = [pair for pair in pairs if pair.difference]
    return sorted(changed, key=lambda pair: -abs(pair.difference or 0))


def _times(repeats: int) -> str:
    return {1: "once", 2: "twice"}.get(repeats, f"{repeats} times")
