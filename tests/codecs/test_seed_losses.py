"""What a translation says that it lost: nothing that arrived under another name, and everything
that did not arrive.
"""

import pytest

from agent_nb import events as ev
from agent_nb.codecs.convert import decode, encode
from agent_nb.codecs.losses import Losses
from agent_nb.errors import WireError

NODE = {"session_id": "s", "node_id": "run-think-0"}
STARTED = {"message": "Hi", "agent": "react"}
CALL = {"call_id": "c", "name": "sh"}
#: Streams of the seeds in which every line has all that its document names.
STREAMS = {
    "loom": [
        {"session_id": "s", "event_id": 0, "type": "run_start", "run_id": "r", **STARTED},
        {**NODE, "event_id": 1, "type": "tool_call", **CALL, "arguments": {}},
        {**NODE, "event_id": 2, "type": "tool_start", **CALL},
        {**NODE, "event_id": 3, "type": "tool_output", **CALL, "content": "o"},
        {**NODE, "event_id": 4, "type": "tool_end", **CALL, "result": "r", "is_error": False},
        {**NODE, "event_id": 5, "type": "message_chunk", "content": "a", "id": "think"},
        {**NODE, "event_id": 6, "reply": "a"},
    ],
    "agent-event": [
        {"type": "thought", "content": "t"},
        {"type": "tool_call", "toolName": "a", "toolArgs": "{}"},
        {"type": "tool_progress", "toolName": "a", "data": "x"},
        {"type": "tool_result", "toolName": "a", "output": "o"},
        {"type": "stream", "content": "s"},
        {"type": "final"},
    ],
    "looopy": [
        {"kind": "task-created", "taskId": "t", "contextId": "c", "initiator": "user"},
        {
            "kind": "thought-stream",
            "taskId": "t",
            "thoughtId": "x",
            "thoughtType": "reasoning",
            "verbosity": "normal",
            "content": "c",
            "index": 0,
        },
        {"kind": "tool-call", "taskId": "t", "toolCallId": "1", "toolName": "a", "arguments": {}},
        {"kind": "tool-start", "taskId": "t", "toolCallId": "1", "toolName": "a", "arguments": {}},
        {
            "kind": "tool-complete",
            "taskId": "t",
            "toolCallId": "1",
            "toolName": "a",
            "success": True,
            "result": "r",
        },
        {"kind": "content-delta", "taskId": "t", "delta": "d", "index": 0},
        {"kind": "content-complete", "taskId": "t", "content": "d"},
        {"kind": "task-complete", "taskId": "t", "content": "d"},
    ],
    "cogency": [
        {"type": "user", "content": "q", "timestamp": 1.0},
        {"type": "call", "content": '{"name": "a", "args": {}}', "timestamp": 2.0},
        {
            "type": "result",
            "payload": {"outcome": "Success", "content": "c", "error": False},
            "timestamp": 3.0,
        },
        {"type": "respond", "content": "r", "timestamp": 4.0},
        {"type": "end", "timestamp": 5.0},
    ],
}
PAIRS = [(source, target) for source in STREAMS for target in STREAMS if source != target]


def losses(objs, source, target):
    lost = Losses()
    encode(decode(objs, source), target, losses=lost)
    return lost.counts()


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_a_field_that_another_name_carries_is_no_loss(source, target):
    assert "extra" not in losses(STREAMS[source], source, target)


@pytest.mark.parametrize(("source", "target"), PAIRS)
@pytest.mark.parametrize("field", ["vendor", "name", "message"])
def test_a_field_that_nothing_carries_is_one(source, target, field):
    at = {"loom": 5, "agent-event": 0, "looopy": 1, "cogency": 3}[source]
    objs = [
        {**obj, field: "zq"} if number == at else obj for number, obj in enumerate(STREAMS[source])
    ]
    assert losses(objs, source, target)["extra"] == 1
    with pytest.raises(WireError):
        encode(decode(objs, source), target, strict=True)


@pytest.mark.parametrize("source", STREAMS)
def test_a_format_written_as_itself_loses_nothing_at_all(source):
    objs = [{**obj, "vendor": {"deep": [1, None]}} for obj in STREAMS[source]]
    assert losses(objs, source, source) == {}


@pytest.mark.parametrize("codec", ["loom", "looopy"])
def test_a_sub_agents_start_prompt_and_end_are_counted_and_not_written(codec):
    own = [ev.RunStart(run="r"), ev.User(run="r", content="Hi"), ev.End(run="r")]
    theirs = [
        ev.RunStart(run="r", span="c1", agent="helper"),
        ev.User(run="r", span="c1", content="Write."),
        ev.End(run="r", span="c1"),
    ]
    lost = Losses()
    alone = encode(own, codec)
    assert encode([*own[:2], *theirs, own[2]], codec, losses=lost) == alone
    assert {f"nested {event.type}" for event in theirs} <= lost.counts().keys()
