"""Which figure stands for many rows, with which interval, and how it is called in words.

Rules
- Rows that score 0 or 1 have a share: Wilson's interval, Newcombe's for a paired difference. All
  other rows have a mean, and a t interval. One wrong repeat of one row makes it a mean.
- An interval ends where scores end, if they cannot lie outside 0 to 1.
- If an interval is missing, the description gives the reason.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from .intervals import (
    FEWEST,
    Interval,
    exact_mean,
    mean_interval,
    newcombe_interval,
    wilson_interval,
)


class Statistic(msgspec.Struct, frozen=True):
    """A figure over `rows` rows, its interval, and what both are."""

    value: float | None
    interval: Interval | None
    rows: int
    description: str


class StatisticResult(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """The base of a result whose figure is one statistic: an evaluation, or a comparison."""

    statistic: Statistic

    @property
    def interval(self) -> Interval | None:
        """The confidence interval of the figure, or None; `words` says which, or why not."""
        return self.statistic.interval

    @property
    def words(self) -> str:
        """What the figure and its interval are, in words."""
        return self.statistic.description


def of_rows(scores: Sequence[float], *, repeats: int, level: float, bounded: bool) -> Statistic:
    """Return the mean score of rows. `bounded`: scores are from 0 to 1."""
    share = _single(scores)
    of = f"{'share' if share else 'mean'} of {_rows(len(scores))}{_repeated(repeats, share)}"
    if not scores:
        return Statistic(None, None, 0, "no row has a score")
    interval = (
        wilson_interval(int(sum(scores)), len(scores), level)
        if share
        else mean_interval(scores, level)
    )
    if interval is not None and bounded:
        interval = interval.within(0, 1)
    same = "all rows have the same score"
    return Statistic(
        exact_mean(scores), interval, len(scores), f"{of}; {_said(interval, scores, same)}"
    )


def of_pairs(
    a: Sequence[float], b: Sequence[float], *, repeats: int, level: float, bounded: bool
) -> Statistic:
    """Return the mean difference, b minus a, of scores of the same rows in the same order."""
    if not a:
        return Statistic(None, None, 0, "no row has two scores")
    differences = [after - before for before, after in zip(a, b, strict=True)]
    shares = _single([*a, *b])
    if shares:
        pairs = [*zip(a, b, strict=True)]
        cells = (pairs.count((1, 1)), pairs.count((1, 0)), pairs.count((0, 1)), pairs.count((0, 0)))
        interval = newcombe_interval(*cells, level)
    else:
        interval = mean_interval(differences, level)
    if interval is not None and bounded:
        interval = interval.within(-1, 1)
    what = "difference of two shares over" if shares else "mean difference of"
    return Statistic(
        exact_mean(differences),
        interval,
        len(a),
        f"{what} the same {_rows(len(a))}{_repeated(repeats, shares)}; {_said(interval, differences, 'all rows differ by the same')}",
    )


def _single(scores: Sequence[float]) -> bool:
    return bool(scores) and all(score in (0, 1) for score in scores)


def _rows(count: int) -> str:
    return f"{count:,} row{'' if count == 1 else 's'}"


def _repeated(repeats: int, single: bool) -> str:
    if repeats == 1:
        return ""
    return (
        f", each the same in all {repeats} repeats"
        if single
        else f", each the mean of {repeats} repeats"
    )


def _said(interval: Interval | None, values: Sequence[float], same: str) -> str:
    if interval is not None:
        return f"{interval.level * 100:g} % {interval.method} interval"
    return f"no interval: {f'fewer than {FEWEST} rows' if len(values) < FEWEST else same}"
