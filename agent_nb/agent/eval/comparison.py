"""Whether one prompt does better than another over the same rows: `compare(a, b)`.

Why paired: rows differ in how hard they are. The difference within each row leaves that out, so
that fewer rows show a difference that is there.

Rules
- A row that has no score on one side is left out on both, and counted.
- The answer is an interval of the mean difference, in words that claim no more than it does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from ...errors import UsageError
from .evaluation import Evaluation, Spent
from .intervals import Interval, check_level
from .pairing import Pair, paired
from .statistic import Statistic, of_pairs

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CHANGES = ("improved", "worse", "same", "missing")


class Comparison(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """Two evaluations of the same rows, `b` compared with `a`."""

    a: Evaluation
    b: Evaluation
    names: tuple[str, str]
    pairs: tuple[Pair, ...]
    statistic: Statistic

    @property
    def difference(self) -> float | None:
        """The mean difference, b minus a, over the rows with both scores; None without any."""
        return self.statistic.value

    @property
    def interval(self) -> Interval | None:
        """The confidence interval of the difference, or None; `words` says which, or why not."""
        return self.statistic.interval

    @property
    def words(self) -> str:
        """What the difference and its interval are, in words."""
        return self.statistic.words

    @property
    def verdict(self) -> str:
        """What the interval shows, in one sentence."""
        a, b = self.names
        if self.interval is None:
            return "These rows do not show which scores higher: there is no interval."
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
        found = [pair.change for pair in self.pairs]
        return {change: found.count(change) for change in CHANGES}

    @property
    def changed(self) -> Any:
        """The frame of the rows that improved or got worse, the largest change first."""
        from .score_frame import pair_frame

        return pair_frame(self, changed_pairs(self.pairs))

    @property
    def cost(self) -> float | None:
        """How many dollars more b cost than a; None if unknown."""
        if self.a.cost is None or self.b.cost is None:
            return None
        return self.b.cost - self.a.cost

    @property
    def tokens(self) -> int:
        """How many tokens more b took than a."""
        return self.b.tokens - self.a.tokens

    @property
    def spent(self) -> tuple[Spent, Spent]:
        """What a and b cost, judges included."""
        return (self.a.answering + self.a.judging, self.b.answering + self.b.judging)

    @property
    def notes(self) -> list[str]:
        """What makes the two hard to compare."""
        a, b = self.a, self.b
        found = []
        if a.scored_by != b.scored_by:
            found.append(f"scored differently: {a.scored_by}, and {b.scored_by}")
        if a.repeats != b.repeats:
            found.append(f"{a.repeats} and {b.repeats} repeats")
        if a.failed_as != b.failed_as:
            found.append("answers that failed count differently")
        return found

    @property
    def frame(self) -> Any:
        """One row for each row of a, in the kind of its data, with both scores and the change."""
        from .score_frame import pair_frame

        return pair_frame(self, self.pairs)

    def to_frame(self) -> Any:
        """Return `frame`."""
        return self.frame

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the differences by row, and their mean, with Matplotlib; return the axes.

        Raises MissingExtra without Matplotlib.
        """
        from .plot import plot_differences

        return plot_differences(self, ax)

    def __repr__(self) -> str:
        from .summary import compared_line

        return f"<Comparison {compared_line(self)}>"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        from .summary import of_comparison

        return of_comparison(self)


def compare(
    a: Evaluation,
    b: Evaluation,
    *,
    on: str | Sequence[str] | None = None,
    level: float | None = None,
) -> Comparison:
    """Return how `b` does compared with `a` over the same rows, paired by row.

    `on`: the columns that name a row; by default all its values do. `level`: of the interval; by
    default that of `a`. Raises UsageError if the two are not evaluations of the same rows.
    """
    for side, given in (("a", a), ("b", b)):
        if not isinstance(given, Evaluation):
            raise UsageError(
                f"compare takes two evaluations; {side} is a {type(given).__name__}. Write compare(await agent.eval(…), await other.eval(…))."
            )
    pairs = paired(a, b, (on,) if isinstance(on, str) else on)
    both = [p for p in pairs if p.difference is not None]
    statistic = of_pairs(
        [_known(p.a.score) for p in both],
        [_known(p.b.score) for p in both],
        repeats=a.repeats if a.repeats == b.repeats else 1,
        level=check_level(a.level if level is None else level),
        bounded=a.bounded and b.bounded,
    )
    return Comparison(a=a, b=b, names=_names(a, b), pairs=tuple(pairs), statistic=statistic)


def changed_pairs(pairs: Sequence[Pair]) -> list[Pair]:
    """Return the pairs that improved or got worse, the largest change first, then in order."""
    changed = [pair for pair in pairs if pair.difference]
    return sorted(changed, key=lambda pair: -abs(pair.difference or 0))


def _known(score: float | None) -> float:
    assert score is not None
    return score


def _names(a: Evaluation, b: Evaluation) -> tuple[str, str]:
    """Return two different names."""
    if a.name and b.name and a.name != b.name:
        return a.name, b.name
    return "a", "b"
