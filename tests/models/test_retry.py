"""The retry rule."""

import pytest

from agent_nb.errors import ModelError
from agent_nb.models.retry import LONGEST, delays, retryable_status


def fault(**kw):
    return ModelError("x", retryable=True, **kw)


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504, 529])
def test_these_statuses_may_succeed_later(status):
    assert retryable_status(status)


@pytest.mark.parametrize("status", [0, 200, 301, 400, 401, 403, 404, 413, 422, 501, 505])
def test_these_statuses_will_not(status):
    assert not retryable_status(status)


def test_an_error_that_is_not_retryable_is_given_up():
    assert delays(ModelError("x"), 1) is None


def test_waits_double_and_then_end_after_four_attempts():
    waits = [delays(fault(), attempt, spread=lambda: 1.0) for attempt in (1, 2, 3, 4)]
    assert waits == [0.5, 1.0, 2.0, None]


def test_waits_are_spread_between_half_and_whole():
    assert delays(fault(), 2, spread=lambda: 0.0) == 0.5
    assert delays(fault(), 2, spread=lambda: 1.0) == 1.0


def test_a_wait_the_server_asked_for_is_never_shortened():
    assert delays(fault(retry_after=7.0), 1, spread=lambda: 0.0) == 7.0


def test_a_wait_in_the_past_is_no_wait():
    assert delays(fault(retry_after=-3.0), 1, spread=lambda: 0.0) == 0.0


def test_a_wait_beyond_the_longest_is_given_up():
    assert delays(fault(retry_after=LONGEST + 1), 1) is None
