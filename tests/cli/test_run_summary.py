"""The line of a run in the report of `run`: its numbers may be a cell's invention."""

import pytest

from agent_nb.cli.run_summary import summary_line


@pytest.mark.parametrize("tokens", [5, [1], {"a": 1}, None, "12"])
def test_tokens_that_are_no_pair_count_as_none(tokens):
    assert summary_line({"status": "ok", "tokens": tokens}).endswith("0 → 0 tokens · 0 s")


@pytest.mark.parametrize("cost", [float("nan"), float("inf"), "1", None])
def test_a_cost_that_is_no_amount_is_left_out(cost):
    assert "$" not in summary_line({"status": "ok", "cost": cost})


def test_a_cost_too_large_for_a_float_is_an_amount():
    assert "$1000000000000000.00" in summary_line({"status": "ok", "cost": 10**400})


WRONG = [None, True, "1", [1], {}, float("nan"), float("-inf")]


@pytest.mark.parametrize("value", WRONG)
def test_a_number_of_a_wrong_type_is_left_out(value):
    numbers = {"status": "ok", "cost": value, "turns": value, "calls": value, "seconds": value}
    assert summary_line(numbers) == "ok · 0 → 0 tokens"
    assert summary_line({"calls": 2, "denied": value}) == summary_line({"calls": 2})


@pytest.mark.parametrize("value", WRONG)
def test_a_pair_without_two_numbers_counts_as_missing(value):
    assert summary_line({"tokens": [1, value]}) == summary_line({})
    assert summary_line({"rows": [value, 1]}) == summary_line({})
