"""The intervals beside SciPy's values, and how often they cover the truth.

The two tables were computed with SciPy 1.17.1 (`stats.t.ppf`, `binomtest(…).proportion_ci(…,
"wilson")`), so that the tests run without it; where SciPy is installed, it is asked too.
"""

from __future__ import annotations

import random
from math import sqrt

import numpy as np
import pytest

from agent_nb.errors import UsageError
from agent_nb.rows.eval.intervals import (
    FEWEST,
    Interval,
    check_level,
    mean_interval,
    newcombe_interval,
    t_critical,
    wilson_interval,
)

# degrees of freedom, level, quantile
T = (
    (1, 0.8, 3.0776835371752544),
    (1, 0.95, 12.706204736174694),
    (1, 0.999, 636.6192487687897),
    (2, 0.8, 1.8856180831641272),
    (2, 0.95, 4.302652729749462),
    (2, 0.999, 31.599054576445365),
    (3, 0.8, 1.637744353696209),
    (3, 0.95, 3.1824463052837078),
    (3, 0.999, 12.923978636687961),
    (9, 0.8, 1.3830287383966329),
    (9, 0.95, 2.262157162798205),
    (9, 0.999, 4.780912585931217),
    (10, 0.8, 1.372183641110336),
    (10, 0.95, 2.228138851986274),
    (10, 0.999, 4.586893858702708),
    (29, 0.8, 1.311433647301551),
    (29, 0.95, 2.045229642132703),
    (29, 0.999, 3.6594050194663748),
    (49, 0.8, 1.29906878474775),
    (49, 0.95, 2.0095752371292392),
    (49, 0.999, 3.5004428913674035),
    (199, 0.8, 1.2858202092594093),
    (199, 0.95, 1.9719565442517533),
    (199, 0.999, 3.3400865561614634),
    (999, 0.8, 1.2823995700373971),
    (999, 0.95, 1.9623414611334493),
    (999, 0.999, 3.3002924403987666),
    (1000, 0.8, 1.2823987214609247),
    (1000, 0.95, 1.9623390808264083),
    (1000, 0.999, 3.300282648423944),
    (1001, 0.8, 1.2823978745810514),
    (1001, 0.95, 1.9623367052808798),
    (1001, 0.999, 3.3002728760660403),
    (5000, 0.8, 1.2817209053357184),
    (5000, 0.95, 1.9604385517065073),
    (5000, 0.999, 3.2924737233708825),
    (100000, 0.8, 1.2815600314493614),
    (100000, 0.95, 1.9599877075346095),
    (100000, 0.999, 3.2906240314119137),
)
WILSON = (
    (0, 10, 0.95, 0.0, 0.27753279986288926),
    (1, 10, 0.95, 0.017876213095072896, 0.4041500267952385),
    (7, 10, 0.9, 0.4416997958698351, 0.8731234160968021),
    (10, 10, 0.95, 0.7224672001371109, 1.0),
    (50, 200, 0.95, 0.19508168006817497, 0.31434098312045833),
    (81, 263, 0.95, 0.2552885198782742, 0.36620957698280004),
    (999, 1000, 0.99, 0.9915394337800183, 0.9998825836463816),
)


@pytest.mark.parametrize(("degrees", "level", "expected"), T)
def test_the_quantiles_of_t_are_those_of_scipy(degrees, level, expected):
    assert t_critical(level, degrees) == pytest.approx(expected, rel=1e-11)


@pytest.mark.parametrize(("yes", "of", "level", "low", "high"), WILSON)
def test_wilsons_interval_is_that_of_scipy(yes, of, level, low, high):
    found = wilson_interval(yes, of, level)
    assert (found.low, found.high) == pytest.approx((low, high), rel=1e-12, abs=1e-15)


@pytest.mark.extra
def test_means_and_quantiles_agree_with_the_scipy_that_is_installed():
    stats = pytest.importorskip("scipy.stats")
    rng = random.Random(3)
    for rows in (10, 11, 57, 400, 2500):
        values = [rng.gauss(0.4, 2) for _ in range(rows)]
        for level in (0.5, 0.9, 0.95, 0.99):
            theirs = stats.t.interval(level, rows - 1, np.mean(values), stats.sem(values))
            ours = mean_interval(values, level)
            assert (ours.low, ours.high) == pytest.approx(theirs, rel=1e-9)
            assert t_critical(level, rows - 1) == pytest.approx(
                stats.t.ppf((1 + level) / 2, rows - 1), rel=1e-11
            )
        yes = sum(v > 0 for v in values)
        theirs = stats.binomtest(yes, rows).proportion_ci(0.95, "wilson")
        assert (wilson_interval(yes, rows).low, wilson_interval(yes, rows).high) == pytest.approx(
            (theirs.low, theirs.high)
        )


def test_a_mean_has_the_interval_of_the_textbook():
    values = [4.1, 5.2, 3.9, 4.8, 5.0, 4.4, 4.6, 5.1, 4.2, 4.7]
    found = mean_interval(values)
    spread = sqrt(sum((v - 4.6) ** 2 for v in values) / 9)
    assert found == Interval(
        pytest.approx(4.6 - 2.2621571627 * spread / sqrt(10)),
        pytest.approx(4.6 + 2.2621571627 * spread / sqrt(10)),
        0.95,
        "t",
    )
    assert 4.6 in found
    assert 5.2 not in found


def test_few_rows_have_no_interval():
    values = [0.1 * n for n in range(FEWEST - 1)]
    assert mean_interval(values) is None
    assert wilson_interval(3, FEWEST - 1) is None
    assert newcombe_interval(3, 2, 2, FEWEST - 8) is None
    assert mean_interval([*values, 0.5]) is not None
    assert wilson_interval(3, FEWEST) is not None
    assert newcombe_interval(3, 2, 2, FEWEST - 7) is not None


def test_values_that_do_not_differ_have_no_t_interval():
    assert mean_interval([0.25] * 40) is None


def test_the_order_of_the_values_changes_no_digit():
    rng = random.Random(1)
    values = [rng.random() * 10 ** rng.randint(-8, 8) for _ in range(500)]
    shuffled = list(values)
    rng.shuffle(shuffled)
    assert mean_interval(values) == mean_interval(shuffled)


def test_an_impossible_part_is_cut_off():
    assert Interval(-0.1, 1.2, 0.95, "t").within(0, 1) == Interval(0, 1, 0.95, "t")


@pytest.mark.parametrize("level", [0, 1, 95, -0.5, float("nan"), 1 - 1e-16, 1e-17])
def test_a_level_is_a_share(level):
    with pytest.raises(UsageError, match="between 0 and 1"):
        check_level(level)


# both, only a, only b, neither
PAIRS = [(36, 12, 2, 0), (14, 5, 0, 22), (0, 0, 0, 20), (20, 0, 0, 0), (5, 5, 5, 5), (0, 9, 30, 1)]


@pytest.mark.parametrize("pairs", PAIRS)
def test_newcombes_interval_holds_the_difference_and_stays_possible(pairs):
    _, only_a, only_b, _ = pairs
    found = newcombe_interval(*pairs)
    assert (only_b - only_a) / sum(pairs) in found
    assert -1 <= found.low < found.high <= 1


@pytest.mark.parametrize("pairs", PAIRS)
def test_newcombes_interval_is_mirrored_when_the_two_change_places(pairs):
    both, only_a, only_b, neither = pairs
    one, other = newcombe_interval(*pairs), newcombe_interval(both, only_b, only_a, neither)
    assert (one.low, one.high) == pytest.approx((-other.high, -other.low))


def test_newcombes_interval_is_narrower_the_more_the_pairs_agree():
    agree = newcombe_interval(45, 5, 5, 45)
    independent = newcombe_interval(25, 25, 25, 25)
    against = newcombe_interval(5, 45, 45, 5)
    widths = [i.high - i.low for i in (agree, independent, against)]
    assert widths == sorted(widths)
    assert widths[0] < widths[1] < widths[2]


def covered(samples, interval, truth):
    """Return the share of samples whose interval holds the truth; none holds nothing."""
    found = [interval(sample) for sample in samples]
    return sum(i is not None and truth in i for i in found) / len(samples)


SHAPES = {
    "normal": (lambda rng, size: rng.normal(0.6, 0.2, size), 0.6),
    "uniform": (lambda rng, size: rng.random(size), 0.5),
    "mildly skewed": (lambda rng, size: rng.beta(2, 5, size), 2 / 7),
    "mean of five yes or no": (lambda rng, size: rng.binomial(5, rng.beta(4, 2, size)) / 5, 2 / 3),
}


def of_means(shape, rows, samples, level=0.95):
    draw, truth = SHAPES[shape]
    drawn = draw(np.random.default_rng(14), (samples, rows)).tolist()
    return covered(drawn, lambda sample: mean_interval(sample, level), truth)


@pytest.mark.parametrize("shape", SHAPES)
def test_t_covers_within_two_points(shape):
    assert of_means(shape, 50, 2_000) == pytest.approx(0.95, abs=0.02)


@pytest.mark.long
@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
@pytest.mark.parametrize("rows", [50, 100, 400])
@pytest.mark.parametrize("shape", SHAPES)
def test_t_covers_within_two_points_at_every_size_and_level(shape, rows, level):
    assert of_means(shape, rows, 10_000, level) == pytest.approx(level, abs=0.02)


def of_shares(rows, samples, level=0.95):
    """Return the coverage by share, over shares from 0.05 to 0.95."""
    rng = np.random.default_rng(14)
    found = []
    for share in np.linspace(0.05, 0.95, 91):
        counts = np.bincount(rng.binomial(rows, share, samples), minlength=rows + 1)
        inside = [
            share in wilson_interval(yes, rows, level) if n else 0 for yes, n in enumerate(counts)
        ]
        found.append(float(np.dot(inside, counts)) / samples)
    return found


def test_wilson_covers_within_two_points():
    assert np.mean(of_shares(50, 2_000)) == pytest.approx(0.95, abs=0.02)


@pytest.mark.long
@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
@pytest.mark.parametrize("rows", [50, 100, 400])
def test_wilson_covers_within_two_points_at_every_size_and_level(rows, level):
    found = of_shares(rows, 20_000, level)
    assert np.mean(found) == pytest.approx(level, abs=0.02)
    assert min(found) > 1 - 2 * (1 - level)  # counts are whole: some shares are covered less often


def of_pairs(rows, samples, level=0.95):
    """Return the coverage by truth: how often a and b are right, and how much they agree."""
    rng = np.random.default_rng(14)
    found = []
    for a in (0.1, 0.3, 0.5, 0.7, 0.9):
        for b in (0.1, 0.3, 0.5, 0.7, 0.9):
            for agree in (0.0, 0.5, 0.9):
                both = a * b + agree * (min(a, b) - a * b)
                cells = (both, a - both, b - both, 1 - a - b + both)
                drawn = rng.multinomial(rows, np.clip(cells, 0, 1), samples).tolist()
                found.append(covered(drawn, lambda n: newcombe_interval(*n, level), b - a))
    return found


def test_newcombe_covers_within_two_points():
    assert np.mean(of_pairs(50, 300)) == pytest.approx(0.95, abs=0.02)


@pytest.mark.long
@pytest.mark.parametrize("rows", [50, 100, 400])
def test_newcombe_covers_within_two_points_at_every_size(rows):
    found = of_pairs(rows, 3_000)
    assert np.mean(found) == pytest.approx(0.95, abs=0.02)
    assert min(found) > 0.91
