"""The score of many rows, or a difference of scores: value, interval, and both in words.

A figure without its uncertainty misleads. If every row scores 0 or 1, the value is a share with
Wilson's interval, and a paired difference has Newcombe's; otherwise it is a mean with a t interval.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ...view import count_noun
from .intervals import (
    FEWEST,
    Interval,
    exact_mean,
    mean_interval,
    newcombe_interval,
    wilson_interval,
)


class Statistic(msgspec.Struct, frozen=True):
    """A share, a mean or a difference over `rows` rows, its interval, and a description of both.

    `value` is None if there are no rows.
    """

    value: float | None
    interval: Interval | None
    rows: int
    description: str


class StatisticResult(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """The base of a result whose figure is one statistic: an evaluation, or a comparison."""

    statistic: Statistic

    @property
    def interval(self) -> Interval | None:
        """The confidence interval of the figure, or None; `words` names its method, or says why."""
        return self.statistic.interval

    @property
    def words(self) -> str:
        """What the figure and its interval are, in words."""
        return self.statistic.description


def summarize_rows(
    scores: Sequence[float], *, repeats: int, level: float, bounded: bool
) -> Statistic:
    """Return the mean score of rows, each asked `repeats` times; `bounded`: all are in 0 to 1."""
    if not scores:
        return Statistic(None, None, 0, "no row has a score")
    is_share = _is_zero_one(scores)
    if is_share:
        interval = wilson_interval(int(sum(scores)), len(scores), level)
    else:
        interval = mean_interval(scores, level)
    if interval is not None and bounded:
        interval = interval.within(0, 1)
    figure = f"{'share' if is_share else 'mean'} of {count_noun(len(scores), 'row')}"
    figure += _describe_repeats(repeats, agree=is_share and bounded)
    return _make_statistic(figure, scores, interval, "all rows have the same score")


def summarize_pairs(
    a: Sequence[float], b: Sequence[float], *, repeats: int, level: float, bounded: bool
) -> Statistic:
    """Return the mean difference, b minus a, of scores of the same rows in the same order.

    `bounded`: scores are from 0 to 1, so differences are from -1 to 1.
    """
    if not a:
        return Statistic(None, None, 0, "no row has two scores")
    differences = [score_b - score_a for score_a, score_b in zip(a, b, strict=True)]
    is_share = _is_zero_one([*a, *b])
    if is_share:
        pairs = [*zip(a, b, strict=True)]
        # rows by score: both 1, only a, only b, neither
        cells = (pairs.count((1, 1)), pairs.count((1, 0)), pairs.count((0, 1)), pairs.count((0, 0)))
        interval = newcombe_interval(*cells, level)
    else:
        interval = mean_interval(differences, level, operands=[*a, *b])
    if interval is not None and bounded:
        interval = interval.within(-1, 1)
    noun = "difference of two shares over" if is_share else "mean difference of"
    figure = f"{noun} the same {count_noun(len(a), 'row')}"
    figure += _describe_repeats(repeats, agree=is_share and bounded)
    return _make_statistic(figure, differences, interval, "all rows differ by the same")


def _is_zero_one(scores: Sequence[float]) -> bool:
    return all(score in (0, 1) for score in scores)


def _describe_repeats(repeats: int, *, agree: bool) -> str:
    """Return in words how repeats make the score of a row. `agree`: no row has differing repeats.

    A row mean of 0 or 1 proves that only for bounded scores: -1 and 1 have the mean 0 too.
    """
    if repeats == 1:
        return ""
    return f", each {'the same in all' if agree else 'the mean of'} {repeats} repeats"


def _make_statistic(
    figure: str, values: Sequence[float], interval: Interval | None, no_spread: str
) -> Statistic:
    """Return the mean of `values`; its description names the `figure` and the interval.

    `no_spread`: the reason to give if enough values have no interval.
    """
    if interval is not None:
        words = f"{interval.level * 100:g} % {interval.method} interval"
    elif len(values) < FEWEST:
        words = f"no interval: fewer than {FEWEST} rows"
    else:
        words = f"no interval: {no_spread}"
    return Statistic(exact_mean(values), interval, len(values), f"{figure}; {words}")
