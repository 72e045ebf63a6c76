"""The counts of a map: done, rate, time left, cost, forecast."""

from __future__ import annotations

import pytest

from agent_nb.models.http.errors import Peer, make_refusal
from agent_nb.rows.map.row import RowResult
from agent_nb.rows.map.tally import LAST_ROWS, RATE_WINDOW, RowLine, Tally


def over(tally, now, *, status="ok", cost=None, origin="live", kind="", position=0):
    if origin == "live":
        tally.begin_row()
    result = RowResult(
        position=position,
        key="k",
        status=status,
        cost=cost,
        origin=origin,
        kind=kind,
        input=8,
        written=2,
    )
    tally.end_row(result, RowLine(position, status), now)


def test_rows_are_counted_by_their_end():
    tally = Tally(10, 0.0)
    over(tally, 1.0)
    over(tally, 1.0, status="error", kind="rate_limit")
    over(tally, 1.0, status="error", kind="rate_limit")
    over(tally, 1.0, status="limit")
    over(tally, 1.0, origin="store")
    tally.begin_row()
    found = tally.snapshot(2.0)
    assert (found.total, found.done, found.ok, found.known, found.asking) == (10, 5, 2, 1, 1)
    assert found.failures == {"rate_limit": 2, "limit": 1}
    assert found.tokens == 40


@pytest.mark.parametrize("status", [400, 401, 403, 404, 429, 500, 503, 529])
def test_answers_of_a_provider_are_counted_by_their_http_status(status):
    fault = make_refusal(status, {}, b'{"error": "row (7) and (777)"}', Peer(provider="openai"))
    tally = Tally(1, 0.0)
    tally.begin_row()
    result = RowResult(position=0, key="k", status="error", kind=fault.code, error=str(fault))
    tally.end_row(result, RowLine(0, "error"), 1.0)
    assert tally.snapshot(2.0).failures == {str(status): 1}


def test_rate_and_time_left_come_from_the_rows_asked_lately():
    tally = Tally(100, 0.0)
    for second in range(1, 11):
        over(tally, float(second))
    found = tally.snapshot(10.0)
    assert (found.rate, found.left) == (1.0, 90.0)
    later = tally.snapshot(10.0 + RATE_WINDOW / 2)
    assert later.rate == 10 / RATE_WINDOW


def test_rows_of_the_store_have_no_part_in_rate_and_cost():
    tally = Tally(10, 0.0)
    for _ in range(5):
        over(tally, 1.0, origin="store", cost=1.0)
    found = tally.snapshot(2.0)
    assert (found.rate, found.left, found.cost, found.forecast) == (None, None, None, None)


def test_the_forecast_adds_the_rest_at_the_cost_of_a_row_so_far():
    tally = Tally(10, 0.0)
    for _ in range(4):
        over(tally, 1.0, cost=0.5)
    found = tally.snapshot(2.0)
    assert (found.cost, found.forecast) == (2.0, 5.0)


def test_rows_of_unknown_cost_are_forecast_to_cost_what_others_do():
    tally = Tally(6, 0.0)
    over(tally, 1.0, cost=1.0)
    over(tally, 1.0)
    over(tally, 1.0)
    found = tally.snapshot(2.0)
    assert (found.cost, found.forecast) == (1.0, 6.0)


def test_rows_that_used_nothing_make_the_forecast_cheaper():
    tally = Tally(8, 0.0)
    for cost in (1.0, 1.0):
        over(tally, 1.0, cost=cost)
    for _ in range(2):
        tally.begin_row()
        refused = RowResult(position=0, key="k", status="error", kind="provider")
        tally.end_row(refused, RowLine(0, "error"), 1.0)
    assert tally.snapshot(2.0).forecast == 4.0


def test_the_rate_counts_rows_when_they_end():
    tally = Tally(10, 0.0)
    for _ in range(3):
        tally.begin_row()
    for _ in range(3):
        tally.end_row(
            RowResult(position=0, key="k", status="ok"), RowLine(0, "ok"), RATE_WINDOW + 5
        )
    assert tally.snapshot(RATE_WINDOW + 5).rate == 3 / RATE_WINDOW


def test_a_few_rows_are_not_enough_for_a_forecast():
    tally = Tally(10, 0.0)
    over(tally, 1.0, cost=0.5)
    assert tally.snapshot(2.0).forecast is None


def test_a_snapshot_shows_the_last_rows_in_the_order_of_their_ends():
    tally = Tally(100, 0.0)
    for position in range(20):
        over(tally, 1.0, position=position)
    assert [line.position for line in tally.snapshot(2.0).last] == list(range(20 - LAST_ROWS, 20))


def test_a_row_that_was_cut_off_is_no_failure_of_its_own():
    tally = Tally(3, 0.0)
    tally.begin_row()
    cut = RowResult(position=0, key="k", status="interrupted", kind="user")
    tally.end_row(cut, RowLine(0, "interrupted"), 1.0)
    assert tally.snapshot(1.0).failures == {"stopped": 1}
