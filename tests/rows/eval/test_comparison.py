"""Comparisons: rows are paired by what they are, and the difference is that within rows."""

from __future__ import annotations

import random

import numpy as np
import pytest
from helpers.evaluations import evaluation

from agent_nb import compare
from agent_nb.errors import UsageError
from agent_nb.rows.eval.intervals import mean_interval, newcombe_interval

DATA = [{"text": f"text {n}", "id": n} for n in range(40)]


def test_single_yes_or_no_scores_have_newcombes_interval():
    a = [1] * 10 + [1] * 4 + [0] * 12 + [0] * 14
    b = [1] * 10 + [0] * 4 + [1] * 12 + [0] * 14
    found = compare(evaluation(a), evaluation(b))
    assert found.difference == pytest.approx(8 / 40)
    assert found.interval == newcombe_interval(10, 4, 12, 14)
    assert found.words == "difference of two shares over the same 40 rows; 95 % Newcombe interval"


def test_means_have_the_t_interval_of_the_differences_within_rows():
    rng = random.Random(2)
    a = [rng.random() for _ in range(30)]
    b = [0.8 * s + 0.15 for s in a]
    found = compare(evaluation(a), evaluation(b))
    expected = mean_interval([y - x for x, y in zip(a, b, strict=True)])
    assert (found.interval.low, found.interval.high) == pytest.approx((expected.low, expected.high))
    assert found.words == "mean difference of the same 30 rows; 95 % t interval"


def test_pairing_sees_what_two_separate_intervals_do_not():
    hard = [n / 50 for n in range(40)]
    a, b = evaluation(hard), evaluation([h + 0.05 + 0.001 * (n % 3) for n, h in enumerate(hard)])
    assert a.interval.high > b.interval.low
    assert compare(a, b).interval.low > 0


@pytest.mark.parametrize(
    ("scores", "said"),
    [
        ([1] * 35 + [0] * 5, "b scores higher than a"),
        ([0] * 40, "b scores lower than a"),
        ([1] * 19 + [0] * 21, "do not show which"),
    ],
)
def test_the_verdict_says_what_the_interval_shows(scores, said):
    assert said in compare(evaluation([1, 0] * 20), evaluation(scores)).verdict


def test_rows_are_paired_by_their_values_in_any_order():
    places = [*range(40)]
    random.Random(5).shuffle(places)
    score = {n: int(n % 3 == 0) for n in range(40)}
    a = evaluation([score[n] for n in range(40)], DATA)
    b = evaluation([score[n] for n in places], [DATA[n] for n in places])
    found = compare(a, b)
    assert found.changes == {"improved": 0, "worse": 0, "same": 40, "missing": 0}


def test_equal_rows_are_paired_in_their_order():
    data = [{"text": "twin"}] * 4
    found = compare(evaluation([0, 1, 0, 1], data), evaluation([0, 1, 1, 1], data))
    assert [row["change"] for row in found.frame] == ["same", "same", "improved", "same"]


def test_other_rows_are_an_error_that_shows_one_of_them():
    with pytest.raises(UsageError, match=r"1 of 40 rows of a are not in b, 0 of 39.*row 39 of a"):
        compare(evaluation([1] * 40, DATA), evaluation([1] * 39, DATA[:39]))
    other = [*DATA[:39], {"text": "new", "id": 39}]
    with pytest.raises(UsageError, match="not of the same rows"):
        compare(evaluation([1] * 40, DATA), evaluation([1] * 40, other))


def test_a_column_whose_name_is_not_unique_names_no_row():
    pandas = pytest.importorskip("pandas")
    made = evaluation([0, 1], pandas.DataFrame([[1, 2], [3, 4]], columns=["id", "id"]))
    with pytest.raises(UsageError, match="2 columns are named 'id'; rename one"):
        compare(made, made, on="id")


def test_a_difference_is_not_cut_where_failed_answers_score_below_0():
    made = compare(evaluation([None, 0] * 20, failed=-2), evaluation([1] * 40))
    assert made.difference == 2
    assert made.interval.low < 2 < made.interval.high


def test_columns_may_name_the_rows():
    changed = [{**row, "note": "x"} for row in DATA]
    a, b = evaluation([0] * 40, DATA), evaluation([1] * 40, changed)
    with pytest.raises(UsageError, match='on="id"'):
        compare(a, b)
    assert compare(a, b, on="id").changes["improved"] == 40
    assert compare(a, b, on=["text", "id"]).rows == 40
    with pytest.raises(UsageError, match="on='ids' names no column of a"):
        compare(a, b, on="ids")


def test_what_is_no_evaluation_is_refused():
    with pytest.raises(UsageError, match="b is a float"):
        compare(evaluation([1]), 0.5)


def test_values_that_json_cannot_hold_name_rows_too():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(
        {
            "when": pd.date_range("2026-01-01", periods=12),
            "size": np.arange(12),
            "gone": [None] * 12,
        }
    )
    found = compare(evaluation([0] * 12, frame), evaluation([1] * 12, frame.iloc[::-1]))
    assert found.rows == 12
    later = frame.assign(when=frame.when + pd.Timedelta("1s"))
    with pytest.raises(UsageError, match="not of the same rows"):
        compare(evaluation([0] * 12, frame), evaluation([1] * 12, later))


def test_a_row_without_a_score_on_one_side_is_left_out_and_counted():
    a, b = [1] * 20 + [0] * 20, [1] * 18 + [None, None] + [1] * 19 + [0]
    found = compare(evaluation(a, DATA), evaluation(b, DATA))
    assert found.rows == 38
    assert found.changes == {"improved": 19, "worse": 0, "same": 19, "missing": 2}
    assert found.difference == pytest.approx(19 / 38)
    assert [r["change"] for r in found.frame].count("missing") == 2
    assert "2 missing" in repr(found)


def test_no_row_with_two_scores_is_no_difference():
    found = compare(evaluation([None] * 12), evaluation([1] * 12))
    assert (found.difference, found.interval, found.rows) == (None, None, 0)
    assert "no row has two scores" in found.words
    assert "text/html" in found._repr_mimebundle_()


def test_differences_that_are_all_0_have_no_t_interval():
    scores = [0.1 * (n % 7) for n in range(40)]
    found = compare(evaluation(scores), evaluation(scores))
    assert (found.difference, found.interval) == (0, None)
    assert found.words.endswith("no interval: all rows differ by the same")
    assert "do not show which" in found.verdict
    assert found.changed == []


def test_shares_that_do_not_differ_have_an_interval_around_0():
    found = compare(evaluation([1] * 30 + [0] * 10), evaluation([1] * 30 + [0] * 10))
    assert found.difference == 0
    assert found.interval.low < 0 < found.interval.high


def test_under_ten_rows_there_is_a_difference_and_no_interval():
    found = compare(evaluation([0] * 9), evaluation([1] * 9))
    assert (found.difference, found.interval) == (1, None)
    assert "fewer than 10 rows" in found.words


def test_the_changed_rows_come_with_the_largest_change_first():
    found = compare(evaluation([0.5, 0.5, 0.5, 0.5]), evaluation([0.6, 0.5, 0.1, 1.0]))
    assert [(r["id"], r["change"]) for r in found.changed] == [
        (3, "improved"),
        (2, "worse"),
        (0, "improved"),
    ]
    assert [*found.frame[0]][2:] == [
        "answer_a", "answer_b", "score_a", "score_b", "difference", "change",
    ]  # fmt: skip


def test_costs_and_tokens_are_differences():
    found = compare(evaluation([[1, 0], [1, 0]]), evaluation([[1, 0, 1, 0], [1, 0, 1, 1]]))
    assert found.tokens == 40
    assert found.cost == pytest.approx(0.004)


def test_what_makes_a_comparison_doubtful_is_said():
    a = evaluation([[1, 0]] * 12, scored_by="function f")
    b = evaluation([[1, 0, 1]] * 12, scored_by="judge j", failed=0.0)
    assert compare(a, b).notes == [
        "The two are scored differently: function f, and judge j.",
        "Answers that failed count differently on the two sides.",
        "Each row was asked twice, and 3 times: tokens and cost count all answers.",
    ]
    assert compare(a, a).notes == []


def test_the_names_are_those_of_the_evaluations():
    a, b = evaluation([1] * 12, name="short"), evaluation([0] * 12, name="careful")
    assert compare(a, b).names == ("short", "careful")
    assert compare(a, a).names == ("a", "b")
    assert "careful scores lower than short" in compare(a, b).verdict
