"""Confidence intervals of means, of shares and of paired differences.

A mean has Student's t interval. A share of yes-or-no scores has Wilson's (1927), which keeps its
coverage near 0 and 1, where t does not. The paired difference of two shares has Newcombe's "square
and add" (1998, method 10). Only the quantile of Student's t would need SciPy; tests compare every
value with SciPy's, and measure the coverage by simulation.

Rule: too few rows, or rows that differ only by the rounding of floats, have no interval: it would
claim a certainty that the rows do not give.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import atan, cos, fsum, pi, sin, sqrt
from statistics import NormalDist

import msgspec

from ...errors import UsageError

FEWEST = 10  # rows that an interval needs
LEVEL = 0.95  # the share of samples whose interval covers the true value
_ROUNDING = 1e-12  # values that differ less than this, relative to their operands, count as equal
# up to so many degrees of freedom t is computed by a sum (`t_inside`), and beyond by `_expand_t`,
# whose four terms are exact to 1e-12 there
_MOST_SUMMED = 1000


class Interval(msgspec.Struct, frozen=True):
    """An interval from `low` to `high` that covers the true value in a share `level` of samples.

    `method` names the formula: t, Wilson or Newcombe.
    """

    low: float
    high: float
    level: float
    method: str

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high

    def within(self, low: float, high: float) -> Interval:
        """Return the part of the interval between `low` and `high`."""
        return msgspec.structs.replace(self, low=max(self.low, low), high=min(self.high, high))


def check_level(level: float) -> float:
    """Return the level. Raises UsageError unless it is between 0 and 1, apart from rounding."""
    try:
        is_share = 0.5 < (1 + level) / 2 < 1  # rounded as in `_normal_quantile`
    except TypeError:  # not a number
        is_share = False
    if not is_share:
        raise UsageError(f"level={level!r} is not a share between 0 and 1. Write 0.95 for 95 %.")
    return level


def exact_mean(values: Sequence[float]) -> float:
    """Return the mean, correctly rounded whatever the order of the values."""
    return fsum(values) / len(values)


def deviation(values: Sequence[float]) -> float:
    """Return the standard deviation of a sample (n - 1); 0.0 for one value."""
    middle = exact_mean(values)
    return sqrt(fsum((v - middle) ** 2 for v in values) / max(len(values) - 1, 1))


def mean_interval(
    values: Sequence[float], level: float = LEVEL, *, operands: Sequence[float] = ()
) -> Interval | None:
    """Return the t interval of a mean; None for few values, or if all are equal up to rounding.

    `operands`: the numbers that were subtracted to get `values`. Their size bounds the rounding:
    0.7 - 0.5 and 0.3 - 0.1 differ in the last digit.
    """
    if len(values) < FEWEST:
        return None
    if max(values) - min(values) <= _ROUNDING * max(map(abs, (*values, *operands))):
        return None
    half = t_critical(level, len(values) - 1) * deviation(values) / sqrt(len(values))
    middle = exact_mean(values)
    return Interval(middle - half, middle + half, level, "t")


def wilson_interval(yes: int, total: int, level: float = LEVEL) -> Interval | None:
    """Return Wilson's interval of the share `yes / total`; None for few rows."""
    if total < FEWEST:
        return None
    return Interval(*_wilson_bounds(yes, total, _normal_quantile(level)), level, "Wilson")


def newcombe_interval(
    both: int, only_a: int, only_b: int, neither: int, level: float = LEVEL
) -> Interval | None:
    """Return Newcombe's interval of a difference, share of b minus share of a, over the same rows.

    The arguments count the rows that score 1 in both a and b, in one of them, in neither. None for
    few rows.
    Source: R. G. Newcombe, Statistics in Medicine 17 (1998), 2635-2650, method 10.
    """
    rows = both + only_a + only_b + neither
    if rows < FEWEST:
        return None
    z = _normal_quantile(level)
    a, b = (both + only_a) / rows, (both + only_b) / rows
    low_a, high_a = _wilson_bounds(both + only_a, rows, z)
    low_b, high_b = _wilson_bounds(both + only_b, rows, z)
    phi = _correlation(both, only_a, only_b, neither)
    down = _join_distances(b - low_b, high_a - a, phi)
    up = _join_distances(high_b - b, a - low_a, phi)
    return Interval(b - a - down, b - a + up, level, "Newcombe")


def _wilson_bounds(yes: int, total: int, z: float) -> tuple[float, float]:
    """Return (low, high); `z`: see `_normal_quantile`."""
    share, square = yes / total, z * z
    middle = (share + square / (2 * total)) / (1 + square / total)
    variance = share * (1 - share) / total + square / (4 * total * total)
    half = z * sqrt(variance) / (1 + square / total)
    # the limits of these two shares are exactly 0 and 1; rounding would miss them
    return 0.0 if yes == 0 else middle - half, 1.0 if yes == total else middle + half


def _correlation(both: int, only_a: int, only_b: int, neither: int) -> float:
    """Return the phi coefficient of the pairs, corrected for continuity where it is positive."""
    spread = (both + only_a) * (only_b + neither) * (both + only_b) * (only_a + neither)
    if not spread:
        return 0.0
    cross = both * neither - only_a * only_b
    rows = both + only_a + only_b + neither
    corrected = max(cross - rows / 2, 0.0) if cross > 0 else cross
    return corrected / sqrt(spread)


def _join_distances(first: float, second: float, phi: float) -> float:
    """Return how far one limit of Newcombe's interval lies from the difference of the shares.

    `first`, `second`: the distances of the two shares from their own Wilson limits. `phi`: the
    correlation of the pairs.
    """
    return sqrt(max(first * first - 2 * phi * first * second + second * second, 0.0))


def _normal_quantile(level: float) -> float:
    """Return the z for which a share `level` of the normal distribution lies in -z to z."""
    return NormalDist().inv_cdf((1 + level) / 2)


@lru_cache(maxsize=256)
def t_critical(level: float, degrees: int) -> float:
    """Return the t for which a share `level` of Student's distribution lies between -t and t."""
    if degrees > _MOST_SUMMED:
        return _expand_t(_normal_quantile(level), degrees)
    # double `high` until t lies below it, then halve the range until floats are neighbours
    low, high = 0.0, 1.0
    while t_inside(high, degrees) < level:
        low, high = high, high * 2
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if t_inside(middle, degrees) < level else (low, middle)
    return middle


def t_inside(t: float, degrees: int) -> float:
    """Return the share of Student's distribution between -t and t.

    A finite sum of positive terms. Source: Abramowitz and Stegun, 26.7.3 and 26.7.4.
    """
    angle = atan(t / sqrt(degrees))
    square = cos(angle) ** 2
    odd = degrees % 2
    term = cos(angle) if odd else 1.0
    terms = [term] if degrees > 1 else []
    for step in range(2 + odd, degrees - 1, 2):
        term *= square * (step - 1) / step
        terms.append(term)
    inside = sin(angle) * fsum(terms)
    return 2 / pi * (angle + inside) if odd else inside


def _expand_t(x: float, degrees: int) -> float:
    """Return t from the normal quantile `x`. Source: Abramowitz and Stegun, 26.7.5."""
    powers = (
        (x**3 + x) / 4,
        (5 * x**5 + 16 * x**3 + 3 * x) / 96,
        (3 * x**7 + 19 * x**5 + 17 * x**3 - 15 * x) / 384,
        (79 * x**9 + 776 * x**7 + 1482 * x**5 - 1920 * x**3 - 945 * x) / 92160,
    )
    return x + fsum(each / degrees**n for n, each in enumerate(powers, 1))
