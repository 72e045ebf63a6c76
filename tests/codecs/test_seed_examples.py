"""The shape of every JSON example in the five seed documents, each a case of its own: it decodes,
and comes out unchanged.
"""

import json

import pytest

A = {"timestamp": 1700000000.0}
S = {"session_id": "s-1", "node_id": "run-think-1"}
STEP = {"input": 7, "output": 5, "duration": 0.4}
CASES = {
    # seed 000 § Event Schema
    "000-user": ("cogency", {"type": "user", "content": "Which tests fail?", **A}, ["user"]),
    "000-think": ("cogency", {"type": "think", "content": "run them", **A}, ["think"]),
    "000-call": (
        "cogency",
        {"type": "call", "content": '{"name": "run", "args": {"suite": "all"}}', **A},
        ["call"],
    ),
    "000-execute": ("cogency", {"type": "execute", **A}, ["execute"]),
    "000-result": (
        "cogency",
        {"type": "result", "payload": {"outcome": "2 failed", "content": "…", "error": False}, **A},
        ["call", "result"],
    ),
    "000-respond": ("cogency", {"type": "respond", "content": "two", **A}, ["respond"]),
    "000-end": ("cogency", {"type": "end", **A}, ["end"]),
    "000-metric": (
        "cogency",
        {"type": "metric", "step": STEP, "total": {"input": 14, "output": 9, "duration": 0.9}, **A},
        ["metric"],
    ),
    "000-error": (
        "cogency",
        {"type": "error", "payload": {"error": "no answer in 30 s", "tool": "sh"}, **A},
        ["error"],
    ),
    "000-interrupt": ("cogency", {"type": "interrupt", **A}, ["interrupt"]),
    # seed 000 § Full Conversation Example: the same without times, but for execute
    "000-conversation-user": (
        "cogency",
        {"type": "user", "content": "Which tests fail?"},
        ["user"],
    ),
    "000-conversation-think": (
        "cogency",
        {"type": "think", "content": "I have to run them"},
        ["think"],
    ),
    "000-conversation-call": (
        "cogency",
        {"type": "call", "content": '{"name": "run", "args": {"suite": "all"}}'},
        ["call"],
    ),
    "000-conversation-result": (
        "cogency",
        {"type": "result", "payload": {"outcome": "Ran 9", "content": "…", "error": False}},
        ["call", "result"],
    ),
    "000-conversation-respond": (
        "cogency",
        {"type": "respond", "content": "Two of nine"},
        ["respond"],
    ),
    "000-conversation-end": ("cogency", {"type": "end"}, ["end"]),
    "000-conversation-metric": (
        "cogency",
        {"type": "metric", "step": STEP, "total": STEP},
        ["metric"],
    ),
    # seed 000 § Persistence, § Storage → Messages: stored events; the result is JSON text there
    "000-stored-think": ("cogency", {"type": "think", "content": "looking"}, ["think"]),
    "000-stored-call-elided": (
        "cogency",
        {"type": "call", "content": '{"name": "run", ...}'},
        ["call"],
    ),
    "000-stored-result": (
        "cogency",
        {"type": "result", "content": '{"outcome": "Success", "content": "…"}'},
        ["call", "result"],
    ),
    "000-stored-result-elided": (
        "cogency",
        {"type": "result", "content": '{"outcome": "Success", ...}'},
        ["call", "result"],
    ),
    # seed 000 § Examples: result arrays, as a batch
    "000-results-list-content": (
        "cogency",
        {
            "type": "result",
            "content": '[{"tool": "ls", "status": "success", "content": ["a", "b"]}]',
        },
        ["call", "result"],
    ),
    "000-results-two": (
        "cogency",
        {
            "type": "result",
            "content": '[{"tool": "ls", "status": "success", "content": ["a"]}, '
            '{"tool": "cat", "status": "success", "content": "{\\"k\\": \\"v\\"}"}]',
        },
        ["call", "result", "call", "result"],
    ),
    # seed 001 § Parser Events
    "001-think": ("cogency", {"type": "think", "content": "first", **A}, ["think"]),
    "001-call-without-args": (
        "cogency",
        {"type": "call", "content": '{"name": "run"}', **A},
        ["call"],
    ),
    "001-execute-empty": ("cogency", {"type": "execute", "content": "", **A}, ["execute"]),
    "001-respond": ("cogency", {"type": "respond", "content": "done", **A}, ["respond"]),
    "001-end-empty": ("cogency", {"type": "end", "content": "", **A}, ["end"]),
    # seed 002 § 4.3
    "002-run-start": (
        "loom",
        {
            "session_id": "s-1",
            "event_id": 0,
            "type": "run_start",
            "run_id": "r-1",
            "message": "Hi",
            "agent": "react",
        },
        ["run_start", "user"],
    ),
    "002-node-enter": ("loom", {**S, "event_id": 1, "type": "node_enter", "id": "think"}, ["node"]),
    "002-chunk": (
        "loom",
        {**S, "event_id": 2, "type": "message_chunk", "content": "W", "id": "think"},
        ["delta", "respond"],
    ),
    "002-chunk-space": (
        "loom",
        {**S, "event_id": 3, "type": "message_chunk", "content": " e", "id": "think"},
        ["delta", "respond"],
    ),
    "002-usage": (
        "loom",
        {
            **S,
            "event_id": 4,
            "type": "usage",
            "prompt_tokens": 9,
            "completion_tokens": 3,
            "total_tokens": 12,
        },
        ["metric"],
    ),
    "002-node-exit": (
        "loom",
        {**S, "event_id": 5, "type": "node_exit", "id": "think", "result": "Ok"},
        ["node"],
    ),
    "002-legacy-run-start": (
        "loom",
        {"type": "run_start", "run_id": "r-1", "agent": "react"},
        ["run_start"],
    ),
    "002-legacy-enter": ("loom", {"type": "node_enter", "id": "think"}, ["node"]),
    "002-legacy-chunk": (
        "loom",
        {"type": "message_chunk", "content": "Hi", "id": "think"},
        ["delta", "respond"],
    ),
    "002-legacy-exit": ("loom", {"type": "node_exit", "id": "think", "result": "Ok"}, ["node"]),
    "002-exit-err": (
        "loom",
        {"type": "node_exit", "id": "think", "result": {"Err": "why"}},
        ["node"],
    ),
    # seed 002 § 5
    "002-reply": ("loom", {**S, "event_id": 8, "reply": "I have no clock"}, ["respond", "end"]),
    # seed 003 § 5
    "003-shell-progress": (
        "agent-event",
        {
            "type": "tool_progress",
            "toolName": "sh",
            "data": {"subtype": "stdout_chunk", "content": "1 file\n"},
        },
        ["call", "progress"],
    ),
    "003-llm-progress": (
        "agent-event",
        {"type": "tool_progress", "toolName": "ask", "data": "Well, "},
        ["call", "progress"],
    ),
    "003-transfer-progress": (
        "agent-event",
        {
            "type": "tool_progress",
            "toolName": "Copy",
            "data": {"subtype": "transfer_progress", "percent": 40},
        },
        ["call", "progress"],
    ),
    # seed 003 § 6
    "003-thought": ("agent-event", {"type": "thought", "content": "list them"}, ["think"]),
    "003-tool-call": (
        "agent-event",
        {"type": "tool_call", "toolName": "sh", "toolArgs": '{"command":"ls"}'},
        ["call"],
    ),
    "003-progress": (
        "agent-event",
        {
            "type": "tool_progress",
            "toolName": "sh",
            "data": {"subtype": "stdout_chunk", "content": "…"},
        },
        ["call", "progress"],
    ),
    "003-result": (
        "agent-event",
        {"type": "tool_result", "toolName": "sh", "output": '{"stdout":"…","stderr":""}'},
        ["call", "result"],
    ),
    "003-stream": (
        "agent-event",
        {"type": "stream", "content": " holds `a`."},
        ["delta", "respond"],
    ),
    "003-final": ("agent-event", {"type": "final"}, ["end"]),
    # seed 003 § 3: the remaining members of the unions
    "003-error": ("agent-event", {"type": "error", "error": "why"}, ["error", "end"]),
    "003-result-error": (
        "agent-event",
        {"type": "tool_result", "toolName": "sh", "output": "no", "isError": True},
        ["call", "result"],
    ),
    "003-tool-event-progress": (
        "agent-event",
        {"type": "progress", "toolName": "sh", "data": [1]},
        ["call", "progress"],
    ),
    "003-tool-event-result": (
        "agent-event",
        {"type": "result", "toolName": "sh", "output": "x"},
        ["call", "result"],
    ),
    # seed 004 § Event Emission Timeline, § SSE Protocol Details
    "004-submitted": (
        "looopy",
        {"kind": "task-status", "taskId": "t", "contextId": "c", "status": {"state": "submitted"}},
        ["state"],
    ),
    "004-working": (
        "looopy",
        {"kind": "task-status", "taskId": "t", "contextId": "c", "status": {"state": "working"}},
        ["state"],
    ),
    "004-llm-call": (
        "looopy",
        {"kind": "internal:llm-call", "taskId": "t", "contextId": "c"},
        ["node", "node"],
    ),
    "004-delta": (
        "looopy",
        {"kind": "content-delta", "taskId": "t", "contextId": "c", "delta": "Let ", "index": 0},
        ["delta", "respond"],
    ),
    "004-delta-as-the-client-reads-it": (
        "looopy",
        {"kind": "content-delta", "content": "Let "},
        ["delta", "respond"],
    ),
    "004-thought": (
        "looopy",
        {"kind": "thought-stream", "taskId": "t", "thoughtType": "reasoning", "content": "check"},
        ["think"],
    ),
    "004-thought-as-the-client-reads-it": (
        "looopy",
        {"kind": "thought-stream", "thought": "check"},
        ["think"],
    ),
    "004-content-complete": (
        "looopy",
        {"kind": "content-complete", "taskId": "t", "contextId": "c", "content": "Let me"},
        ["respond"],
    ),
    "004-tool-start": (
        "looopy",
        {"kind": "internal:tool-start", "toolCallId": "x", "toolName": "calc"},
        ["call", "started"],
    ),
    "004-tool-complete": (
        "looopy",
        {"kind": "internal:tool-complete", "toolCallId": "x", "toolName": "calc", "success": True},
        ["call", "result"],
    ),
    "004-checkpoint": (
        "looopy",
        {"kind": "internal:checkpoint", "taskId": "t", "contextId": "c"},
        ["state"],
    ),
    "004-task-complete": (
        "looopy",
        {"kind": "task-complete", "taskId": "t", "contextId": "c", "finishReason": "stop"},
        ["end"],
    ),
    "004-failed": (
        "looopy",
        {"kind": "task-status", "taskId": "t", "status": {"state": "failed", "error": "cut"}},
        ["state", "error", "end"],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_it_decodes_and_comes_out_unchanged(case, tool):
    name, obj, kinds = CASES[case]
    codec = tool(name)
    events = codec.read(json.dumps(obj) + "\n", strict=True)
    assert [e.type for e in events] == kinds
    assert codec.lines(events) == [obj]
    assert codec.lines([e for e in events if e.type != "delta"]) == [obj]


@pytest.mark.parametrize("case", [c for c in CASES if CASES[c][0] in ("agent-event", "looopy")])
def test_it_decodes_over_sse_too(case, tool, parsed, joined):
    name, obj, kinds = CASES[case]
    codec = tool(name)
    text = f"data: {json.dumps(obj)}\n\n"
    assert [e.type for e in codec.read(text)] == kinds
    assert parsed(joined(codec.write(codec.read(text)))) == parsed(text)


def test_the_conversation_of_seed_000_reads_as_one_run(tool):
    lines = [CASES[f"000-conversation-{part}"][1] for part in ("user", "think", "call")]
    lines += [
        CASES["000-execute"][1],
        *(CASES[f"000-conversation-{part}"][1] for part in ("result", "respond", "end", "metric")),
    ]
    cogency = tool("cogency")
    events = cogency.read("".join(json.dumps(line) + "\n" for line in lines))
    assert [e.type for e in events] == [
        "user",
        "think",
        "call",
        "execute",
        "result",
        "respond",
        "metric",
        "end",
    ]
    assert len({e.run for e in events}) == 1
    assert events[4].call_id == events[2].call_id == events[3].calls[0]
    assert cogency.lines(events) == lines


def test_the_flow_of_seed_003_reads_as_one_run(tool):
    flow = [
        CASES[f"003-{part}"][1]
        for part in (
            "thought",
            "tool-call",
            "progress",
            "result",
            "thought",
            "stream",
            "stream",
            "final",
        )
    ]
    events = tool("agent-event").read("".join(f"data: {json.dumps(o)}\n\n" for o in flow))
    stored = [e for e in events if e.type != "delta"]
    assert [e.type for e in stored] == [
        "think",
        "call",
        "progress",
        "result",
        "think",
        "respond",
        "end",
    ]
    assert stored[2].call_id == stored[3].call_id == stored[1].call_id
    assert stored[5].content == " holds `a`. holds `a`."


def test_the_timeline_of_seed_004_reads_as_one_run(tool):
    where = {"taskId": "t", "contextId": "c"}
    delta = "content-delta"
    texts = [
        (delta, "Let me "),
        (delta, "see "),
        ("thought-stream", "verify"),
        (delta, "It "),
        (delta, "is 4"),
    ]
    flow = [
        {"kind": "task-status", "status": {"state": "submitted"}},
        {"kind": "task-status", "status": {"state": "working"}},
        {"kind": "internal:llm-call"},
        *({"kind": k, "delta" if k == delta else "content": t} for k, t in texts),
        {"kind": "content-complete", "content": "Let me see It is 4"},
        {"kind": "internal:checkpoint"},
        {"kind": "task-complete", "finishReason": "stop"},
    ]
    looopy = tool("looopy")
    flow = [{**o, **where} for o in flow]
    events = [
        e
        for e in looopy.read("".join(f"data: {json.dumps(o)}\n\n" for o in flow))
        if e.type != "delta"
    ]
    assert [e.type for e in events] == [
        "state",
        "state",
        "node",
        "respond",
        "think",
        "respond",
        "node",
        "state",
        "end",
    ]
    assert looopy.lines(events) == flow
