"""`%agent tape`: its limits, and what it refuses."""

import pytest

from agent_nb.tape.relay import Relay


def test_the_command_limits_the_calls_of_the_kernel(provider, loaded):
    loaded.run_cell("%agent tape --rpm 60 --concurrency 4").raise_error()
    try:
        queue = Relay.RUNNING.limiter.queue
        assert (queue.rpm, queue.concurrency) == (60, 4)
        loaded.run_cell("%agent tape").raise_error()
        assert (queue.rpm, queue.concurrency) == (60, 4)
    finally:
        loaded.run_cell("%agent tape off").raise_error()


@pytest.mark.parametrize("words", ["on", "--rpm", "--rpm x", "off --rpm 1", "--speed 1"])
def test_other_words_are_refused_and_start_nothing(loaded, words):
    assert not loaded.run_cell(f"%agent tape {words}").success
    assert Relay.RUNNING is None
