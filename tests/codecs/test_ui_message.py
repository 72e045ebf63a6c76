"""The ui-message codec against chunks written by hand from the AI SDK's stream protocol."""

import json

import pytest
from helpers.streams import sse, stored

from agent_nb import events as ev

C = {"toolCallId": "c"}
CHUNKS = [
    (
        [
            {"type": "text-start", "id": "t"},
            {"type": "text-delta", "id": "t", "delta": "a"},
            {"type": "text-delta", "id": "t", "delta": "b"},
            {"type": "text-end", "id": "t"},
        ],
        "respond",
        {"content": "ab"},
    ),
    (
        [
            {"type": "reasoning-start", "id": "r"},
            {"type": "reasoning-delta", "id": "r", "delta": "hm"},
            {"type": "reasoning-end", "id": "r"},
        ],
        "think",
        {"content": "hm"},
    ),
    (
        [
            {"type": "tool-input-start", **C, "toolName": "sh"},
            {"type": "tool-input-delta", **C, "inputTextDelta": '{"a":1}'},
            {"type": "tool-input-available", **C, "toolName": "sh", "input": {"a": 1}},
        ],
        "call",
        {"call_id": "c", "name": "sh", "args": {"a": 1}, "raw_args": '{"a":1}'},
    ),
    (
        [{"type": "tool-input-available", **C, "toolName": "sh", "input": {"a": 1}}],
        "call",
        {"args": {"a": 1}, "incomplete": False},
    ),
    (
        [{"type": "tool-input-error", **C, "toolName": "sh", "input": "{b", "errorText": "no"}],
        "result",
        {"status": "error", "content": "no"},
    ),
    (
        [{"type": "tool-approval-request", "approvalId": "a", **C}],
        "approval",
        {"call_id": "c", "stage": "requested"},
    ),
    (
        [{"type": "tool-output-available", **C, "output": {"r": 1}}],
        "result",
        {"status": "ok", "content": {"r": 1}},
    ),
    (
        [{"type": "tool-output-available", **C, "output": "half", "preliminary": True}],
        "progress",
        {"text": "half"},
    ),
    (
        [{"type": "tool-output-available", **C, "output": {"progress": 0.5}, "preliminary": True}],
        "progress",
        {"fraction": 0.5},
    ),
    (
        [{"type": "tool-output-available", **C, "output": [1], "preliminary": True}],
        "progress",
        {"data": [1]},
    ),
    (
        [{"type": "tool-output-error", **C, "errorText": "x"}],
        "result",
        {"status": "error", "content": "x"},
    ),
    ([{"type": "tool-output-denied", **C}], "result", {"status": "denied"}),
    ([{"type": "start", "messageId": "m"}], "run_start", {"run": "m"}),
    ([{"type": "start-step"}], "node", {"name": "llm", "phase": "enter"}),
    (
        [{"type": "finish", "finishReason": "stop"}],
        "end",
        {"status": "ok", "finish_reason": "stop"},
    ),
    (
        [{"type": "finish", "finishReason": "error"}],
        "end",
        {"status": "error", "finish_reason": ""},
    ),
    ([{"type": "abort", "reason": "timeout"}], "interrupt", {"reason": "timeout", "detail": ""}),
    ([{"type": "abort"}], "end", {"status": "interrupted"}),
    ([{"type": "error", "errorText": "x"}], "error", {"message": "x"}),
    ([{"type": "error", "errorText": "x"}], "end", {"status": "error"}),
    (
        [{"type": "message-metadata", "messageMetadata": {"t": 1}}],
        "state",
        {"kind": "metadata", "payload": {"t": 1}},
    ),
    (
        [{"type": "source-url", "sourceId": "s", "url": "u"}],
        "extension",
        {"name": "source-url", "payload": {"sourceId": "s", "url": "u"}},
    ),
    (
        [{"type": "data-weather", "data": 1}],
        "extension",
        {"namespace": "ui-message", "name": "data-weather"},
    ),
]


@pytest.mark.parametrize(("objs", "kind", "fields"), CHUNKS)
def test_each_chunk_is_read_and_written_back(objs, kind, fields, tool):
    codec = tool("ui-message")
    events = codec.read(sse(*objs) + "data: [DONE]\n\n")
    found = next(e for e in events if e.type == kind)
    assert {k: getattr(found, k) for k in fields} == fields
    assert codec.lines(events) == objs
    assert codec.lines([e for e in events if e.type != "delta"]) == objs
    assert not codec.decoder.losses


def test_our_run_is_written_as_one_message(tool, our_run):
    one, two = {"toolCallId": "call_1_1"}, {"toolCallId": "call_1_2"}
    expected = [
        {"type": "start", "messageId": "run1"},
        {"type": "start-step"},
        {"type": "reasoning-start", "id": "block-1"},
        {"type": "reasoning-delta", "id": "block-1", "delta": "Look first."},
        {"type": "reasoning-end", "id": "block-1"},
        {"type": "tool-input-available", **one, "toolName": "sh", "input": {"c": "ls"}},
        {"type": "tool-input-available", **two, "toolName": "sh", "input": {"c": "cat b"}},
        {"type": "finish-step"},
        {"type": "tool-output-available", **one, "output": "a\n", "preliminary": True},
        {"type": "tool-output-available", **one, "output": "a"},
        {"type": "tool-output-error", **two, "errorText": "no such file"},
        {"type": "start-step"},
        {"type": "text-start", "id": "block-2"},
        {"type": "text-delta", "id": "block-2", "delta": "There"},
        {"type": "text-delta", "id": "block-2", "delta": " is "},
        {"type": "text-delta", "id": "block-2", "delta": "a."},
        {"type": "text-end", "id": "block-2"},
        {"type": "finish-step"},
        {"type": "finish", "finishReason": "stop"},
    ]
    texts = tool("ui-message").write(our_run)
    assert texts[-1] == "data: [DONE]\n\n"
    assert [json.loads(t.removeprefix("data: ")) for t in texts[:-1]] == expected


def test_a_live_block_of_ours_is_opened_by_its_first_delta_and_closed_once(tool):
    live = [
        ev.Delta(of="think", block="b", text="a"),
        ev.Delta(of="think", block="b", text="b"),
        ev.Think(content="ab", block="b"),
    ]
    assert [o["type"] for o in tool("ui-message").lines(live)] == [
        "reasoning-start",
        "reasoning-delta",
        "reasoning-delta",
        "reasoning-end",
    ]


def test_interleaved_blocks_are_kept_apart_and_in_order(tool):
    steps = [
        ("start", "a", ""),
        ("start", "b", ""),
        ("delta", "a", "1"),
        ("delta", "b", "2"),
        ("end", "b", ""),
        ("end", "a", ""),
    ]
    objs = [
        {"type": f"text-{what}", "id": i, **({"delta": text} if text else {})}
        for what, i, text in steps
    ]
    codec = tool("ui-message")
    events = codec.read(sse(*objs))
    assert [e.content for e in events if e.type == "respond"] == ["2", "1"]
    assert codec.lines(events) == objs


START = {"type": "tool-input-start", "toolCallId": "c", "toolName": "x"}


def test_a_call_that_breaks_off_keeps_its_id_when_that_was_used_again(tool):
    objs = [
        {"type": "tool-input-available", **C, "toolName": "x", "input": {}},
        {"type": "tool-output-available", **C, "output": "1"},
        START,
    ]
    codec = tool("ui-message")
    events = codec.read([json.dumps(o) + "\n" for o in objs])
    assert [e.call_id for e in events if e.type == "call"] == ["c", "c#2"]
    assert codec.lines(events) == objs


@pytest.mark.parametrize("protocol", ["ui-message", "ag-ui"])
def test_a_call_that_begins_again_while_it_is_open_is_two_calls(tool, protocol):
    start = {"ag-ui": {"type": "TOOL_CALL_START", **C, "toolCallName": "x"}}.get(protocol, START)
    codec = tool(protocol)
    events = codec.read([json.dumps(start) + "\n"] * 2)
    calls = [e for e in events if e.type == "call"]
    assert [(e.call_id, e.name, e.incomplete) for e in calls] == [
        ("c", "x", True),
        ("c#2", "x", True),
    ]
    assert codec.lines(events) == [start, start]


def test_an_answered_question_is_counted_once(tool):
    codec = tool("ui-message")
    codec.lines([ev.Approval(call_id="c", stage="decided", decision="allow")])
    assert codec.encoder.losses.counts() == {"approval.decision": 1}


def test_the_object_for_done_begins_no_run(tool):
    chunks = [
        {"type": "start"},
        {"type": "text-delta", "id": "1", "delta": "Hi."},
        {"type": "text-end", "id": "1"},
        {"type": "finish"},
    ]
    codec = tool("ui-message")
    events = codec.read("".join(json.dumps(o) + "\n" for o in [*chunks, {"type": "done"}]))
    assert [e.type for e in events if e.type != "delta"] == ["run_start", "respond", "end"]
    assert not codec.decoder.losses


def test_a_second_input_of_an_open_call_is_an_extension(tool):
    whole = {"type": "tool-input-available", **C, "toolName": "x", "input": {}}
    codec = tool("ui-message")
    events = codec.read("".join(json.dumps(o) + "\n" for o in (whole, whole)))
    assert [e.type for e in events] == ["call", "extension"]
    assert codec.lines(events) == [whole, whole]


def test_an_output_of_a_call_whose_input_broke_off_comes_after_the_call(tool):
    chunks = [START, {"type": "tool-output-error", **C, "errorText": "no"}]
    codec = tool("ui-message")
    events = codec.read("".join(json.dumps(o) + "\n" for o in chunks))
    order = [(e.type, e.call_id, getattr(e, "incomplete", None)) for e in stored(events)]
    assert order == [("call", "c", True), ("result", "c", None)]
    assert codec.lines(events) == chunks


@pytest.mark.parametrize("protocol", ["ui-message", "ag-ui"])
def test_a_start_of_a_call_that_an_output_implied_is_another_call(tool, protocol):
    chunks = [
        {"type": "tool-output-available", **C, "output": 1, "preliminary": True},
        START,
        {"type": "tool-input-available", **C, "toolName": "x", "input": {}},
    ]
    if protocol == "ag-ui":
        start = {"type": "TOOL_CALL_START", **C, "toolCallName": "x"}
        chunks = [start, {"type": "TOOL_CALL_END", **C}, start]
    codec = tool(protocol)
    events = codec.read("".join(json.dumps(o) + "\n" for o in chunks))
    assert [e.call_id for e in events if e.type == "call"] == ["c", "c#2"]
    assert codec.lines(events) == chunks


@pytest.mark.parametrize("protocol", ["ui-message", "ag-ui"])
def test_a_start_of_a_call_without_an_id_is_an_extension(tool, protocol):
    kind = {"ag-ui": "TOOL_CALL_START", "ui-message": "tool-input-start"}[protocol]
    codec = tool(protocol)
    events = codec.read((json.dumps({"type": kind}) + "\n") * 2)
    assert [e.type for e in events] == ["extension", "extension"]


@pytest.mark.parametrize("protocol", ["ui-message", "ag-ui"])
def test_runs_with_the_same_id_in_one_stream_stay_two_runs(tool, protocol):
    starts = {"ag-ui": {"type": "RUN_STARTED", "runId": "r"}}
    start = starts.get(protocol, {"type": "start", "messageId": "r"})
    end = {"type": "RUN_FINISHED", "runId": "r"} if protocol == "ag-ui" else {"type": "finish"}
    codec = tool(protocol)
    events = codec.read("".join(json.dumps(o) + "\n" for o in [start, end] * 2))
    assert [e.run for e in events] == ["r", "r", "r#2", "r#2"]
    assert codec.lines(events) == [start, end] * 2


def test_an_output_without_an_id_ends_no_call(tool):
    chunks = [{**START, "toolName": ""}, {"type": "tool-output-denied"}]
    codec = tool("ui-message")
    events = codec.read("".join(json.dumps(o) + "\n" for o in chunks))
    assert [e.type for e in stored(events)] == ["extension", "call"]
