"""Streams in the shape of Looopy's server of today: places of tools, sub-agents, questions, usage."""

import pytest
from helpers.streams import ndjson, stored

from agent_nb import events as ev

T = {"taskId": "t1", "contextId": "c1"}


@pytest.fixture
def read(tool):
    """Read events whole, by line and cut anywhere; they come out again as they came."""

    def run(*objs):
        codec, text = tool("looopy"), ndjson(*objs)
        events = codec.read(text)
        assert codec.read(text.splitlines(keepends=True)) == events
        assert all(codec.read([text[:n], text[n:]]) == events for n in range(len(text)))
        assert codec.lines(events) == list(objs)
        assert codec.lines(stored(events)) == list(objs)
        assert not codec.decoder.losses
        return stored(events)

    return run


# Usage.


def usage(**fields):
    return {
        "kind": "llm-usage",
        **T,
        "model": "m",
        "prompt_tokens": 100,
        "completion_tokens": 30,
        "total_tokens": 130,
        **fields,
    }


def test_thoughts_and_cache_tokens_of_each_request_are_counted_and_added_up(read):
    one = usage(
        completion_tokens_details={"reasoning_tokens": 20, "text_tokens": 10},
        cache_creation_input_tokens=40,
        cache_read_input_tokens=50,
    )
    two = usage(prompt_tokens_details={"cached_tokens": 60}, completion_tokens_details=None)
    first, second = (e for e in read(one, two) if e.type == "metric")
    assert first.step == ev.Counts(input=100, output=30, cached=50, cache_written=40, reasoning=20)
    assert second.step == ev.Counts(input=100, output=30, cached=60)
    assert second.total == ev.Counts(
        input=200, output=60, cached=110, cache_written=40, reasoning=20
    )


@pytest.mark.parametrize("value", [None, "20", -1, [], {"reasoning_tokens": "x"}, True])
def test_usage_of_another_shape_counts_as_none(value, read):
    odd = usage(completion_tokens_details=value, cache_creation_input_tokens=value)
    assert [e.step for e in read(odd) if e.type == "metric"] == [ev.Counts(input=100, output=30)]


def test_our_usage_is_written_with_thoughts_and_cache_and_nothing_is_lost(tool):
    step = ev.Counts(input=100, output=30, cached=50, cache_written=40, reasoning=20)
    codec = tool("looopy")
    (line,) = codec.lines([ev.Metric(step=step)])
    assert line["completion_tokens_details"] == {"reasoning_tokens": 20}
    assert (line["cache_read_input_tokens"], line["cache_creation_input_tokens"]) == (50, 40)
    codec.write([ev.Metric(step=step)])
    assert not codec.encoder.losses.counts()
    again = tool("looopy").read(ndjson(line))
    assert [e.step for e in again if e.type == "metric"] == [step]
