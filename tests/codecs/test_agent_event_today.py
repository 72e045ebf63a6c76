"""Streams in the shape that the system of seed 003 sends today."""

import pytest
from helpers.streams import ndjson, sse, stored

from agent_nb.codecs.detect import detect

RUN = {"runId": "r1", "at": 1767225600000}
CALL = {"type": "tool_call", **RUN, "callId": "c", "toolName": "bash", "toolArgs": {"cmd": "ls"}}
DONE = {"type": "tool_result", **RUN, "callId": "c", "toolName": "bash", "output": "a"}
FINAL = {"type": "final", **RUN}


@pytest.fixture
def read(tool):
    """Read events whole, by line and cut anywhere; they come out again as they came."""

    def run(*objs):
        codec, text = tool("agent-event"), ndjson(*objs)
        events = codec.read(text)
        assert codec.read(text.splitlines(keepends=True)) == events
        assert all(codec.read([text[:n], text[n:]]) == events for n in range(len(text)))
        assert codec.lines(events) == list(objs)
        assert codec.lines(stored(events)) == list(objs)
        assert not codec.decoder.losses
        return stored(events)

    return run


def progress(data, **fields):
    return {"type": "tool_progress", **RUN, "callId": "c", "data": data, **fields}


def said(text):
    return {"type": "text_chunk", **RUN, "content": text}


def test_chunks_of_text_are_the_answer(read, tool):
    found = read({"type": "start", **RUN}, said("It is "), said("4."), FINAL)
    assert [(e.type, e.run) for e in found] == [(k, "r1") for k in ("run_start", "respond", "end")]
    assert found[1].content == "It is 4."
    target = tool("ag-ui")
    target.write(found)
    assert not [loss.what for loss in target.encoder.losses if not loss.detail]


def test_progress_with_a_stream_and_content_is_output(read):
    found = read(
        CALL,
        progress({"stream": "stdout", "content": "a\n"}),
        progress({"stream": "stderr", "content": "no\n"}),
        progress({"stream": "video", "content": 1}),
        DONE,
        FINAL,
    )
    parts = [(e.text, e.data) for e in found if e.type == "progress"]
    assert parts == [("a\n", None), ("no\n", None), ("", {"stream": "video", "content": 1})]


def test_progress_without_a_name_belongs_to_the_call_of_its_id_or_the_open_one(read):
    nameless = {"type": "tool_progress", **RUN, "data": "x"}
    found = read(CALL, progress("y"), nameless, DONE, FINAL)
    assert [e.call_id for e in found if e.type == "progress"] == ["c", "c"]
    assert len([e for e in found if e.type == "call"]) == 1


@pytest.mark.parametrize(
    "head",
    [
        [{"type": "start", **RUN}, said("a")],
        [CALL, progress("x")],
        [{"type": "connected"}, {"type": "conversation_usage", "used": 10, "total": 100}],
        [{"type": "connected"}, {"type": "loop_usage", "runId": "r1", "used": 10, "total": 100}],
        [{"type": "text_chunk", "content": "a"}],
    ],
)
def test_a_stream_of_today_is_recognised_by_its_first_frames(head):
    assert detect(sse(*head)).name == "agent-event"
