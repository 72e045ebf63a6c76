"""The agent-event codec against events written by hand from seed 003."""

import pytest
from helpers.streams import sse, stored

from agent_nb import events as ev
from agent_nb.codecs import decode, encode

CALL = {"type": "tool_call", "toolName": "sh", "toolArgs": '{"c":1}'}
LINES = [
    ({"type": "thought", "content": "hm"}, "think", {"content": "hm"}),
    (CALL, "call", {"name": "sh", "args": {"c": 1}, "raw_args": '{"c":1}', "synthetic": True}),
    ({**CALL, "toolArgs": {"c": 2}}, "call", {"args": {"c": 2}, "raw_args": ""}),
    ({**CALL, "toolArgs": '{"c":'}, "call", {"args": {}, "raw_args": '{"c":'}),
    ({**CALL, "callId": "tc_9"}, "call", {"call_id": "tc_9", "synthetic": False}),
    (
        {"type": "tool_progress", "toolName": "sh", "data": "text"},
        "progress",
        {"text": "text", "data": None},
    ),
    (
        {
            "type": "tool_progress",
            "toolName": "sh",
            "data": {"subtype": "stdout_chunk", "content": "a\n"},
        },
        "progress",
        {"text": "a\n"},
    ),
    (
        {
            "type": "tool_progress",
            "toolName": "sh",
            "data": {"subtype": "transfer_progress", "percent": 65},
        },
        "progress",
        {"fraction": 0.65},
    ),
    (
        {"type": "tool_progress", "toolName": "sh", "data": {"rows": [1]}},
        "progress",
        {"data": {"rows": [1]}},
    ),
    (
        {"type": "tool_result", "toolName": "sh", "output": "ok"},
        "result",
        {"name": "sh", "content": "ok", "status": "ok"},
    ),
    (
        {"type": "tool_result", "toolName": "sh", "output": "no", "isError": True},
        "result",
        {"content": "no", "status": "error"},
    ),
    (
        {"type": "tool_result", "toolName": "sh", "output": "ok", "isError": False},
        "result",
        {"status": "ok"},
    ),
    ({"type": "stream", "content": "Hi"}, "respond", {"content": "Hi"}),
    ({"type": "final"}, "end", {"status": "ok"}),
    ({"type": "error", "error": "broke"}, "error", {"message": "broke"}),
    ({"type": "error", "error": "broke"}, "end", {"status": "error"}),
    ({"type": "cancelled", "reason": "stop"}, "interrupt", {"reason": "user", "detail": "stop"}),
    ({"type": "progress", "toolName": "sh", "data": "x"}, "progress", {"text": "x"}),
    ({"type": "result", "toolName": "sh", "output": "y"}, "result", {"content": "y"}),
    (
        {"type": "hook", "hookId": "h"},
        "extension",
        {"namespace": "agent-event", "name": "hook", "payload": {"hookId": "h"}},
    ),
]


@pytest.mark.parametrize(("obj", "kind", "fields"), LINES)
def test_each_event_is_read_and_written_back(obj, kind, fields, tool):
    codec = tool("agent-event")
    events = codec.read(sse(obj))
    event = next(e for e in events if e.type == kind)
    assert {k: getattr(event, k) for k in fields} == fields
    assert codec.lines(events) == [obj]
    assert codec.lines(stored(events)) == [obj]


def test_our_run_is_written_as_the_seed_says(tool, our_run):
    assert tool("agent-event").write(our_run) == [
        'data: {"type":"thought","content":"Look first."}\n\n',
        'data: {"type":"tool_call","toolName":"sh","toolArgs":"{\\"c\\": \\"ls\\"}"}\n\n',
        'data: {"type":"tool_call","toolName":"sh","toolArgs":"{\\"c\\":\\"cat b\\"}"}\n\n',
        'data: {"type":"tool_progress","toolName":"sh","data":"a\\n"}\n\n',
        'data: {"type":"tool_result","toolName":"sh","output":"a"}\n\n',
        'data: {"type":"tool_result","toolName":"sh","output":"no such file","isError":true}\n\n',
        'data: {"type":"stream","content":"There"}\n\n',
        'data: {"type":"stream","content":" is "}\n\n',
        'data: {"type":"stream","content":"a."}\n\n',
        'data: {"type":"final"}\n\n',
    ]


def test_the_form_ids_adds_the_call_id(tool):
    assert tool("agent-event:ids").lines([ev.Call(call_id="c7", name="sh")]) == [
        {"type": "tool_call", "toolName": "sh", "toolArgs": "{}", "callId": "c7"}
    ]


def test_parallel_calls_to_one_tool_are_resolved_in_order_as_a_guess(tool):
    events = tool("agent-event").read(
        sse(
            CALL,
            {**CALL, "toolArgs": "{}"},
            {"type": "tool_result", "toolName": "sh", "output": "r1"},
            {"type": "tool_result", "toolName": "sh", "output": "r2"},
        )
    )
    calls, results = (
        [e for e in events if e.type == "call"],
        [e for e in events if e.type == "result"],
    )
    assert [r.call_id for r in results] == [c.call_id for c in calls]
    assert "guess" in results[0].extra["agent-event"]
    assert "guess" not in results[1].extra["agent-event"]


def test_progress_of_a_tool_without_a_call_opens_one_call(tool):
    events = tool("agent-event").read(
        sse(
            *(
                {"type": "tool_progress", "toolName": "llm_call", "data": t}
                for t in ("Hello, ", "world")
            )
        )
    )
    calls = [e for e in events if e.type == "call"]
    assert [(c.name, c.synthetic) for c in calls] == [("llm_call", True)]
    assert {e.call_id for e in events} == {calls[0].call_id}


def test_what_follows_an_error_is_counted_and_ignored(tool):
    codec = tool("agent-event")
    say = {"type": "stream"}
    events = stored(
        codec.read(
            sse(
                {**say, "content": "par"},
                {"type": "error", "error": "x"},
                {**say, "content": "late"},
            )
        )
    )
    assert [e.type for e in events] == ["respond", "error", "end"]
    assert codec.decoder.losses.counts() == {"event after the end": 1}


def test_a_start_begins_another_run(tool):
    events = tool("agent-event").read(sse({"type": "final"}, {"type": "start"}, {"type": "final"}))
    assert [e.type for e in events] == ["end", "run_start", "end"]
    assert events[0].run != events[1].run == events[2].run


def test_deltas_come_at_once_and_their_block_when_it_ends(tool):
    decoder = tool("agent-event").codec.decoder()
    assert [
        (e.type, e.text) for e in decoder.feed(sse({"type": "stream", "content": "The `src`"}))
    ] == [("delta", "The `src`")]
    rest = decoder.feed(sse({"type": "final"}))
    assert [(e.type, getattr(e, "content", "")) for e in rest] == [
        ("respond", "The `src`"),
        ("end", ""),
    ]


def test_an_error_that_did_not_end_our_run_is_not_written_as_their_end(tool):
    codec = tool("agent-event")
    assert codec.lines(
        [ev.Error(code="retry", message="again"), ev.Respond(content="x"), ev.End()]
    ) == [{"type": "stream", "content": "x"}, {"type": "final"}]
    assert codec.encoder.losses.counts() == {"error.code": 1, "error": 1}


def test_an_interrupted_run_ends_in_an_error_so_that_no_client_waits(tool):
    assert tool("agent-event").lines(
        [ev.Interrupt(reason="user"), ev.End(status="interrupted")]
    ) == [{"type": "error", "error": "interrupted: user"}]


def test_a_sub_agents_answer_is_progress_of_the_call_that_runs_it(tool):
    call = ev.Call(call_id="c1", name="researcher", args={"prompt": "p"})
    inner = [
        ev.Node(name="researcher", span="c1"),
        ev.User(content="p", span="c1"),
        ev.Think(content="secret", span="c1"),
        ev.Delta(of="respond", block="c1/1", text="The ", span="c1"),
        ev.Delta(of="respond", block="c1/1", text="answer", span="c1"),
        ev.Respond(content="The answer", block="c1/1", span="c1"),
        ev.End(span="c1"),
        ev.Node(name="researcher", phase="exit", span="c1"),
    ]
    lines = tool("agent-event").lines(
        [call, *inner, ev.Result(call_id="c1", name="researcher", content="The answer"), ev.End()]
    )
    assert lines == [
        {"type": "tool_call", "toolName": "researcher", "toolArgs": '{"prompt":"p"}'},
        {"type": "tool_progress", "toolName": "researcher", "data": "The "},
        {"type": "tool_progress", "toolName": "researcher", "data": "answer"},
        {"type": "tool_result", "toolName": "researcher", "output": "The answer"},
        {"type": "final"},
    ]


def test_percentages_have_no_rounding_dust(tool):
    codec = tool("agent-event")
    shown = codec.lines(
        [
            ev.Call(call_id="c", name="t"),
            *(ev.Progress(call_id="c", fraction=f) for f in (0.07, 0.29, 1.0, 0.005)),
        ]
    )
    assert [o["data"]["percent"] for o in shown[1:]] == [7, 29, 100, 0.5]


def test_a_payload_does_not_change_the_type_of_its_line(tool):
    codec = tool("agent-event")
    payload = {"type": "final", "n": 1}
    event = ev.Extension(namespace="agent-event", name="hook", payload=payload)
    assert codec.lines([event])[0] == {"type": "hook", "n": 1}
    assert codec.encoder.losses.counts()["extension.payload"] == 1


@pytest.mark.parametrize("status", ["ok", "error", "interrupted"])
@pytest.mark.parametrize("form", ["plain", "ids"])
def test_runs_of_ours_one_after_another_are_read_as_several(form, status):
    runs = [
        event
        for name in ("a", "b", "c")
        for event in (
            ev.RunStart(run=name),
            ev.User(run=name, content="?"),
            ev.Respond(run=name, content=name),
            ev.End(run=name, status=status),
        )
    ]
    texts = encode(runs, f"agent-event:{form}")
    assert texts[0] == 'data: {"type":"stream","content":"a"}\n\n'
    events = decode("".join(texts), "agent-event")
    assert [e.content for e in events if e.type == "respond"] == ["a", "b", "c"]
    assert len({e.run for e in events}) == 3
