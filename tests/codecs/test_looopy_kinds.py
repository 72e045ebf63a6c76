"""Every kind that a Looopy stream has, with its fields: read in strict mode, written as it was."""

import json

import pytest

T = {
    "taskId": "t",
    "contextId": "c",
    "path": ["agent:lead"],
    "timestamp": "2026-01-01T00:00:00.000Z",
}
ARTIFACT = {"artifactId": "a", "index": 0, "complete": False}
KINDS = {
    "task-created": {"initiator": "user", "metadata": {"k": 1}},
    "task-status": {"status": {"state": "waiting-input"}, "metadata": {}},
    "task-complete": {"content": "done", "artifacts": ["a"], "finishReason": "stop"},
    "content-delta": {"delta": "a", "index": 0},
    "content-complete": {"content": "ab", "finishReason": "tool_calls", "toolCalls": [{"id": "x"}]},
    "tool-call": {"toolCallId": "x", "toolName": "calc", "arguments": {"a": 1}},
    "tool-start": {
        "toolCallId": "x",
        "toolName": "calc",
        "icon": "sum",
        "arguments": {"a": 1},
        "metadata": {"concurrent": True},
    },
    "tool-progress": {
        "toolCallId": "x",
        "progress": 0.25,
        "message": "a quarter",
        "metadata": {"step": "one"},
    },
    "tool-complete": {
        "toolCallId": "x",
        "toolName": "calc",
        "success": True,
        "result": [1],
        "metadata": {"duration": 12, "cached": False},
    },
    "tool-input-required": {
        "toolCallId": "x",
        "inputId": "i",
        "inputType": "confirmation",
        "prompt": "Sure?",
        "options": ["y", "n"],
    },
    "input-required": {
        "inputId": "i",
        "inputType": "data",
        "prompt": "Which?",
        "schema": {"type": "string"},
        "requireUser": True,
    },
    "input-received": {"inputId": "i", "providedBy": "user"},
    "auth-required": {
        "authId": "a",
        "authType": "oauth2",
        "provider": "p",
        "scopes": ["s"],
        "prompt": "Log in",
    },
    "auth-completed": {"authId": "a", "userId": "u"},
    "file-write": {**ARTIFACT, "name": "f", "mimeType": "text/plain", "data": "line\n"},
    "data-write": {**ARTIFACT, "name": "d", "data": {"k": [1]}},
    "dataset-write": {**ARTIFACT, "name": "s", "rows": [{"k": 1}]},
    "subtask-created": {"subtaskId": "t2", "agentId": "helper", "prompt": "look"},
    "thought-stream": {
        "thoughtId": "h",
        "thoughtType": "decision",
        "verbosity": "brief",
        "content": "so",
        "index": 1,
        "metadata": {
            "source": "content-tag",
            "confidence": 0.8,
            "alternatives": ["no"],
            "relatedTo": "g",
        },
    },
    "llm-usage": {"model": "m", "prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5},
    "message": {"message": {"role": "assistant", "content": "hi"}},
    "internal:thought-process": {"content": "hm"},
    "internal:llm-call": {"iteration": 1, "messages": []},
    "internal:tool-message": {"message": {"role": "tool", "content": "r"}},
    "internal:checkpoint": {"iteration": 1, "state": {"k": 1}},
    "internal:tool-start": {"toolCallId": "x", "toolName": "calc", "arguments": {}},
    "internal:tool-complete": {
        "toolCallId": "x",
        "toolName": "calc",
        "success": False,
        "error": "no",
    },
    "internal:something-new": {"k": 1},
    "something-new": {"k": 1},
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_read_and_comes_out_unchanged(kind, tool):
    obj = {"kind": kind, **T, **KINDS[kind]}
    codec = tool("looopy")
    frame = f"id: c-1\nevent: {kind}\ndata: {json.dumps(obj)}\n\n"
    events = codec.read(frame, strict=True)
    assert events
    assert codec.lines(events) == [obj]
    assert codec.lines([e for e in events if e.type != "delta"]) == [obj]


def test_an_event_line_with_the_name_of_a_mark_is_written_as_json(tool):
    looopy = tool("looopy")
    text = 'event: #raw\ndata: {"kind":"task-created","taskId":"t","x":true}\n\n'
    assert looopy.write(looopy.read(text)) == [text]


def test_a_question_about_an_ended_call_is_an_extension(tool):
    ids = {"taskId": "t", "toolCallId": "c", "toolName": "sh"}
    objects = [
        {"kind": "tool-complete", **ids, "success": True, "result": 1},
        {"kind": "tool-input-required", **ids, "prompt": "Really?"},
    ]
    looopy = tool("looopy")
    events = looopy.read("".join(json.dumps(o) + "\n" for o in objects))
    assert [e.type for e in events] == ["call", "result", "extension"]
    assert looopy.lines(events) == objects
