"""The ag-ui codec against events written by hand from the AG-UI 1.0 event reference."""

import json
import re
from enum import Enum

import pytest
from helpers.streams import sse

from agent_nb import events as ev

M, C = {"messageId": "m"}, {"toolCallId": "c"}
BLOCKS = [
    (
        [
            {"type": "TEXT_MESSAGE_START", **M, "role": "assistant"},
            {"type": "TEXT_MESSAGE_CONTENT", **M, "delta": "a"},
            {"type": "TEXT_MESSAGE_CONTENT", **M, "delta": "b"},
            {"type": "TEXT_MESSAGE_END", **M},
        ],
        "respond",
        {"content": "ab"},
    ),
    (
        [
            {"type": "TEXT_MESSAGE_START", **M, "role": "user"},
            {"type": "TEXT_MESSAGE_CONTENT", **M, "delta": "hi"},
            {"type": "TEXT_MESSAGE_END", **M},
        ],
        "user",
        {"content": "hi"},
    ),
    (
        [
            {"type": "REASONING_MESSAGE_START", **M, "role": "reasoning"},
            {"type": "REASONING_MESSAGE_CONTENT", **M, "delta": "hm"},
            {"type": "REASONING_MESSAGE_END", **M},
        ],
        "think",
        {"content": "hm"},
    ),
    (
        [
            {"type": "TOOL_CALL_START", **C, "toolCallName": "sh"},
            {"type": "TOOL_CALL_ARGS", **C, "delta": '{"a"'},
            {"type": "TOOL_CALL_ARGS", **C, "delta": ":1}"},
            {"type": "TOOL_CALL_END", **C},
        ],
        "call",
        {"call_id": "c", "name": "sh", "args": {"a": 1}, "raw_args": '{"a":1}'},
    ),
    (
        [{"type": "TOOL_CALL_START", **C, "toolCallName": "now"}, {"type": "TOOL_CALL_END", **C}],
        "call",
        {"name": "now", "args": {}},
    ),
    (
        [
            {"type": "TEXT_MESSAGE_CHUNK", **M, "delta": "a"},
            {"type": "TEXT_MESSAGE_CHUNK", "delta": "b"},
        ],
        "respond",
        {"content": "ab"},
    ),
    (
        [
            {"type": "TOOL_CALL_CHUNK", **C, "toolCallName": "sh"},
            {"type": "TOOL_CALL_CHUNK", "delta": '{"a"'},
            {"type": "TOOL_CALL_CHUNK", **C, "delta": ":1}"},
        ],
        "call",
        {"call_id": "c", "name": "sh", "args": {"a": 1}, "raw_args": '{"a":1}'},
    ),
    (
        [{"type": "TOOL_CALL_RESULT", "messageId": "t", **C, "content": "ok"}],
        "result",
        {"call_id": "c", "content": "ok", "status": "ok"},
    ),
    ([{"type": "RUN_STARTED", "threadId": "t", "runId": "r"}], "run_start", {"run": "r"}),
    ([{"type": "RUN_FINISHED", "threadId": "t", "runId": "r"}], "end", {"status": "ok"}),
    (
        [{"type": "RUN_FINISHED", "threadId": "t", "runId": "r", "outcome": {"type": "cancelled"}}],
        "end",
        {"status": "interrupted"},
    ),
    (
        [
            {
                "type": "RUN_FINISHED",
                "threadId": "t",
                "runId": "r",
                "outcome": {"type": "interrupt", "interrupts": []},
            }
        ],
        "end",
        {"status": "awaiting"},
    ),
    (
        [
            {
                "type": "RUN_FINISHED",
                "threadId": "t",
                "runId": "r",
                "usage": [{"inputTokens": 3}, {"inputTokens": 2}],
            }
        ],
        "metric",
        {"total": ev.Counts(input=5)},
    ),
    (
        [{"type": "RUN_ERROR", "message": "no", "code": "429"}],
        "error",
        {"message": "no", "code": "429"},
    ),
    ([{"type": "RUN_ERROR", "message": "no"}], "end", {"status": "error"}),
    ([{"type": "STEP_STARTED", "stepName": "plan"}], "node", {"name": "plan", "phase": "enter"}),
    (
        [{"type": "SUBAGENT_STARTED", "subagentRunId": "s", "name": "w"}],
        "node",
        {"name": "w", "phase": "enter", "span": "s"},
    ),
    (
        [{"type": "SUBAGENT_ERROR", "subagentRunId": "s", "message": "x"}],
        "node",
        {"phase": "exit", "result": "error: x"},
    ),
    ([{"type": "STATE_SNAPSHOT", "snapshot": [1]}], "state", {"kind": "snapshot", "payload": [1]}),
    ([{"type": "STATE_DELTA", "delta": []}], "state", {"kind": "delta", "payload": []}),
    ([{"type": "MESSAGES_SNAPSHOT", "messages": []}], "state", {"kind": "messages", "payload": []}),
    (
        [{"type": "CUSTOM", "name": "n", "value": 1}],
        "extension",
        {"name": "CUSTOM", "payload": {"name": "n", "value": 1}},
    ),
    ([{"type": "RAW", "event": {}}], "extension", {"namespace": "ag-ui", "name": "RAW"}),
]


@pytest.mark.parametrize(("objs", "kind", "fields"), BLOCKS)
def test_each_event_is_read_and_written_back(objs, kind, fields, tool):
    codec = tool("ag-ui")
    events = codec.read(sse(*objs))
    event = next(e for e in events if e.type == kind)
    assert {k: getattr(event, k) for k in fields} == fields
    assert codec.lines(events) == objs
    assert codec.lines([e for e in events if e.type != "delta"]) == objs


def test_calls_of_chunk_lines_end_at_the_next_other_line(tool):
    lines = [
        {"type": "TOOL_CALL_CHUNK", "toolCallId": i, "toolCallName": n, "delta": delta}
        for i, n, delta in (("c", "sh", '{"a"'), ("d", "ls", '{"b":'), ("c", "sh", ":1}"))
    ]
    lines += [{"type": "TOOL_CALL_CHUNK", "toolCallId": "d", "delta": "2}"}]
    lines += [{"type": "TOOL_CALL_RESULT", "messageId": "t", **C, "content": "ok"}]
    stored = [e for e in tool("ag-ui").read(sse(*lines)) if e.type != "delta"]
    calls = [(e.call_id, e.name, e.args, e.incomplete) for e in stored[:2]]
    assert calls == [("c", "sh", {"a": 1}, False), ("d", "ls", {"b": 2}, False)]
    assert [(e.type, e.call_id) for e in stored[2:]] == [("result", "c")]


def test_our_run_is_written_as_messages_calls_and_results(tool, our_run):
    def at(number, kind, **fields):
        return {"type": kind, **fields, "timestamp": 1767225600000 + number * 100}

    one, two = {"toolCallId": "call_1_1"}, {"toolCallId": "call_1_2"}
    run = {"threadId": "talk", "runId": "run1"}
    usage = [{"inputTokens": 60, "outputTokens": 14, "totalTokens": 74}]
    assert tool("ag-ui").lines(our_run, conversation="talk") == [
        at(1, "RUN_STARTED", **run),
        at(2, "TEXT_MESSAGE_START", messageId="run1-1", role="user"),
        at(2, "TEXT_MESSAGE_CONTENT", messageId="run1-1", delta="List a"),
        at(2, "TEXT_MESSAGE_END", messageId="run1-1"),
        at(4, "REASONING_START", messageId="run1-2"),
        at(4, "REASONING_MESSAGE_START", messageId="run1-2", role="reasoning"),
        at(4, "REASONING_MESSAGE_CONTENT", messageId="run1-2", delta="Look first."),
        at(4, "REASONING_MESSAGE_END", messageId="run1-2"),
        at(4, "REASONING_END", messageId="run1-2"),
        at(5, "TOOL_CALL_START", **one, toolCallName="sh"),
        at(5, "TOOL_CALL_ARGS", **one, delta='{"c": "ls"}'),
        at(5, "TOOL_CALL_END", **one),
        at(6, "TOOL_CALL_START", **two, toolCallName="sh"),
        at(6, "TOOL_CALL_ARGS", **two, delta='{"c":"cat b"}'),
        at(6, "TOOL_CALL_END", **two),
        at(12, "TOOL_CALL_RESULT", messageId="call_1_1-result", **one, content="a", role="tool"),
        at(
            13,
            "TOOL_CALL_RESULT",
            messageId="call_1_2-result",
            **two,
            content="no such file",
            role="tool",
        ),
        at(15, "TEXT_MESSAGE_START", messageId="run1-3", role="assistant"),
        at(15, "TEXT_MESSAGE_CONTENT", messageId="run1-3", delta="There"),
        at(15, "TEXT_MESSAGE_CONTENT", messageId="run1-3", delta=" is "),
        at(15, "TEXT_MESSAGE_CONTENT", messageId="run1-3", delta="a."),
        at(15, "TEXT_MESSAGE_END", messageId="run1-3"),
        at(18, "RUN_FINISHED", **run, outcome={"type": "success"}, usage=usage),
    ]


def test_a_live_block_of_ours_is_opened_by_its_first_delta_and_closed_once(tool):
    live = [
        ev.Delta(of="respond", block="b", text="a"),
        ev.Delta(of="respond", block="b", text="b"),
        ev.Respond(content="ab", block="b"),
    ]
    assert [o["type"].removeprefix("TEXT_MESSAGE_") for o in tool("ag-ui").lines(live)] == [
        "START",
        "CONTENT",
        "CONTENT",
        "END",
    ]


def test_interleaved_messages_are_kept_apart_and_in_order(tool):
    objs = [
        {"type": f"TEXT_MESSAGE_{what}", "messageId": m, **more}
        for what, m, more in (
            ("START", "a", {"role": "assistant"}),
            ("START", "b", {"role": "assistant"}),
            ("CONTENT", "a", {"delta": "1"}),
            ("CONTENT", "b", {"delta": "2"}),
            ("CONTENT", "a", {"delta": "3"}),
            ("END", "b", {}),
            ("END", "a", {}),
        )
    ]
    codec = tool("ag-ui")
    events = codec.read(sse(*objs))
    assert [e.content for e in events if e.type == "respond"] == ["2", "13"]
    assert codec.lines(events) == objs


def test_a_sub_agent_of_ours_is_a_sub_agent(tool):
    enter, leave = (
        ev.Node(name="w", span="c1", phase=phase, data={"agent": "w"})
        for phase in ("enter", "exit")
    )
    run = [enter, ev.Respond(content="x", span="c1"), leave]
    shown = tool("ag-ui").lines(run)
    assert [o["type"] for o in shown] == [
        "SUBAGENT_STARTED",
        "TEXT_MESSAGE_START",
        "TEXT_MESSAGE_CONTENT",
        "TEXT_MESSAGE_END",
        "SUBAGENT_FINISHED",
    ]
    assert {o["subagentRunId"] for o in shown} == {"c1"}


def test_a_run_that_failed_ends_in_one_error(tool):
    shown = tool("ag-ui").lines(
        [
            ev.Error(code="retry", message="1"),
            ev.Error(code="provider", message="2"),
            ev.End(status="error"),
        ]
    )
    assert shown == [{"type": "RUN_ERROR", "message": "2", "code": "provider"}]


# Names in snake case, snapshots, messages.


class Kind(str, Enum):  # noqa: UP042  (what they are)
    """As the enumeration of AG-UI's own Python objects."""

    START = "TEXT_MESSAGE_START"


def snake(value):
    if isinstance(value, dict):
        renamed = {
            re.sub("([A-Z])", lambda found: f"_{found[1].lower()}", key): key for key in value
        }
        return {
            name: value[key] if key in ("value", "snapshot") else snake(value[key])
            for name, key in renamed.items()
        }
    return [snake(v) for v in value] if isinstance(value, list) else value


CAMEL = [
    {"type": "RUN_STARTED", "threadId": "t", "runId": "r"},
    {"type": "STEP_STARTED", "stepName": "look"},
    {
        "type": "TOOL_CALL_START",
        "toolCallId": "c1",
        "toolCallName": "find",
        "parentMessageId": "m0",
    },
    {"type": "TOOL_CALL_ARGS", "toolCallId": "c1", "delta": '{"message_id": 1}'},
    {"type": "TOOL_CALL_END", "toolCallId": "c1"},
    {"type": "TOOL_CALL_RESULT", "messageId": "m1", "toolCallId": "c1", "content": "found"},
    {"type": "STEP_FINISHED", "stepName": "look"},
    {"type": "TEXT_MESSAGE_START", "messageId": "m2", "role": "assistant"},
    {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m2", "delta": "Here."},
    {"type": "TEXT_MESSAGE_END", "messageId": "m2"},
    {"type": "STATE_SNAPSHOT", "snapshot": {"message_id": 3}},
    {"type": "CUSTOM", "name": "x", "value": {"run_id": 1}, "of_mine": 2},
    {
        "type": "RUN_FINISHED",
        "threadId": "t",
        "runId": "r",
        "usage": [{"inputTokens": 3, "outputTokens": 4}],
    },
]


def read(codec, objects):
    decoder = codec.codec.decoder()
    return [e for obj in objects for e in decoder.read(obj)] + decoder.close(), decoder.losses


def test_names_in_snake_case_are_read_like_those_of_the_wire(tool):
    written, _ = read(tool("ag-ui"), CAMEL)
    events, losses = read(tool("ag-ui"), snake(CAMEL))
    assert snake(CAMEL) != CAMEL
    assert events == written
    assert losses.counts() == {}
    assert [e.name for e in events if e.type == "call"] == ["find"]
    assert tool("ag-ui").lines(events) == CAMEL


def test_a_type_that_is_an_enumeration_is_read(tool):
    content = {"type": "TEXT_MESSAGE_CONTENT", "message_id": "m", "delta": "a"}
    events, _ = read(tool("ag-ui"), [{"type": Kind.START, "message_id": "m"}, content])
    assert [(e.type, e.content) for e in events if e.type != "delta"] == [("respond", "a")]


HISTORY = [
    {"id": "1", "role": "user", "content": "Before?"},
    {"id": "2", "role": "assistant", "content": "That."},
]
NOW = [*HISTORY, {"id": "3", "role": "user", "content": [{"type": "text", "text": "And now?"}]}]
DONE = [
    *NOW,
    {"id": "4", "role": "assistant", "toolCalls": []},
    {"id": "5", "role": "assistant", "content": "This."},
]


def snapshots(*messages, say=()):
    say = [
        {"type": f"TEXT_MESSAGE_{w}", **M, **({"delta": t} if w == "CONTENT" else {})}
        for t in say
        for w in ("START", "CONTENT", "END")
    ]
    middle = [{"type": "MESSAGES_SNAPSHOT", "messages": m} for m in messages]
    return [
        {"type": "RUN_STARTED", "runId": "r"},
        *middle[:1],
        *say,
        *middle[1:],
        {"type": "RUN_FINISHED", "runId": "r"},
    ]


@pytest.mark.parametrize(
    ("lines", "texts"),
    [
        (snapshots(DONE), [("user", "And now?"), ("respond", "This.")]),
        (snapshots(NOW, DONE), [("user", "And now?"), ("respond", "This.")]),
        (snapshots(NOW), [("user", "And now?")]),
        (snapshots(NOW, DONE, say=["This."]), [("user", "And now?"), ("respond", "This.")]),
        (snapshots([]), []),
        (snapshots({"not": "a list"}), []),
    ],
)
def test_a_snapshot_of_the_messages_gives_prompt_and_answer_without_text(tool, lines, texts):
    events, losses = read(tool("ag-ui"), lines)
    assert [(e.type, e.content) for e in events if e.type in ("user", "respond")] == texts
    assert events[-1].type == "end"
    assert tool("ag-ui").lines(events) == lines
    assert not losses


def call(number, name="find"):
    return {
        "id": number,
        "type": "function",
        "function": {"name": name, "arguments": '{"what": "x"}'},
    }


WORK = [
    *NOW,
    {"id": "4", "role": "assistant", "content": "I look.", "toolCalls": [call("a"), call("b")]},
    {"id": "5", "role": "tool", "toolCallId": "a", "content": "found"},
    {"id": "6", "role": "tool", "toolCallId": "b", "content": "", "error": "no such thing"},
    {"id": "7", "role": "assistant", "content": "This."},
]
SEEN = [
    ("respond", "I look."),
    ("call", "a"),
    ("call", "b"),
    ("result", "a", "ok", "found"),
    ("result", "b", "error", "no such thing"),
    ("respond", "This."),
]


def seen(events):
    """Return what a run did, as tuples."""
    return [
        ("respond", e.content)
        if e.type == "respond"
        else ("call", e.call_id)
        if e.type == "call"
        else ("result", e.call_id, e.status, e.content)
        for e in events
        if e.type in ("respond", "call", "result")
    ]


def test_a_snapshot_of_the_messages_gives_calls_and_results_too(tool):
    lines = snapshots(WORK)
    events, losses = read(tool("ag-ui"), lines)
    assert seen(events) == SEEN
    assert [(e.name, e.args) for e in events if e.type == "call"] == [("find", {"what": "x"})] * 2
    assert [e.name for e in events if e.type == "result"] == ["find", "find"]
    assert tool("ag-ui").lines(events) == lines
    assert not losses


def test_a_snapshot_in_snake_case_gives_calls_and_results_too(tool):
    snake = json.loads(
        json.dumps(WORK).replace("toolCallId", "tool_call_id").replace("toolCalls", "tool_calls")
    )
    assert seen(read(tool("ag-ui"), snapshots(snake))[0]) == SEEN


def test_streamed_calls_and_results_are_not_doubled_by_a_snapshot(tool):
    streamed = [
        {"type": "TOOL_CALL_START", "toolCallId": "a", "toolCallName": "find"},
        {"type": "TOOL_CALL_END", "toolCallId": "a"},
        {"type": "TOOL_CALL_RESULT", "toolCallId": "a", "content": "found", "messageId": "5"},
    ]
    start, *rest = snapshots(WORK, WORK)
    assert seen(read(tool("ag-ui"), [start, *streamed, *rest])[0]) == [
        ("call", "a"),
        ("result", "a", "ok", "found"),
        ("respond", "I look."),
        ("call", "b"),
        ("result", "b", "error", "no such thing"),
        ("respond", "This."),
    ]


@pytest.mark.parametrize(
    "last",
    [[], [{"type": "RUN_ERROR", "message": "no"}], [{"type": "RUN_STARTED", "runId": "q"}]],
    ids=["cut", "failed", "another run"],
)
def test_a_run_that_did_not_finish_has_what_its_snapshot_says(tool, last):
    events, _ = read(tool("ag-ui"), [*snapshots(WORK)[:-1], *last])
    assert seen([e for e in events if e.run == "r"]) == SEEN


@pytest.mark.parametrize("odd", [None, "x", [None], [{}], [{"id": 3, "function": "f"}]])
def test_odd_messages_in_a_snapshot_break_nothing(tool, odd):
    messages = [{"role": "assistant", "toolCalls": odd}, {"role": "tool", "content": odd}]
    events, _ = read(tool("ag-ui"), snapshots(messages))
    assert events[-1].type == "end"


def test_the_blocks_of_one_text_are_one_message(tool):
    run = [
        ev.Respond(content="A ", block="1", turn=1),
        ev.Think(content="hm", block="2", turn=1),
        ev.Respond(content="b.", block="3", turn=1),
        ev.Call(call_id="c", name="x", turn=1),
        ev.Respond(content="C.", block="4", turn=1),
    ]
    starts = [
        line["messageId"]
        for line in tool("ag-ui").lines(run)
        if line["type"] == "TEXT_MESSAGE_START"
    ]
    assert starts[0] == starts[1] != starts[2]


def test_the_tokens_of_a_sub_agent_do_not_replace_those_of_the_run(tool):
    run = [
        ev.Metric(total=ev.Counts(input=10, output=2)),
        ev.Metric(span="c", total=ev.Counts(input=3, output=1)),
        ev.End(status="limit"),
    ]
    assert tool("ag-ui").lines(run)[-1]["usage"][0]["totalTokens"] == 12


def test_the_texts_of_two_runs_are_two_messages(tool):
    runs = [
        event
        for run in ("a", "b")
        for event in (
            ev.Respond(run=run, content="A", block="1", turn=1),
            ev.End(run=run, status="ok"),
        )
    ]
    lines = tool("ag-ui").lines(runs)
    assert len({line["messageId"] for line in lines if "messageId" in line}) == 2


def test_a_client_that_asked_does_not_get_its_message_again(tool):
    run = [
        ev.RunStart(run="r"),
        ev.User(content="Hi?", run="r"),
        ev.Respond(content="Hello.", run="r"),
        ev.End(run="r"),
    ]
    codec = tool("ag-ui")
    assert "Hi?" in str(codec.lines(run))
    assert "Hi?" not in str(codec.lines(run, asked=True))
    assert "Hello." in str(codec.lines(run, asked=True))
