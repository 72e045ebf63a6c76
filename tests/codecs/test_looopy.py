"""The looopy codec against events and frames written by hand from seed 004."""

import json

import pytest
from helpers.streams import stored

from agent_nb import events as ev
from agent_nb.codecs import encode
from agent_nb.events.chunks import decode_chunks

WHERE = {"contextId": "ctx", "taskId": "t1", "timestamp": "2026-01-01T00:00:00.000Z"}
TOOL = {"toolCallId": "c1", "toolName": "sh"}
LINES = [
    (
        {"kind": "task-created", "initiator": "user", "metadata": {"agentId": "a", "model": "m"}},
        "run_start",
        {"agent": "a", "model": "m"},
    ),
    (
        {"kind": "task-status", "status": {"state": "submitted"}},
        "state",
        {"kind": "status", "payload": {"status": {"state": "submitted"}}},
    ),
    (
        {"kind": "task-status", "status": {"state": "failed", "error": "boom"}},
        "error",
        {"message": "boom"},
    ),
    (
        {"kind": "task-status", "status": {"state": "failed", "error": "boom"}},
        "end",
        {"status": "error"},
    ),
    (
        {"kind": "task-status", "status": "canceled", "metadata": {"reason": "user left"}},
        "interrupt",
        {"reason": "user", "detail": "user left"},
    ),
    ({"kind": "task-status", "status": "canceled"}, "end", {"status": "interrupted"}),
    ({"kind": "task-status", "status": "waiting-input"}, "end", {"status": "awaiting"}),
    ({"kind": "task-status", "status": "completed"}, "end", {"status": "ok"}),
    (
        {"kind": "task-complete", "finishReason": "stop"},
        "end",
        {"status": "ok", "finish_reason": "stop"},
    ),
    ({"kind": "task-complete", "content": "all of it"}, "respond", {"content": "all of it"}),
    ({"kind": "content-delta", "delta": "Let me ", "index": 0}, "respond", {"content": "Let me "}),
    ({"kind": "content-delta", "content": "Let me "}, "respond", {"content": "Let me "}),
    (
        {"kind": "content-complete", "content": "whole", "finishReason": "stop"},
        "respond",
        {"content": "whole"},
    ),
    (
        {
            "kind": "thought-stream",
            "thoughtId": "th",
            "thoughtType": "reflection",
            "verbosity": "brief",
            "content": "hm",
            "index": 0,
            "metadata": {"confidence": 0.7, "source": "content"},
        },
        "think",
        {
            "content": "hm",
            "attributes": {
                "thought_type": "reflection",
                "verbosity": "brief",
                "confidence": 0.7,
                "source": "content",
            },
        },
    ),
    (
        {"kind": "thought-stream", "thoughtType": "reasoning", "content": "hm"},
        "think",
        {"attributes": None},
    ),
    (
        {"kind": "thought-stream", "thought": "as the client reads it"},
        "think",
        {"content": "as the client reads it"},
    ),
    (
        {"kind": "tool-call", **TOOL, "arguments": {"c": 1}},
        "call",
        {"call_id": "c1", "name": "sh", "args": {"c": 1}, "synthetic": False},
    ),
    (
        {"kind": "tool-start", **TOOL, "arguments": {"c": 1}},
        "started",
        {"call_id": "c1", "name": "sh"},
    ),
    ({"kind": "internal:tool-start", **TOOL}, "started", {"call_id": "c1"}),
    (
        {
            "kind": "tool-progress",
            "toolCallId": "c1",
            "progress": 0.5,
            "message": "half",
            "metadata": {"step": "x"},
        },
        "progress",
        {"fraction": 0.5, "message": "half", "data": {"step": "x"}},
    ),
    (
        {
            "kind": "tool-complete",
            **TOOL,
            "success": True,
            "result": {"v": 4},
            "metadata": {"duration": 1200},
        },
        "result",
        {"status": "ok", "content": {"v": 4}, "duration": 1.2},
    ),
    (
        {"kind": "tool-complete", **TOOL, "success": False, "error": "offline"},
        "result",
        {"status": "error", "content": "offline"},
    ),
    ({"kind": "internal:tool-complete", **TOOL, "success": True}, "result", {"status": "ok"}),
    (
        {
            "kind": "tool-input-required",
            **TOOL,
            "inputId": "i",
            "inputType": "confirmation",
            "prompt": "?",
            "toolArguments": {"c": 1},
        },
        "approval",
        {"call_id": "c1", "stage": "requested", "args": {"c": 1}},
    ),
    (
        {
            "kind": "llm-usage",
            "model": "m",
            "prompt_tokens": 5,
            "completion_tokens": 3,
            "total_tokens": 8,
        },
        "metric",
        {"step": ev.Counts(input=5, output=3)},
    ),
    (
        {"kind": "message", "message": {"role": "user", "content": "2+2?"}},
        "user",
        {"content": "2+2?"},
    ),
    (
        {"kind": "internal:llm-call", "iteration": 1, "messageCount": 2},
        "node",
        {
            "name": "llm",
            "phase": "enter",
            "data": {"iteration": 1, "messageCount": 2, "internal": True},
        },
    ),
    (
        {"kind": "internal:checkpoint", "iteration": 1},
        "state",
        {"kind": "checkpoint", "payload": {"iteration": 1}},
    ),
    (
        {"kind": "internal:thought-process", "stage": "pre-llm"},
        "extension",
        {"name": "internal:thought-process", "payload": {"stage": "pre-llm"}},
    ),
    ({"kind": "input-required", "inputId": "i"}, "extension", {"name": "input-required"}),
    ({"kind": "auth-completed", "authId": "i"}, "extension", {"name": "auth-completed"}),
    ({"kind": "data-write", "artifactId": "a", "data": {}}, "extension", {"name": "data-write"}),
    (
        {"kind": "subtask-created", "subtaskId": "s", "prompt": "p"},
        "extension",
        {"name": "subtask-created"},
    ),
    (
        {"kind": "never-seen", "x": 1},
        "extension",
        {"namespace": "looopy", "name": "never-seen", "payload": {"x": 1}},
    ),
]


def document(*objs):
    return "".join(f"data: {json.dumps({**o, **WHERE})}\n\n" for o in objs)


def server(*objs):
    """The server's frames: the kind on the event line, the context in the id."""
    out = []
    for number, obj in enumerate(objs, 1):
        data = {k: v for k, v in {**obj, **WHERE}.items() if k not in ("kind", "contextId")}
        out.append(f"id: ctx-{number}\nevent: {obj['kind']}\ndata: {json.dumps(data)}\n\n")
    return "".join(out)


@pytest.mark.parametrize(("obj", "kind", "fields"), LINES)
@pytest.mark.parametrize("form", [document, server])
def test_each_kind_is_read_and_written_back_in_both_framings(
    obj, kind, fields, form, tool, parsed, joined
):
    looopy = tool("looopy")
    events = looopy.read(form(obj))
    event = next(e for e in events if e.type == kind)
    assert {k: getattr(event, k) for k in fields} == fields
    assert (event.run, event.origin) == ("t1", "imported")
    for each in (events, stored(events)):
        assert parsed(joined(looopy.write(each))) == parsed(form(obj))


def test_our_run_is_written_as_the_timeline_of_the_seed(tool, our_run):
    shown = tool("looopy").lines(our_run)
    at = [f"2026-01-01T00:00:0{i // 10}.{i % 10}00Z" for i in range(20)]

    def event(number, kind, **fields):
        return {
            "kind": kind,
            "contextId": "run1",
            "taskId": "run1",
            **fields,
            "timestamp": at[number],
        }

    first = {"toolCallId": "call_1_1", "toolName": "sh"}
    assert shown == [
        event(
            1, "task-created", initiator="user", metadata={"agentId": "helper", "model": "lab/m"}
        ),
        event(1, "task-status", status={"state": "submitted"}),
        event(1, "task-status", status={"state": "working"}),
        event(2, "message", message={"role": "user", "content": "List a"}),
        event(3, "internal:llm-call", iteration=1, messageCount=2),
        event(
            4,
            "thought-stream",
            thoughtId="1.1",
            index=0,
            thoughtType="reasoning",
            verbosity="normal",
            content="Look first.",
        ),
        event(5, "tool-call", **first, arguments={"c": "ls"}),
        event(6, "tool-call", toolCallId="call_1_2", toolName="sh", arguments={"c": "cat b"}),
        event(8, "llm-usage", prompt_tokens=20, completion_tokens=9, total_tokens=29),
        event(10, "tool-start", **first, arguments={"c": "ls"}),
        event(11, "tool-progress", toolCallId="call_1_1", message="a\n"),
        event(12, "tool-complete", **first, success=True, result="a", metadata={"duration": 200}),
        event(
            13,
            "tool-complete",
            toolCallId="call_1_2",
            toolName="sh",
            success=False,
            error="no such file",
        ),
        event(14, "internal:llm-call", iteration=2, messageCount=4),
        event(15, "content-delta", delta="There", index=0),
        event(15, "content-delta", delta=" is ", index=1),
        event(15, "content-delta", delta="a.", index=2),
        event(15, "content-complete", content="There is a.", finishReason="stop"),
        event(17, "llm-usage", prompt_tokens=40, completion_tokens=5, total_tokens=45),
        event(18, "task-complete", finishReason="stop", content="There is a."),
    ]


def test_frames_have_the_kind_on_the_event_line_and_count_from_one(tool):
    texts = tool("looopy").write(
        [ev.RunStart(run="t9"), ev.Respond(content="x", run="t9"), ev.End(run="t9")],
        conversation="ctx",
    )
    assert (
        texts[0] == 'id: ctx-1\nevent: task-created\ndata: {"taskId":"t9","initiator":"user"}\n\n'
    )
    assert texts[-1] == 'id: ctx-6\nevent: task-complete\ndata: {"taskId":"t9","content":"x"}\n\n'


def test_the_documents_frames_have_everything_in_the_data(tool):
    texts = tool("looopy:document").write([ev.User(content="hi", run="t9")], conversation="ctx")
    assert texts == [
        'data: {"kind":"message","contextId":"ctx","taskId":"t9","message":{"role":"user","content":"hi"}}\n\n'
    ]


def test_a_thought_between_deltas_parts_the_text_and_adds_no_text(tool):
    delta = {"kind": "content-delta"}
    events = stored(
        tool("looopy").read(
            document(
                {**delta, "delta": "Let me ", "index": 0},
                {"kind": "thought-stream", "thoughtType": "reasoning", "content": "verify"},
                {**delta, "delta": "The answer", "index": 1},
                {
                    "kind": "content-complete",
                    "content": "Let me The answer",
                    "finishReason": "stop",
                },
            )
        )
    )
    assert [(e.type, e.content) for e in events] == [
        ("respond", "Let me "),
        ("think", "verify"),
        ("respond", "The answer"),
    ]


def test_a_task_that_failed_and_is_completed_ends_once(tool):
    events = tool("looopy").read(
        document(
            {"kind": "task-status", "status": {"state": "failed", "error": "x"}},
            {"kind": "task-complete"},
        )
    )
    assert [e.status for e in events if e.type == "end"] == ["error"]


def test_an_internal_and_a_plain_tool_event_are_one_start_and_one_result(tool):
    events = tool("looopy").read(
        document(
            {"kind": "tool-call", **TOOL, "arguments": {}},
            {"kind": "internal:tool-start", **TOOL},
            {"kind": "tool-start", **TOOL},
            {"kind": "internal:tool-complete", **TOOL, "success": True},
            {"kind": "tool-complete", **TOOL, "success": True, "result": 1},
        )
    )
    assert [e.type for e in events if e.type in ("started", "result")] == ["started", "result"]


def test_tasks_of_one_stream_are_runs_of_their_own(tool):
    frames = [
        {"kind": "content-delta", "delta": f"{t}{i}", "taskId": t}
        for i in (1, 2)
        for t in ("a", "b")
    ]
    events = stored(tool("looopy").read("".join(f"data: {json.dumps(f)}\n\n" for f in frames)))
    assert [(e.run, e.content) for e in events] == [("a", "a1a2"), ("b", "b1b2")]


def test_a_sub_agents_path_makes_a_run_inside_the_run(tool):
    inner = {"taskId": "t1", "path": ["agent:writer"]}
    frames = [
        {"kind": "task-status", "status": "working", "taskId": "t1"},
        {"kind": "content-delta", "delta": "inner", **inner},
        {"kind": "task-complete", **inner},
        {"kind": "content-complete", "content": "outer", "taskId": "t1"},
        {"kind": "task-complete", "taskId": "t1"},
    ]
    events = stored(tool("looopy").read("".join(f"data: {json.dumps(f)}\n\n" for f in frames)))
    assert [(e.type, e.span) for e in events] == [
        ("state", ""),
        ("node", "agent:writer"),
        ("respond", "agent:writer"),
        ("end", "agent:writer"),
        ("node", "agent:writer"),
        ("respond", ""),
        ("end", ""),
    ]


def test_a_sub_agents_result_ends_no_outer_call_with_the_same_id(tool):
    inner = {"taskId": "t1", "path": ["tool:ask", "agent:writer"]}
    call = {"toolCallId": "c1", "toolName": "ask"}
    frames = [
        {"kind": "tool-call", "taskId": "t1", **call},
        {"kind": "tool-start", **inner, "toolCallId": "c1", "toolName": "look"},
        {"kind": "tool-complete", **inner, "toolCallId": "c1", "success": True, "result": "seen"},
        {"kind": "content-complete", "content": "inner", **inner},
        {"kind": "tool-complete", "taskId": "t1", **call, "success": True, "result": "answer"},
        {"kind": "task-complete", "taskId": "t1"},
    ]
    events = stored(tool("looopy").read("".join(f"data: {json.dumps(f)}\n\n" for f in frames)))
    assert [(e.type, e.span) for e in events] == [
        ("call", ""),
        ("node", "c1"),
        ("call", "c1"),
        ("started", "c1"),
        ("result", "c1"),
        ("respond", "c1"),
        ("node", "c1"),
        ("result", ""),
        ("end", ""),
    ]


def test_a_sub_agent_of_ours_has_a_path(tool):
    run = [
        ev.Node(name="writer", span="c1"),
        ev.Respond(content="inner", span="c1"),
        ev.Respond(content="deep", span="c1/c2"),
    ]
    assert [o.get("path") for o in tool("looopy").lines(run)] == [["agent:writer"]] * 3


def test_times_between_deltas_are_kept_in_chunks(tool):
    frames = [
        {
            "kind": "content-delta",
            "delta": d,
            "index": i,
            "taskId": "t",
            "timestamp": f"2026-01-01T00:00:00.{ms:03d}Z",
        }
        for i, (d, ms) in enumerate([("a", 100), ("b", 150), ("c", 400)])
    ]
    looopy = tool("looopy")
    events = stored(looopy.read("".join(f"data: {json.dumps(f)}\n\n" for f in frames)))
    assert list(decode_chunks(events[0].chunks)) == [(1, 0), (1, 50), (1, 250)]
    assert "lines" not in events[0].extra["looopy"]
    assert looopy.lines(events) == frames


def test_a_hostile_kind_cannot_break_the_framing(tool):
    looopy = tool("looopy")
    evil = {"kind": "a\n\ndata: {}\n\nevent: b", "taskId": "t"}
    texts = looopy.write(looopy.read(json.dumps(evil) + "\n"))
    assert len(texts) == 1
    assert texts[0].count("\n\n") == 1


def test_a_duration_is_written_as_the_nearest_millisecond():
    result = ev.Result(run="r", call_id="c", name="sh", duration=1.001)
    texts = encode([ev.RunStart(run="r"), result], "looopy", framing="ndjson")
    objects = [json.loads(text) for text in texts]
    durations = [obj["metadata"]["duration"] for obj in objects if obj["kind"] == "tool-complete"]
    assert durations == [1001]
