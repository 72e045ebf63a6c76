"""When a failed request is made again, and how long is waited before it."""

import json

import pytest
from helpers.waiting import wait

from agent_nb import Agent
from agent_nb.errors import ModelError
from agent_nb.models.http import retry
from agent_nb.models.http.retry import (
    AWAY_DELAYS,
    BUSY_DELAYS,
    LONGEST_WAIT,
    Failures,
    is_retryable_status,
    read_retry_after,
)
from agent_nb.models.openai import provider


def fault(**kw):
    return ModelError("x", retryable=True, **kw)


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504, 529])
def test_these_statuses_may_succeed_later(status):
    assert is_retryable_status(status)


@pytest.mark.parametrize("status", [0, 200, 301, 400, 401, 403, 404, 413, 422, 501, 505])
def test_these_statuses_will_not(status):
    assert not is_retryable_status(status)


def test_an_error_that_is_not_retryable_is_given_up():
    assert Failures.choose_delay(ModelError("x"), 1) is None


@pytest.mark.parametrize(
    "error",
    [
        *(fault(status=status) for status in (429, 500, 502, 503, 504, 529)),
        fault(),
        fault(code="cut"),
        fault(code="empty"),
    ],
)
def test_a_busy_or_failing_server_is_waited_for_a_minute_in_all(error):
    waits = [
        Failures.choose_delay(error, attempt, spread=lambda: 1.0)
        for attempt in range(1, len(BUSY_DELAYS) + 2)
    ]
    assert waits == [*BUSY_DELAYS, None]
    assert sum(BUSY_DELAYS) == 60


@pytest.mark.parametrize("error", [fault(status=408), fault(code="connect"), fault(code="timeout")])
def test_an_absent_server_is_given_up_after_four_attempts(error):
    assert (
        [Failures.choose_delay(error, attempt, spread=lambda: 1.0) for attempt in (1, 2, 3, 4)]
        == [*AWAY_DELAYS, None]
        == [0.5, 1.0, 2.0, None]
    )


def test_a_server_that_fails_with_the_same_words_thrice_is_given_up():
    failures = Failures()
    same, other = ModelError("same", status=500), ModelError("other", status=500)
    assert [failures.add(each) for each in (same, other, same, same)] == [False] * 3 + [True]


@pytest.mark.parametrize(
    "error", [fault(status=429), fault(status=502), fault(status=529), fault(code="cut")]
)
def test_the_same_words_of_a_busy_server_or_a_break_say_nothing(error):
    failures = Failures()
    assert not any(failures.add(error) for _ in range(9))


def test_waits_are_spread_between_half_and_whole():
    assert Failures.choose_delay(fault(), 2, spread=lambda: 0.0) == 0.5
    assert Failures.choose_delay(fault(), 2, spread=lambda: 1.0) == 1.0


def test_a_wait_the_server_asked_for_is_never_shortened():
    assert Failures.choose_delay(fault(retry_after=7.0), 1, spread=lambda: 0.0) == 7.0


def test_a_server_that_asks_to_wait_is_not_asked_for_ever():
    assert Failures.choose_delay(fault(retry_after=1.0), len(BUSY_DELAYS) + 1) is None


def test_a_wait_in_the_past_is_zero():
    assert Failures.choose_delay(fault(retry_after=-3.0), 1, spread=lambda: 0.0) == 0.0


def test_a_wait_beyond_the_longest_is_given_up():
    assert Failures.choose_delay(fault(retry_after=LONGEST_WAIT + 1), 1) is None


NOW = 1445412480.0  # Wed, 21 Oct 2015 07:28:00 GMT


@pytest.mark.parametrize(
    ("headers", "words", "seconds"),
    [
        ({"retry-after": "3"}, "", 3.0),
        ({"retry-after": "2.5"}, "", 2.5),
        ({"retry-after": "-3"}, "", 0.0),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:10 GMT"}, "", 10.0),
        ({"retry-after": "Wed, 21 Oct 2015 07:00:00 GMT"}, "", 0.0),
        ({"retry-after-ms": "250", "retry-after": "9"}, "", 0.25),
        ({"retry-after": "soon"}, "", None),
        ({"retry-after": "soon"}, "try again in 4s", 4.0),
        ({"retry-after": "9"}, "try again in 4s", 9.0),
        ({"retry-after": ""}, "", None),
        ({}, "", None),
        ({"x-ratelimit-reset-requests": "1s", "x-ratelimit-remaining-requests": "0"}, "", 1.0),
        ({"x-ratelimit-reset-tokens": "6m0s", "x-ratelimit-remaining-tokens": "0"}, "", 360.0),
        ({"x-ratelimit-reset-tokens": "6m0s", "x-ratelimit-remaining-tokens": "90"}, "", None),
        (
            {
                "x-ratelimit-reset-requests": "850ms",
                "x-ratelimit-remaining-requests": "0",
                "x-ratelimit-reset-tokens": "9s",
                "x-ratelimit-remaining-tokens": "0",
            },
            "",
            9.0,
        ),
        ({"x-ratelimit-reset": "30", "x-ratelimit-remaining": "0"}, "", 30.0),
        ({"x-ratelimit-reset": "1445412490", "x-ratelimit-remaining": "0"}, "", 10.0),
        ({"x-ratelimit-reset": "1445412490000", "x-ratelimit-remaining": "0"}, "", 10.0),
        (
            {
                "anthropic-ratelimit-requests-reset": "2015-10-21T07:28:12Z",
                "anthropic-ratelimit-requests-remaining": "0",
            },
            "",
            12.0,
        ),
        ({"x-ratelimit-reset": "some day", "x-ratelimit-remaining": "0"}, "", None),
        ({}, "Rate limit reached … Please try again in 7.66s. Visit …", 7.66),
        ({}, "Please try again in 20 seconds.", 20.0),
        ({}, "Please try again in 6m0s.", 360.0),
        ({}, "Please retry in 34.07s", 34.07),
        ({}, '{"@type": "…RetryInfo", "retryDelay": "34s"}', 34.0),
        ({}, "Please try again later.", None),
    ],
)
def test_a_wait_is_read_in_every_form(headers, words, seconds):
    assert read_retry_after(headers, words, now=NOW) == seconds


DONE = 'data: {"choices": [{"delta": {"content": "fine"}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'


def asking(serve, monkeypatch, *behaviours):
    """Run an agent against these behaviours; return the run and how often it asked."""
    monkeypatch.setattr(retry, "BUSY_DELAYS", (0.0,) * 7)
    server = serve(*behaviours)
    agent = Agent(provider("m", base_url=server.url), secrets={})
    return wait(lambda: agent("go", check=False)), len(server.asked)


def failing(words):
    return lambda peer: peer.reply(500, json.dumps({"error": {"message": words}}))


def test_a_server_that_fails_in_other_words_is_asked_for_a_minute(serve, monkeypatch):
    faults = [failing(f"request {n}") for n in range(7)]
    run, asked = asking(serve, monkeypatch, *faults, lambda peer: peer.stream(DONE))
    assert (run.answer, asked) == ("fine", 8)


def test_a_server_that_fails_in_the_same_words_is_asked_thrice(serve, monkeypatch):
    run, asked = asking(serve, monkeypatch, failing("the template is wrong"))
    assert (run.status, asked) == ("error", 3)
    assert "the template is wrong" in run.error


@pytest.mark.parametrize("sent", [b"", b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n", b"HTTP/1"])
def test_a_connection_that_breaks_early_is_made_for_a_minute(serve, monkeypatch, sent):
    def breaking(peer):
        peer.connection.sendall(sent)

    behaviours = [*[breaking] * 7, lambda peer: peer.stream(DONE)]
    run, asked = asking(serve, monkeypatch, *behaviours)
    assert (run.answer, asked) == ("fine", 8)


def test_a_connection_that_breaks_later_is_made_once(serve, monkeypatch):
    def breaking(peer):
        peer.begin()
        peer.send('data: {"choices": [{"delta": {"content": "half"}}]}\n\n')

    run, asked = asking(serve, monkeypatch, breaking)
    assert (run.status, asked) == ("error", 1)


@pytest.mark.parametrize(
    "headers", [{}, {"x-ratelimit-reset": "9" * 400 + "s", "x-ratelimit-remaining": "0"}]
)
def test_an_endless_duration_is_no_wait(headers):
    assert read_retry_after(headers, f"Please try again in {'9' * 400}s") is None
