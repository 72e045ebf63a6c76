"""Seed 003 line by line: the seven events and the two of tools where fields lack, have other types,
or come twice.
"""

import pytest
from helpers.codec_io import logs
from helpers.streams import sse, stored

from agent_nb import events as ev


@pytest.fixture
def read(tool):
    """Read events, and see that they come out again as they came."""

    def run(*objs):
        codec = tool("agent-event")
        events = codec.read(sse(*objs))
        assert codec.lines(events) == list(objs)
        assert not codec.decoder.losses
        return stored(events)

    return run


CALL = {"type": "tool_call", "toolName": "sh"}
RESULT = {"type": "tool_result", "toolName": "sh"}
FINAL = {"type": "final"}


# § 3.1: a failed result.


@pytest.mark.parametrize("how", [{"isError": True}, {"type": "tool_error"}])
def test_an_error_text_is_the_result_where_there_is_no_output(how, read):
    found = read({**RESULT, **how, "error": "no such file"})[-1]
    assert (found.status, found.content) == ("error", "no such file")


def test_the_output_counts_before_an_error_text(read):
    assert read({**RESULT, "isError": True, "output": "out", "error": "why"})[-1].content == "out"


# Call ids, as the system has them later.


def test_a_call_id_used_again_after_its_result_is_another_call(read):
    found = read(
        {**CALL, "toolArgs": '{"n":1}', "callId": "c"},
        {**RESULT, "output": "1", "callId": "c"},
        {**CALL, "toolArgs": '{"n":2}', "callId": "c"},
        {**RESULT, "output": "2", "callId": "c"},
    )
    assert [(e.type, e.call_id) for e in found] == [
        ("call", "c"),
        ("result", "c"),
        ("call", "c#2"),
        ("result", "c#2"),
    ]


def test_a_call_and_a_result_told_twice_are_one_of_each(read):
    call, result = (
        {**CALL, "toolArgs": "{}", "callId": "c"},
        {**RESULT, "output": "1", "callId": "c"},
    )
    assert [e.type for e in read(call, call, result, result)] == [
        "call",
        "extension",
        "result",
        "extension",
    ]


def test_progress_that_comes_after_its_result_opens_no_call(read):
    found = read(
        {**CALL, "toolArgs": "{}", "callId": "c"},
        {**RESULT, "output": "1", "callId": "c"},
        {"type": "tool_progress", "toolName": "sh", "data": "late", "callId": "c"},
    )
    assert [(e.type, e.call_id) for e in found] == [
        ("call", "c"),
        ("result", "c"),
        ("progress", "c"),
    ]


# Runs of one stream.


def stream(content, run):
    return {"type": "stream", "content": content, "runId": run}


INTERLEAVED = [
    stream("a", "1"),
    stream("x", "2"),
    stream("b", "1"),
    {**FINAL, "runId": "1"},
    {**FINAL, "runId": "2"},
]


def test_runs_that_name_themselves_may_interleave(read):
    assert [(e.run, e.content) for e in read(*INTERLEAVED) if e.type == "respond"] == [
        ("1", "ab"),
        ("2", "x"),
    ]


def test_each_of_them_is_a_log_with_one_end():
    assert [[e.type for e in log] for log in logs(sse(*INTERLEAVED), "agent-event")] == [
        ["respond", "end"]
    ] * 2


def test_a_run_that_names_itself_late_is_one_run(read):
    found = read({"type": "thought", "content": "hm"}, stream("a", "1"), {**FINAL, "runId": "1"})
    assert len({e.run for e in found}) == 1


def test_what_comes_late_in_one_run_is_no_news_of_another(tool):
    codec = tool("agent-event")
    codec.read(
        sse(
            stream("a", "1"),
            {**FINAL, "runId": "1"},
            stream("x", "2"),
            stream("late", "1"),
        )
    )
    assert codec.decoder.losses.counts() == {"event after the end": 1}


def test_a_reason_of_a_cancelled_run_that_is_a_word_of_ours_is_the_reason(read):
    stopped, end = read({"type": "cancelled", "reason": "timeout"})
    assert (stopped.reason, stopped.detail, end.status) == ("timeout", "", "limit")


def test_times_that_count_on_add_nothing_to_the_record(read):
    piece = {"type": "stream", "content": "a"}
    (found, _) = read({**piece, "at": 1767225600000}, {**piece, "at": 1767225600250}, FINAL)
    assert "lines" not in found.extra["agent-event"]


# § 7.


def test_the_answer_of_a_sub_agent_is_progress_and_its_result_the_whole(tool):
    inner = {"span": "c1", "parent": "c1"}
    run = [
        ev.Call(call_id="c1", name="kid", args={"prompt": "do"}),
        ev.Think(content="hm", **inner),
        ev.Delta(of="respond", block="b", text="Hel", **inner),
        ev.Delta(of="respond", block="b", text="lo", **inner),
        ev.Respond(content="Hello", block="b", **inner),
        ev.Result(call_id="c1", name="kid", content="Hello"),
    ]
    assert tool("agent-event").lines(run)[1:] == [
        {"type": "tool_progress", "toolName": "kid", "data": "Hel"},
        {"type": "tool_progress", "toolName": "kid", "data": "lo"},
        {"type": "tool_result", "toolName": "kid", "output": "Hello"},
    ]


# Framing.


def test_names_and_ids_of_frames_that_the_format_does_not_use_are_counted(tool):
    codec = tool("agent-event")
    codec.read(
        'event: thought\nid: 1\ndata: {"type":"thought","content":"t"}\n\nevent: other\ndata: {"type":"final"}\n\n'
    )
    # a name that the object repeats is a detail, another one is not
    assert [(loss.what, loss.count, loss.detail) for loss in codec.decoder.losses] == [
        ("frame name", 1, True),
        ("frame id", 1, True),
        ("frame name", 1, False),
    ]
