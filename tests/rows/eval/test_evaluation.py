"""Evaluations: rows count once, failures are counted, the figures say in words what they are."""

from __future__ import annotations

import pytest
from helpers.evaluations import evaluation

from agent_nb.rows.eval.intervals import mean_interval, wilson_interval


def test_repeats_are_averaged_first_then_rows():
    found = evaluation([[1, 1, 1, 1], [0, 0, 0, 1], [0, 0]])
    assert found.mean == pytest.approx((1 + 0.25 + 0) / 3)
    assert found.rows == 3
    assert found.unsteady == 1


def test_the_interval_is_over_rows_and_not_over_answers():
    scores = [[1, 1, 0], [0, 0, 1], [1, 1, 1], [0, 0, 0]] * 5
    assert evaluation(scores).interval == mean_interval([2 / 3, 1 / 3, 1, 0] * 5).within(0, 1)


def test_single_yes_or_no_scores_have_wilsons_interval():
    found = evaluation([1] * 30 + [0] * 10)
    assert found.interval == wilson_interval(30, 40)
    assert found.words == "share of 40 rows; 95 % Wilson interval"


def test_repeats_that_all_agree_are_one_yes_or_no_a_row():
    found = evaluation([[1] * 5] * 30 + [[0] * 5] * 10)
    assert found.interval == wilson_interval(30, 40)
    assert found.words == "share of 40 rows, each the same in all 5 repeats; 95 % Wilson interval"


def test_the_words_name_means_and_repeats():
    found = evaluation([[1, 0, 1, 1, 0]] * 100 + [[1] * 5] * 100)
    assert found.words == "mean of 200 rows, each the mean of 5 repeats; 95 % t interval"


def test_another_level_gives_another_interval():
    wide, narrow = (evaluation([1] * 30 + [0] * 10, level=level) for level in (0.99, 0.8))
    assert wide.interval.low < narrow.interval.low
    assert "80 % Wilson" in narrow.words


def test_under_ten_rows_there_is_a_mean_and_no_interval():
    found = evaluation([1, 0, 1, 1, 1, 0, 1, 1, 1])
    assert found.mean == pytest.approx(7 / 9)
    assert found.interval is None
    assert found.words == "share of 9 rows; no interval: fewer than 10 rows"


def test_rows_that_all_score_the_same_have_no_t_interval():
    found = evaluation([0.5] * 20)
    assert (found.mean, found.interval) == (0.5, None)
    assert found.words == "mean of 20 rows; no interval: all rows have the same score"


def test_a_bounded_score_has_a_possible_interval():
    scores = [1.0] * 12 + [0.5]
    assert evaluation(scores).interval.high == 1
    assert evaluation(scores, bounded=False).interval.high > 1


def test_answers_that_failed_are_left_out_and_counted():
    found = evaluation([1] * 11 + [0] * 9 + [None] * 2)
    assert found.mean == pytest.approx(11 / 20)
    assert (found.rows, found.failed, found.failures) == (22, 2, {"rate_limit": 2})
    assert found.words.startswith("share of 20 rows")
    assert "2 answers without a score (2 rate limit) · 2 rows left out" in repr(found)


def test_a_repeat_that_failed_leaves_the_others_of_its_row():
    found = evaluation([[1, None, 0.5], [0.25, 0.25, 0.25]])
    assert found.mean == pytest.approx((0.75 + 0.25) / 2)
    assert (found.failed, found.failures) == (0, {"rate_limit": 1})


def test_answers_that_failed_may_score():
    found = evaluation([[1, None]] * 10 + [[None, None]] * 10, failed=0.0)
    assert found.mean == pytest.approx(0.25)
    assert (found.failed, found.statistic.rows) == (10, 20)
    assert "each counts as 0" in repr(found)


def test_without_any_score_there_is_no_mean():
    found = evaluation([None, None])
    assert (found.mean, found.interval, found.words) == (None, None, "no row has a score")
    assert "–" in repr(found)


def test_no_rows_are_an_evaluation_too():
    found = evaluation([])
    assert (found.mean, found.rows, found.cost, found.tokens) == (None, 0, None, 0)
    assert found.frame == []
    assert "text/html" in found._repr_mimebundle_()


def test_tokens_and_cost_are_those_of_all_answers():
    found = evaluation([[1, 0], [1, None]])
    assert found.tokens == 40
    assert found.cost == pytest.approx(0.004)


@pytest.mark.parametrize(
    "kind", ["dicts", "texts", "pandas", pytest.param("polars", marks=pytest.mark.extra)]
)
def test_the_frame_has_the_kind_of_the_data(kind):
    data = {
        "dicts": lambda: [{"text": "a"}, {"text": "b"}],
        "texts": lambda: ["a", "b"],
        "pandas": lambda: pytest.importorskip("pandas").DataFrame(
            {"text": ["a", "b"]}, index=[7, 7]
        ),
        "polars": lambda: pytest.importorskip("polars").DataFrame({"text": ["a", "b"]}),
    }[kind]()
    found = evaluation([1, None], data)
    frame = found.to_frame()
    rows = frame if isinstance(frame, list) else getattr(frame, "to_dicts", None)
    if kind == "pandas":
        assert list(frame.index) == [7, 7]
        rows = frame.to_dict("records")
    elif kind == "polars":
        rows = frame.to_dicts()
    assert [*rows[0]] == ["text", "answer", "score", "_scored", "_error", "_tokens", "_cost"]
    assert (rows[0]["text"], rows[0]["answer"], rows[0]["score"]) == ("a", "answer 0", 1.0)
    assert rows[1]["score"] is None or rows[1]["score"] != rows[1]["score"]
    assert rows[1]["_error"] == "429: slow down"


def test_the_answers_are_a_frame_with_a_row_for_each():
    found = evaluation([[1, 0], [0.5, None]])
    answers = found.answers
    assert [(r["id"], r["_repeat"], r["score"]) for r in answers] == [
        (0, 0, 1), (0, 1, 0), (1, 0, 0.5), (1, 1, None),
    ]  # fmt: skip
    assert answers[3]["_unscored"] == "429: slow down"
    assert "answer" not in found.frame[0]


def test_a_column_called_score_keeps_its_name():
    found = evaluation([1], [{"score": "mine"}])
    assert (found.frame[0]["score"], found.frame[0]["out_score"]) == ("mine", 1)
