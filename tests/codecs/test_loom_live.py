"""The loom codec against what a live server sends: chunks without a call, approvals, sockets,
cancelling, and the figures of the reply.
"""

import pytest
from helpers.streams import ndjson, stored

CHUNK = {"type": "tool_call_chunk"}
ENVELOPE = {"session_id": "s", "node_id": "run-think-0"}


def frames_of(chunk_id, later, *after):
    """Chunks of one call, then `later` about it; `chunk_id`: what the chunks name."""
    pieces = [{**CHUNK, **chunk_id, "arguments_delta": t} for t in ('{"c"', ":", '"ls"}')]
    return [*pieces, *({**frame, **later} for frame in after)]


APPROVAL = {"type": "tool_approval", "arguments": {"c": "ls"}}
OUTPUT = {"type": "tool_output", "content": "a\n"}
START = {"type": "tool_start"}
OVER = {"type": "tool_end", "result": "a", "is_error": False}
NAMED = {"name": "sh"}
WITH_ID = {"call_id": "c1", "name": "sh"}
NULL_ID = {"call_id": None, "name": "sh"}


@pytest.mark.parametrize(
    "after", [(APPROVAL,), (OUTPUT,), (START,), (OVER,), (APPROVAL, START, OUTPUT, OVER)]
)
@pytest.mark.parametrize(
    ("chunk_id", "later"),
    [(WITH_ID, WITH_ID), (NAMED, NAMED), (NAMED, WITH_ID), (WITH_ID, NAMED), (NULL_ID, NULL_ID)],
)
def test_chunks_and_what_follows_without_tool_call_are_one_call(chunk_id, later, after, tool):
    loom, frames = tool("loom"), frames_of(chunk_id, later, *after)
    events = stored(loom.read(ndjson(*frames)))
    calls = [e for e in events if e.type == "call"]
    assert [(c.name, c.args, c.incomplete) for c in calls] == [("sh", {"c": "ls"}, False)]
    assert {e.call_id for e in events if hasattr(e, "call_id")} == {calls[0].call_id}
    if WITH_ID in (chunk_id, later):
        assert (calls[0].call_id, calls[0].synthetic) == ("c1", False)
    assert loom.lines(events) == frames


def test_an_approval_completes_arguments_that_the_chunks_left_open(tool):
    frames = [{**CHUNK, **WITH_ID, "arguments_delta": '{"c"'}, {**APPROVAL, **WITH_ID}]
    call = next(e for e in tool("loom").read(ndjson(*frames)) if e.type == "call")
    assert (call.args, call.incomplete) == ({"c": "ls"}, False)


def test_chunks_of_two_calls_stay_two_calls_at_their_approvals(tool):
    two = [{"call_id": f"c{n}", "name": "sh"} for n in (1, 2)]
    frames = [
        *({**CHUNK, **who, "arguments_delta": "{}"} for who in two),
        *({"type": "tool_approval", **who, "arguments": {}} for who in reversed(two)),
    ]
    events = tool("loom").read(ndjson(*frames))
    assert [e.call_id for e in events if e.type == "call"] == ["c2", "c1"]
    assert [e.call_id for e in events if e.type == "approval"] == ["c2", "c1"]


def test_output_of_a_running_call_leaves_the_chunks_of_the_next_alone(tool):
    frames = [
        {"type": "tool_call", **NAMED, "arguments": {"c": "a"}},
        {**CHUNK, **NAMED, "arguments_delta": '{"c"'},
        {**OUTPUT, **NAMED},
        {**CHUNK, **NAMED, "arguments_delta": ':"b"}'},
        {"type": "tool_call", **NAMED, "arguments": {"c": "b"}},
    ]
    calls = [e for e in tool("loom").read(ndjson(*frames)) if e.type == "call"]
    assert [(c.args, c.incomplete) for c in calls] == [({"c": "a"}, False), ({"c": "b"}, False)]
