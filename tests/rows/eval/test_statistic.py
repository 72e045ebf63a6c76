"""Which figure stands for rows, whatever they score (hypothesis)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agent_nb.rows.eval.statistic import summarize_pairs, summarize_rows

SHARE = st.floats(0, 1)
YES_OR_NO = st.sampled_from([0.0, 1.0])
SCORES = st.one_of(st.lists(SHARE, max_size=60), st.lists(YES_OR_NO, max_size=60))
PAIRS = st.one_of(
    st.lists(st.tuples(SHARE, SHARE), max_size=60),
    st.lists(st.tuples(YES_OR_NO, YES_OR_NO), max_size=60),
)
CLOSE = 1e-9


def rows(scores, *, bounded=True):
    return summarize_rows(scores, repeats=1, level=0.95, bounded=bounded)


def pairs(both):
    a, b = [pair[0] for pair in both], [pair[1] for pair in both]
    return summarize_pairs(a, b, repeats=1, level=0.95, bounded=True)


@given(SCORES)
def test_an_interval_holds_the_mean_and_is_possible(scores):
    found = rows(scores)
    assert found.rows == len(scores)
    if found.interval is not None:
        assert len(scores) >= 10
        assert 0 <= found.interval.low <= found.value + CLOSE
        assert found.value - CLOSE <= found.interval.high <= 1


@given(SCORES)
def test_the_order_of_rows_changes_nothing(scores):
    assert rows(scores) == rows(sorted(scores))


@given(PAIRS)
def test_a_difference_is_mirrored_when_the_two_change_places(both):
    one, other = pairs(both), pairs([(b, a) for a, b in both])
    assert (one.rows, one.description) == (other.rows, other.description)
    if one.interval is not None:
        assert abs(one.value + other.value) < CLOSE
        assert abs(one.interval.low + other.interval.high) < CLOSE
        assert abs(one.interval.high + other.interval.low) < CLOSE
        assert -1 <= one.interval.low <= one.interval.high <= 1


@given(PAIRS)
def test_where_there_is_no_interval_the_words_say_so(both):
    found = pairs(both)
    assert (found.interval is None) == ("no " in found.description)


def test_differences_that_are_equal_up_to_rounding_have_no_interval():
    assert 0.7 - 0.5 != 0.3 - 0.1
    found = pairs([(0.5, 0.7), (0.1, 0.3)] * 8)
    assert found.interval is None
    assert found.description.endswith("no interval: all rows differ by the same")
    large = [(n * 1e9, n * 1e9 + 0.1) for n in range(1, 20)]
    assert (
        summarize_pairs(*zip(*large, strict=True), repeats=1, level=0.95, bounded=False).interval
        is None
    )


def test_scores_that_are_equal_up_to_rounding_have_no_interval():
    assert rows([0.3, 0.1 + 0.2] * 8).interval is None
    assert rows([1e-9, 2e-9] * 8).interval is not None


def test_a_mean_of_one_does_not_show_that_unbounded_repeats_agree():
    def describe(bounded):
        options = {"repeats": 2, "level": 0.95, "bounded": bounded}
        both = summarize_rows([1.0] * 12, **options), summarize_pairs([0.0], [1.0], **options)
        return [found.description for found in both]

    assert all("each the mean of 2 repeats" in text for text in describe(bounded=False))
    assert all("each the same in all 2 repeats" in text for text in describe(bounded=True))
