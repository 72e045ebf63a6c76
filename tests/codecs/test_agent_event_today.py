"""Streams in the shape that the system of seed 003 sends today."""

import pytest
from helpers.streams import ndjson, sse, stored

from agent_nb import events as ev
from agent_nb.codecs.detect import detect
from agent_nb.view.state.fold import RunView

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


def text_chunk(text):
    return {"type": "text_chunk", **RUN, "content": text}


def test_chunks_of_text_are_the_answer(read, tool):
    events = read({"type": "start", **RUN}, text_chunk("It is "), text_chunk("4."), FINAL)
    assert [(e.type, e.run) for e in events] == [(k, "r1") for k in ("run_start", "respond", "end")]
    assert events[1].content == "It is 4."
    target = tool("ag-ui")
    target.write(events)
    assert not [loss.what for loss in target.encoder.losses if not loss.detail]


def test_progress_with_a_stream_and_content_is_output(read):
    events = read(
        CALL,
        progress({"stream": "stdout", "content": "a\n"}),
        progress({"stream": "stderr", "content": "no\n"}),
        progress({"stream": "video", "content": 1}),
        DONE,
        FINAL,
    )
    parts = [(e.text, e.data) for e in events if e.type == "progress"]
    assert parts == [("a\n", None), ("no\n", None), ("", {"stream": "video", "content": 1})]


def test_progress_without_a_name_belongs_to_its_id_or_the_open_call(read):
    nameless = {"type": "tool_progress", **RUN, "data": "x"}
    events = read(CALL, progress("y"), nameless, DONE, FINAL)
    assert [e.call_id for e in events if e.type == "progress"] == ["c", "c"]
    assert len([e for e in events if e.type == "call"]) == 1


@pytest.mark.parametrize(
    "head",
    [
        [{"type": "start", **RUN}, text_chunk("a")],
        [CALL, progress("x")],
        [{"type": "connected"}, {"type": "conversation_usage", "used": 10, "total": 100}],
        [{"type": "connected"}, {"type": "loop_usage", "runId": "r1", "used": 10, "total": 100}],
        [{"type": "text_chunk", "content": "a"}],
    ],
)
def test_a_stream_of_today_is_recognised_by_its_first_frames(head):
    assert detect(sse(*head)).name == "agent-event"


# Sub-agents: progress that holds the event of another run.


def child(event, run="r2", call="c"):
    return progress({"childRunId": run, "event": {**event, "runId": run, "at": 5}}, callId=call)


SUB = [
    child({"type": "start"}),
    child({"type": "thought", "content": "Hm."}),
    child({"type": "tool_call", "callId": "d", "toolName": "sh", "toolArgs": {}}),
    child({"type": "tool_progress", "callId": "d", "data": {"stream": "stdout", "content": "x"}}),
    child({"type": "tool_result", "callId": "d", "toolName": "sh", "output": "x"}),
    child({"type": "text_chunk", "content": "In"}),
    child({"type": "text_chunk", "content": "ner."}),
    child({"type": "final"}),
]


def test_the_events_of_a_child_run_are_below_the_call_that_runs_it(read):
    events = read(CALL, *SUB, DONE, text_chunk("Outer."), FINAL)
    inner = [e.type for e in events if e.span]
    assert inner == [
        *("node", "run_start", "think", "call", "progress", "result", "respond", "end", "node"),
    ]
    assert {(e.run, e.span) for e in events} == {("r1", ""), ("r1", "c")}
    assert [(e.content, e.span) for e in events if e.type == "respond"] == [
        ("Inner.", "c"),
        ("Outer.", ""),
    ]
    view = RunView().extend(events)
    kinds = [type(card).__name__ for card in view.call("c").children[0].cards]
    assert kinds == ["ThinkCard", "CallCard", "RespondCard"]
    assert str(view.texts.answer.text) == "Outer."


def test_a_child_of_a_child_is_below_the_call_of_the_child(read):
    deep = {"type": "text_chunk", "content": "Deep.", "runId": "r3", "at": 6}
    events = read(
        CALL,
        SUB[2],
        child(
            {"type": "tool_progress", "callId": "d", "data": {"childRunId": "r3", "event": deep}}
        ),
        SUB[4],
        DONE,
        FINAL,
    )
    enters = [(e.span, e.parent) for e in events if e.type == "node" and e.phase == "enter"]
    assert enters == [("c", ""), ("d", "c")]
    assert [(e.content, e.span) for e in events if e.type == "respond"] == [("Deep.", "d")]


def test_children_of_one_call_are_apart_and_end_with_it(read):
    text = {"type": "text_chunk"}
    events = read(
        CALL, child({**text, "content": "1"}), child({**text, "content": "2"}, "r3"), DONE
    )
    assert [(e.content, e.span) for e in events if e.type == "respond"] == [
        ("1", "c"),
        ("2", "c#2"),
    ]
    exits = [(e.name, e.result) for e in events if e.type == "node" and e.phase == "exit"]
    assert exits == [("r2", "ok"), ("r3", "ok")]


def test_a_child_that_fails_does_not_end_the_run(read):
    events = read(CALL, child({"type": "error", "error": "broke"}), DONE, FINAL)
    assert [(e.status, e.span) for e in events if e.type == "end"] == [("error", "c"), ("ok", "")]


@pytest.mark.parametrize(
    ("last", "result"),
    [
        ({"type": "final"}, "ok"),
        ({"type": "error", "error": "broke"}, "error"),
        ({"type": "cancelled", "reason": "user"}, "interrupted"),
    ],
)
def test_the_node_of_a_child_says_how_the_child_ended(last, result, read):
    events = read(CALL, child(last), DONE, FINAL)
    assert [e.result for e in events if e.type == "node" and e.phase == "exit"] == [result]


@pytest.mark.parametrize(
    "data",
    [
        {"childRunId": "r2", "event": "x"},
        {"childRunId": 2, "event": {"type": "final"}},
        {"childRunId": "", "event": {"type": "final"}},
        {"childRunId": "r2", "event": {}},
        {"childRunId": "r2", "event": {"type": "text_chunk", "#in": {"a": 1}}},
    ],
)
def test_progress_that_only_resembles_a_childs_event_is_data(data, read):
    events = read(CALL, progress(data), DONE, FINAL)
    assert [e.data for e in events if e.type == "progress"] == [data]


def test_what_of_a_sub_agent_has_no_call_is_counted_though_it_streams(tool):
    codec = tool("agent-event")
    codec.write(
        [
            ev.Delta(of="respond", block="b", text="a", span="s"),
            ev.Respond(content="a", block="b", span="s"),
        ]
    )
    assert "nested events" in codec.encoder.losses.counts()


@pytest.mark.parametrize("live", [True, False])
def test_a_thought_of_a_sub_agent_counts_as_lost_though_it_streams(live, tool):
    codec = tool("agent-event")
    deltas = [ev.Delta(of="think", block="b", text="a", span="c")] if live else []
    thought = ev.Think(content="a", block="b", span="c")
    assert codec.write([ev.Call(call_id="c", name="ask"), *deltas, thought])
    assert "nested events" in codec.encoder.losses.counts()


def test_unknown_events_of_a_child_are_kept_below_its_call(read):
    hook = {"type": "hook", "hookId": "h"}
    events = read(CALL, child(hook), DONE, {**text_chunk("a"), "#in": {"type": "x"}}, FINAL)
    (extension,) = (e for e in events if e.type == "extension")
    assert (extension.span, extension.name, extension.payload) == (
        "c",
        "hook",
        {"hookId": "h", "runId": "r2", "at": 5},
    )


# Whole views.


def whole(content="", *steps, status="running", asks=None):
    return {
        "type": "run_view",
        "messageId": "m",
        "runId": "r1",
        "content": content,
        "steps": list(steps),
        "status": status,
        "awaitingInput": asks,
        "audio": None,
        "hooks": [],
    }


def step(status="pending", progress=(), **more):
    action = {"callId": "c", "toolName": "bash", "toolArgs": {"cmd": "ls"}, "status": status}
    return {"thought": "Look.", "action": {**action, "progress": list(progress)}, **more}


OUTPUT = {"stream": "stdout", "content": "a\n"}


def test_whole_views_of_a_run_are_read_as_its_events_once(read):
    done = step("completed", [OUTPUT], observation="a")
    events = read(
        whole("", {"thought": "Lo"}),
        whole("", step()),
        whole("", step(progress=[OUTPUT])),
        whole("", done),
        whole("There ", done),
        whole("There is a.", done),
        whole("There is a.", done, status="completed"),
    )
    kinds = [e.type for e in events if e.type != "state"]
    assert kinds == ["think", "call", "progress", "result", "respond", "end"]
    by_type = {e.type: e for e in events}
    assert (by_type["think"].content, by_type["call"].args) == ("Look.", {"cmd": "ls"})
    assert (by_type["progress"].text, by_type["result"].content) == ("a\n", "a")
    assert (by_type["respond"].content, by_type["respond"].incomplete) == ("There is a.", False)
    assert by_type["end"].status == "ok"


def test_the_answer_of_whole_views_streams(tool):
    events = tool("agent-event").read(ndjson(whole("a"), whole("ab"), whole("x")))
    assert [e.text for e in events if e.type == "delta"] == ["a", "b", "x"]
    assert [e.content for e in events if e.type == "respond"] == ["ab", "x"]


@pytest.mark.parametrize(
    ("status", "ends"), [("failed", "error"), ("cancelled", "interrupted"), ("completed", "ok")]
)
def test_the_status_of_a_whole_view_ends_the_run(status, ends, read):
    events = read(whole("a", status=status))
    assert [e.status for e in events if e.type == "end"] == [ends]
    assert events[-1].type == "end"


@pytest.mark.parametrize(
    "last", [FINAL, {"type": "error", "error": "broke", "runId": "r1", "at": 9}]
)
def test_the_answer_of_views_comes_before_a_line_that_ends_the_run(last, read):
    events = read(whole("a"), last)
    kinds = [e.type for e in events]
    assert kinds.index("respond") < kinds.index("end") == len(kinds) - 1


def test_a_whole_view_that_awaits_input_shows_the_question_and_awaits(read):
    asks = {"runId": "r1", "callId": "c", "message": "Which one?", "schema": {}}
    events = read(whole("", step(), asks=asks), whole("", step(), asks=asks))
    assert [e.reason for e in events if e.type == "approval"] == ["Which one?"]
    assert [e.status for e in events if e.type == "end"] == ["awaiting"]


@pytest.mark.parametrize("odd", [None, 1, "x", [], [1], [[]], [{"action": 3, "thought": 4}]])
def test_a_whole_view_of_another_shape_is_kept_as_it_came(odd, read):
    events = read({**whole("a"), "steps": odd})
    assert [e.type for e in events if e.type in ("state", "respond")] == ["state", "respond"]
    read({**whole("a"), "content": odd, "status": odd, "awaitingInput": odd})


# Frames about the connection and the conversation.

CONNECTED = {"type": "connected"}
USAGE = {"type": "conversation_usage", "used": 10, "total": 100}


def test_frames_of_no_run_begin_none_and_go_to_the_run_that_follows(read):
    events = read(CONNECTED, USAGE, text_chunk("a"), USAGE, FINAL)
    assert {e.run for e in events} == {"r1"}
    assert [e.name for e in events if e.type == "extension"] == [
        "connected",
        "conversation_usage",
        "conversation_usage",
    ]


def test_frames_between_two_runs_are_no_events_after_the_end(read):
    second = {**text_chunk("b"), "runId": "r2"}
    events = read(text_chunk("a"), FINAL, USAGE, second, {**FINAL, "runId": "r2"})
    assert [(e.run, e.type) for e in events][2:] == [
        ("r2", "extension"),
        ("r2", "respond"),
        ("r2", "end"),
    ]


def test_a_frame_of_no_run_after_the_last_one_is_counted_as_a_detail(tool):
    codec = tool("agent-event")
    codec.read(ndjson(text_chunk("a"), FINAL, USAGE))
    assert [(loss.what, loss.detail) for loss in codec.decoder.losses] == [
        ("frame of no run", True)
    ]


def test_a_stream_of_such_frames_only_is_kept(read):
    assert [e.type for e in read(CONNECTED, USAGE)] == ["extension", "extension"]
