"""The loom codec against frames written by hand from seed 002."""

import json

import msgspec
import pytest
from helpers.streams import ndjson, stored

from agent_nb import events as ev

CALL = {"call_id": "c1", "name": "sh"}
CHECKPOINT = {
    "checkpoint_id": "c",
    "timestamp": "t",
    "step": 1,
    "state": {},
    "thread_id": "th",
    "checkpoint_ns": "ns",
}


def ext(name, payload):
    return "extension", {"namespace": "loom", "name": name, "payload": payload}


#: Every row of § 4.2: the frame, the event's type and fields.
ROWS = [
    (
        {"type": "run_start", "run_id": "r", "message": "hi", "agent": "react"},
        "run_start",
        {"agent": "react", "run": "r"},
    ),
    ({"type": "run_start", "message": "hi"}, "user", {"content": "hi"}),
    (
        {"type": "node_enter", "id": "think"},
        "node",
        {"name": "think", "phase": "enter", "span": "run-think-0"},
    ),
    (
        {"type": "node_exit", "id": "think", "result": "Ok"},
        "node",
        {"name": "think", "phase": "exit", "result": "ok"},
    ),
    (
        {"type": "node_exit", "id": "act", "result": {"Err": "boom"}},
        "node",
        {"phase": "exit", "result": "error: boom"},
    ),
    ({"type": "message_chunk", "content": "I", "id": "think"}, "respond", {"content": "I"}),
    ({"type": "thought_chunk", "content": "hm", "id": "think"}, "think", {"content": "hm"}),
    (
        {"type": "usage", "prompt_tokens": 100, "completion_tokens": 62, "total_tokens": 162},
        "metric",
        {"step": ev.Counts(input=100, output=62), "total": ev.Counts(input=100, output=62)},
    ),
    ({"type": "values", "state": {"a": 1}}, "state", {"kind": "values", "payload": {"a": 1}}),
    ({"type": "updates", "id": "think", "state": 7}, "state", {"kind": "updates", "payload": 7}),
    ({"type": "custom", "value": {"k": 1}}, *ext("custom", {"k": 1})),
    ({"type": "checkpoint", **CHECKPOINT}, "state", {"kind": "checkpoint", "payload": CHECKPOINT}),
    ({"type": "tot_expand", "candidates": ["a"]}, *ext("tot_expand", {"candidates": ["a"]})),
    (
        {"type": "tot_evaluate", "chosen": 0, "scores": [0.5]},
        *ext("tot_evaluate", {"chosen": 0, "scores": [0.5]}),
    ),
    (
        {"type": "tot_backtrack", "reason": "r", "to_depth": 1},
        *ext("tot_backtrack", {"reason": "r", "to_depth": 1}),
    ),
    (
        {"type": "got_plan", "node_count": 1, "edge_count": 0, "node_ids": ["n"]},
        *ext("got_plan", {"node_count": 1, "edge_count": 0, "node_ids": ["n"]}),
    ),
    ({"type": "got_node_start", "id": "n"}, *ext("got_node_start", {"id": "n"})),
    (
        {"type": "got_node_complete", "id": "n", "result_summary": "s"},
        *ext("got_node_complete", {"id": "n", "result_summary": "s"}),
    ),
    (
        {"type": "got_node_failed", "id": "n", "error": "e"},
        *ext("got_node_failed", {"id": "n", "error": "e"}),
    ),
    (
        {"type": "got_expand", "node_id": "n", "nodes_added": 1, "edges_added": 2},
        *ext("got_expand", {"node_id": "n", "nodes_added": 1, "edges_added": 2}),
    ),
    (
        {"type": "tool_call_chunk", **CALL, "arguments_delta": '{"c":1}'},
        "call",
        {"call_id": "c1", "name": "sh", "args": {"c": 1}, "raw_args": '{"c":1}'},
    ),
    (
        {"type": "tool_call", **CALL, "arguments": {"c": 1}},
        "call",
        {"call_id": "c1", "args": {"c": 1}, "synthetic": False},
    ),
    ({"type": "tool_call", "name": "sh", "arguments": {}}, "call", {"synthetic": True}),
    ({"type": "tool_start", **CALL}, "started", {"call_id": "c1", "name": "sh"}),
    (
        {"type": "tool_output", **CALL, "content": "a\n"},
        "progress",
        {"call_id": "c1", "text": "a\n"},
    ),
    (
        {"type": "tool_end", **CALL, "result": "a", "is_error": False},
        "result",
        {"call_id": "c1", "content": "a", "status": "ok"},
    ),
    ({"type": "tool_end", **CALL, "result": "no", "is_error": True}, "result", {"status": "error"}),
    (
        {"type": "tool_approval", **CALL, "arguments": {"c": 1}},
        "approval",
        {"call_id": "c1", "stage": "requested", "args": {"c": 1}},
    ),
    ({"reply": "Done"}, "respond", {"content": "Done"}),
    ({"reply": "Done"}, "end", {"status": "ok"}),
    ({"type": "error", "error": "x"}, "error", {"message": "x"}),
]


@pytest.mark.parametrize(("frame", "kind", "fields"), ROWS)
@pytest.mark.parametrize(
    "envelope",
    [{}, {"session_id": "s", "node_id": "n-0", "event_id": 1}],
    ids=["legacy", "envelope"],
)
def test_each_row_is_read_and_written_back_with_and_without_envelope(
    frame, kind, fields, envelope, tool
):
    loom = tool("loom")
    frame = {**envelope, **frame}
    events = loom.read(ndjson(frame))
    event = next(e for e in events if e.type == kind)
    from_envelope = {"run": "s", "span": "n-0"} if envelope else {}
    expected = {k: from_envelope.get(k, v) for k, v in fields.items()}
    assert {k: getattr(event, k) for k in expected} == expected
    assert loom.lines(stored(events)) == [frame]


def test_our_run_is_written_with_think_and_act_nodes(tool, our_run):
    def frame(number, node, **fields):
        return {
            "session_id": "run1",
            **({"node_id": node} if node else {}),
            "event_id": number,
            **fields,
        }

    assert tool("loom").lines(our_run) == [
        frame(1, "", type="run_start", run_id="run1", message="List a", agent="helper"),
        frame(2, "run-think-0", type="node_enter", id="think"),
        frame(3, "run-think-0", type="thought_chunk", content="Look first.", id="think"),
        frame(
            4, "run-think-0", type="tool_call", call_id="call_1_1", name="sh", arguments={"c": "ls"}
        ),
        frame(
            5,
            "run-think-0",
            type="tool_call",
            call_id="call_1_2",
            name="sh",
            arguments={"c": "cat b"},
        ),
        frame(
            6, "run-think-0", type="usage", prompt_tokens=20, completion_tokens=9, total_tokens=29
        ),
        frame(7, "run-think-0", type="node_exit", id="think", result="Ok"),
        frame(8, "run-act-1", type="node_enter", id="act"),
        frame(9, "run-act-1", type="tool_start", call_id="call_1_1", name="sh"),
        frame(10, "run-act-1", type="tool_output", call_id="call_1_1", content="a\n", name="sh"),
        frame(
            11,
            "run-act-1",
            type="tool_end",
            call_id="call_1_1",
            name="sh",
            result="a",
            is_error=False,
        ),
        frame(
            12,
            "run-act-1",
            type="tool_end",
            call_id="call_1_2",
            name="sh",
            result="no such file",
            is_error=True,
        ),
        frame(13, "run-act-1", type="node_exit", id="act", result="Ok"),
        frame(14, "run-think-2", type="node_enter", id="think"),
        frame(15, "run-think-2", type="message_chunk", content="There", id="think"),
        frame(16, "run-think-2", type="message_chunk", content=" is ", id="think"),
        frame(17, "run-think-2", type="message_chunk", content="a.", id="think"),
        frame(
            18, "run-think-2", type="usage", prompt_tokens=40, completion_tokens=5, total_tokens=45
        ),
        frame(19, "run-think-2", type="node_exit", id="think", result="Ok"),
        frame(20, "run-think-2", reply="There is a.", stop_reason="stop"),
    ]


def test_the_bare_form_has_no_envelope(tool, our_run):
    lines = tool("loom:bare").lines(our_run)
    assert lines[0] == {
        "type": "run_start",
        "run_id": "run1",
        "message": "List a",
        "agent": "helper",
    }
    assert lines[-1] == {"reply": "There is a.", "stop_reason": "stop"}
    assert not any({"session_id", "event_id"} & line.keys() for line in lines)


#: § 6: the frame and its single-key form.
EXPORT = [
    ({"type": "run_start", "agent": "tot"}, {"RunStart": {"agent": "tot"}}),
    ({"type": "node_enter", "id": "think"}, {"TaskStart": {"node_id": "think", "namespace": None}}),
    (
        {"type": "node_exit", "id": "act", "result": "Ok"},
        {"TaskEnd": {"node_id": "act", "result": "Ok", "namespace": None}},
    ),
    (
        {"type": "message_chunk", "content": "I", "id": "think"},
        {
            "Messages": {
                "chunk": {"content": "I", "kind": "Message"},
                "metadata": {"loom_node": "think", "namespace": None},
            }
        },
    ),
    (
        {"type": "thought_chunk", "content": "I", "id": "think"},
        {
            "Messages": {
                "chunk": {"content": "I", "kind": "Thinking"},
                "metadata": {"loom_node": "think", "namespace": None},
            }
        },
    ),
    (
        {"type": "usage", "prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3},
        {"Usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}},
    ),
    ({"type": "values", "state": [1]}, {"Values": [1]}),
    (
        {"type": "updates", "id": "act", "state": 1},
        {"Updates": {"node_id": "act", "state": 1, "namespace": None}},
    ),
    ({"type": "custom", "value": None}, {"Custom": None}),
    ({"type": "checkpoint", **CHECKPOINT}, {"Checkpoint": CHECKPOINT}),
    ({"type": "tot_expand", "candidates": []}, {"TotExpand": {"candidates": []}}),
    (
        {"type": "tot_evaluate", "chosen": 0, "scores": []},
        {"TotEvaluate": {"chosen": 0, "scores": []}},
    ),
    (
        {"type": "tot_backtrack", "reason": "r", "to_depth": 0},
        {"TotBacktrack": {"reason": "r", "to_depth": 0}},
    ),
    (
        {"type": "got_plan", "node_count": 0, "edge_count": 0, "node_ids": []},
        {"GotPlan": {"node_count": 0, "edge_count": 0, "node_ids": []}},
    ),
    ({"type": "got_node_start", "id": "n"}, {"GotNodeStart": {"node_id": "n"}}),
    (
        {"type": "got_node_complete", "id": "n", "result_summary": ""},
        {"GotNodeComplete": {"node_id": "n", "result_summary": ""}},
    ),
    (
        {"type": "got_node_failed", "id": "n", "error": ""},
        {"GotNodeFailed": {"node_id": "n", "error": ""}},
    ),
    (
        {"type": "got_expand", "node_id": "n", "nodes_added": 1, "edges_added": 1},
        {"GotExpand": {"node_id": "n", "nodes_added": 1, "edges_added": 1}},
    ),
    (
        {"type": "tool_call_chunk", **CALL, "arguments_delta": "{"},
        {"ToolCallChunk": {**CALL, "arguments_delta": "{"}},
    ),
    ({"type": "tool_call", **CALL, "arguments": {}}, {"ToolCall": {**CALL, "arguments": {}}}),
    (
        {"type": "tool_call", "call_id": None, "name": "x", "arguments": {}},
        {"ToolCall": {"call_id": None, "name": "x", "arguments": {}}},
    ),
    ({"type": "tool_start", **CALL}, {"ToolStart": CALL}),
    ({"type": "tool_output", **CALL, "content": "o"}, {"ToolOutput": {**CALL, "content": "o"}}),
    (
        {"type": "tool_end", **CALL, "result": "", "is_error": False},
        {"ToolEnd": {**CALL, "result": "", "is_error": False}},
    ),
    (
        {"type": "tool_approval", **CALL, "arguments": {}},
        {"ToolApproval": {**CALL, "arguments": {}}},
    ),
]


@pytest.mark.parametrize(("frame", "single"), EXPORT)
def test_the_single_key_form_is_written_and_read(frame, single, tool):
    frames, export = tool("loom"), tool("loom:export")
    assert export.lines(frames.read(ndjson(frame))) == [single]
    assert frames.lines(export.read(ndjson(single))) == [frame]
    assert export.lines(export.read(ndjson(single))) == [single]


@pytest.mark.parametrize(
    "single",
    [
        {"Usage": {"type": "x", "input_tokens": 1, "output_tokens": 2}},
        {"NodeEnter": {"id": "think", "type": "node_exit"}},
        {"node_id": "n", "GotExpand": {}},
        {"node_id": "n", "GotExpand": {"node_id": "m", "thought": "t"}},
    ],
)
def test_a_body_never_changes_places_with_its_frame(single, tool):
    export = tool("loom:export")
    events = export.read(ndjson(single))
    assert export.lines(events) == [single]
    assert not [e for e in events if e.type == "node" and e.phase == "exit"]


def test_a_namespace_is_kept(tool):
    single = {"TaskStart": {"node_id": "think", "namespace": "inner"}}
    events = tool("loom").read(ndjson(single))
    assert events[0].extra["loom"]["fields"]["namespace"] == "inner"
    assert tool("loom:export").lines(events) == [single]


# § 2 and § 7: order, repeats, sessions, spans.


def numbered(count, first=1):
    return [
        {"session_id": "s", "event_id": first + i, "type": "custom", "value": i}
        for i in range(count)
    ]


def values(events):
    return [e.payload for e in events if e.type == "extension"]


@pytest.mark.parametrize("first", [0, 1])
def test_frames_are_brought_in_the_order_of_their_ids(first, tool):
    frames = numbered(6, first)
    shuffled = [frames[i] for i in (0, 2, 1, 5, 4, 3)]
    assert values(tool("loom").read(ndjson(*shuffled))) == [0, 1, 2, 3, 4, 5]


def test_a_stream_that_is_joined_in_the_middle_comes_in_order_too(tool):
    frames = numbered(4, first=500)
    assert values(tool("loom").read(ndjson(frames[1], frames[0], frames[3], frames[2]))) == [
        0,
        1,
        2,
        3,
    ]


def test_a_repeated_frame_is_dropped_and_is_no_loss(tool):
    loom = tool("loom")
    frames = numbered(3)
    assert values(
        loom.read(ndjson(frames[0], frames[0], frames[1], frames[0], frames[2]), strict=True)
    ) == [0, 1, 2]
    assert [(loss.what, loss.count, loss.detail) for loss in loom.decoder.losses] == [
        ("repeated frame", 2, True)
    ]


def test_two_frames_that_share_an_id_are_a_counted_fault(tool):
    loom = tool("loom")
    frames = [*numbered(3), {"session_id": "s", "event_id": 3, "type": "custom", "value": "other"}]
    assert values(loom.read(ndjson(*frames))) == [0, 1, 2]
    assert loom.decoder.losses.counts() == {"conflicting frame": 1}


def test_ids_that_never_come_do_not_hold_the_rest_for_ever(tool):
    decoder = tool("loom").codec.decoder()
    frames = numbered(100)
    events = [e for f in frames if f["event_id"] != 3 for e in decoder.feed(ndjson(f))]
    assert values(events) == [v for v in range(100) if v != 2]
    assert [loss.what for loss in decoder.losses] == ["missing event_id"]


class Watched:
    """A decoder that is told the time after each frame, as a watched one is."""

    def __init__(self, codec):
        self.decoder, self.now = codec.decoder(), 100.0

    def give(self, *frames, after=0.0):
        self.now += after
        return values([*self.decoder.feed(ndjson(*frames)), *self.decoder.tick(self.now)])

    def wait(self, seconds):
        return self.give(after=seconds)


@pytest.fixture
def watched(tool):
    return Watched(tool("loom").codec)


def numbers(*ids):
    return [{"session_id": "s", "event_id": i, "type": "custom", "value": i} for i in ids]


@pytest.mark.parametrize("ids", [(0, 2, 4, 6), (5, 6, 7), (1, 2, 3, 8, 9, 40), (7, 100)])
def test_who_watches_gets_frames_at_once_though_ids_skip_or_begin_late(watched, ids):
    assert [watched.give(frame) for frame in numbers(*ids)] == [[i] for i in ids]


def test_frames_that_come_together_are_ordered_for_one_who_watches_too(watched):
    assert watched.give(*numbers(1, 3, 2, 5, 4)) == [1, 2, 3, 4, 5]


def test_after_a_late_frame_the_next_gap_is_waited_for_200_ms_at_most(watched):
    one, three, two, five, four, seven, nine = numbers(1, 3, 2, 5, 4, 7, 9)
    assert [watched.give(f) for f in (one, three, two)] == [[1], [3], [2]]
    assert watched.give(four) == [4]
    assert watched.give(seven) == []
    assert watched.give(five, after=0.1) == [5]
    assert watched.wait(0.05) == []
    assert watched.wait(0.1) == [7]
    assert watched.give(nine) == [9], (
        "the wait was in vain: there is no more evidence of a wrong order"
    )


def test_a_frame_that_is_waited_for_and_comes_is_in_its_place(watched):
    for frame in numbers(1, 3, 2):
        watched.give(frame)
    assert watched.give(*numbers(6), after=1) == []
    assert watched.give(*numbers(4, 5), after=0.1) == [4, 5, 6]


def test_a_reply_that_skips_ids_does_not_wait_for_ever(watched):
    say = {"session_id": "s", "event_id": 1, "type": "custom", "value": 1}
    assert watched.give(say, {"session_id": "s", "event_id": 9, "reply": "x"}) == [1]
    assert watched.give({"session_id": "s", "event_id": 9, "type": "custom", "value": 2}) == [2]
    assert not watched.decoder.losses


def test_interleaved_sessions_are_runs_of_their_own(tool):
    frames = []
    for i in (1, 2, 3):
        frames += [
            {
                "session_id": s,
                "event_id": i,
                "type": "message_chunk",
                "content": f"{s}{i} ",
                "id": "think",
            }
            for s in ("a", "b")
        ]
    frames += [{"session_id": s, "event_id": 4, "reply": f"{s}1 {s}2 {s}3 "} for s in ("a", "b")]
    events = stored(tool("loom").read(ndjson(*frames)))
    assert [(e.run, e.type, getattr(e, "content", "")) for e in events] == [
        ("a", "respond", "a1 a2 a3 "),
        ("a", "end", ""),
        ("b", "respond", "b1 b2 b3 "),
        ("b", "end", ""),
    ]


def test_after_the_reply_the_session_begins_another_run(tool):
    loom = tool("loom")
    turn = [
        {"session_id": "s", "event_id": 1, "type": "node_enter", "id": "think"},
        {"session_id": "s", "event_id": 2, "reply": "x"},
    ]
    events = loom.read(ndjson(*turn, *turn))
    assert [e.run for e in events if e.type == "end"] == ["s", "s#2"]
    assert not list(loom.decoder.losses)


def test_a_reply_may_use_the_id_that_the_next_run_begins_with(tool):
    frames = [
        {"session_id": "s", "event_id": 1, "type": "custom", "value": 1},
        {"session_id": "s", "event_id": 2, "reply": "x"},
        {"session_id": "s", "event_id": 2, "type": "custom", "value": 2},
    ]
    assert values(tool("loom").read(ndjson(*frames))) == [1, 2]


def test_a_reply_that_begins_the_ids_does_not_use_its_id_up(tool):
    frames = [
        {"session_id": "s", "event_id": 1, "type": "custom", "value": 1},
        {"session_id": "s", "event_id": 2, "reply": "x"},
        {"session_id": "s", "event_id": 1, "reply": "y"},
        {"session_id": "s", "event_id": 3, "type": "custom", "value": 3},
        {"session_id": "s", "event_id": 2, "type": "custom", "value": 2},
    ]
    loom = tool("loom")
    assert values(loom.read(ndjson(*frames))) == [1, 2, 3]
    assert not list(loom.decoder.losses)


def test_a_node_id_that_repeats_gives_spans_of_their_own(tool):
    enter = {"session_id": "s", "node_id": "run-think-0", "type": "node_enter", "id": "think"}
    say = {
        "session_id": "s",
        "node_id": "run-think-0",
        "type": "message_chunk",
        "content": "x",
        "id": "think",
    }
    leave = {
        "session_id": "s",
        "node_id": "run-think-0",
        "type": "node_exit",
        "id": "think",
        "result": "Ok",
    }
    events = stored(tool("loom").read(ndjson(enter, say, leave, enter, say, leave)))
    assert [e.span for e in events if e.type == "node"] == [
        "run-think-0",
        "run-think-0",
        "run-think-0#2",
        "run-think-0#2",
    ]
    assert [e.path for e in events if e.type == "respond"] == ["run-think-0", "run-think-0#2"]
    assert tool("loom").lines(events) == [enter, say, leave, enter, say, leave]


def test_without_an_envelope_the_open_node_gives_the_path(tool):
    custom, leave = (
        {"type": "custom", "value": 1},
        {"type": "node_exit", "id": "act", "result": "Ok"},
    )
    events = tool("loom").read(ndjson({"type": "node_enter", "id": "act"}, custom, leave, custom))
    assert [e.path for e in events if e.type == "extension"] == ["run-act-0", ""]


def test_the_reply_is_the_answer_only_where_none_was_streamed(tool):
    streamed = tool("loom").read(
        ndjson({"type": "message_chunk", "content": "Hi", "id": "t"}, {"reply": "Hi"})
    )
    assert [e.content for e in streamed if e.type == "respond"] == ["Hi"]
    alone = tool("loom").read(ndjson({"reply": "Hi"}))
    assert [e.content for e in alone if e.type == "respond"] == ["Hi"]


@pytest.mark.parametrize(
    ("stop", "status", "reason"),
    [("cancelled", "interrupted", ""), ("end_turn", "ok", "end_turn"), ("error", "error", "")],
)
def test_the_stop_reason_tells_how_the_run_ended(stop, status, reason, tool):
    end = tool("loom").read(ndjson({"reply": "", "stop_reason": stop}))[-1]
    assert (end.type, end.status, end.finish_reason) == ("end", status, reason)


def test_argument_chunks_and_the_call_are_one_call(tool):
    loom = tool("loom")
    chunk = {"type": "tool_call_chunk"}
    frames = [
        {**chunk, **CALL, "arguments_delta": '{"a"'},
        {**chunk, "call_id": "c1", "arguments_delta": ":1}"},
        {"type": "tool_call", **CALL, "arguments": {"a": 1}},
    ]
    events = loom.read(ndjson(*frames))
    assert [(e.type, getattr(e, "text", "")) for e in events] == [
        ("delta", '{"a"'),
        ("delta", ":1}"),
        ("call", ""),
    ]
    assert (events[-1].raw_args, events[-1].args) == ('{"a":1}', {"a": 1})
    assert loom.lines(stored(events)) == frames


def test_unnamed_parallel_calls_to_one_tool_stay_two_calls(tool):
    frames = [{"type": "tool_call", "name": "sh", "arguments": {"c": i}} for i in (1, 2)]
    events = tool("loom").read(
        ndjson(*frames, {"type": "tool_end", "name": "sh", "result": "x", "is_error": False})
    )
    calls = [e for e in events if e.type == "call"]
    result = events[-1]
    assert len({c.call_id for c in calls}) == 2
    assert result.call_id == calls[0].call_id
    assert "guess" in result.extra["loom"]


def test_usage_adds_up(tool):
    usage = {"type": "usage", "prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}
    events = tool("loom").read(ndjson(usage, usage))
    assert [e.total for e in events] == [
        ev.Counts(input=10, output=2),
        ev.Counts(input=20, output=4),
    ]


def test_frames_wrapped_for_a_socket_are_read_and_written_back(tool):
    loom = tool("loom")
    frames = [
        {"type": "run_stream_event", "id": "q", "event": {"type": "custom", "value": 1}},
        {
            "type": "run_stream_event",
            "id": "q",
            "event": {"TaskStart": {"node_id": "think", "namespace": None}},
        },
    ]
    events = loom.read(ndjson(*frames))
    assert [e.type for e in events] == ["extension", "node"]
    assert loom.lines(events)[0] == frames[0]


def test_a_run_printed_as_one_object_is_read(tool):
    whole = {
        "events": [{"type": "custom", "value": 1}],
        "reply": {"reply": "Done"},
        "stop_reason": "end_turn",
        "session_id": "s",
    }
    assert [(e.type, e.run) for e in tool("loom").read(ndjson(whole))] == [
        ("extension", "s"),
        ("respond", "s"),
        ("end", "s"),
    ]


def test_a_sub_agent_of_ours_is_a_node_of_its_own(tool):
    loom = tool("loom:bare")
    run = [
        ev.Call(call_id="c1", name="writer"),
        ev.Started(call_id="c1", name="writer"),
        ev.Node(name="writer", span="c1"),
        ev.Respond(content="inner", span="c1"),
        ev.Node(name="writer", phase="exit", span="c1", result="ok"),
        ev.Result(call_id="c1", name="writer", content="inner"),
        ev.Respond(content="outer"),
        ev.End(),
    ]
    kinds = [(f.get("type", "reply"), f.get("id", "")) for f in loom.lines(run)]
    assert kinds == [
        ("node_enter", "think"),
        ("tool_call", ""),
        ("node_exit", "think"),
        ("node_enter", "act"),
        ("tool_start", ""),
        ("node_enter", "writer"),
        ("message_chunk", "think"),
        ("node_exit", "writer"),
        ("tool_end", ""),
        ("node_exit", "act"),
        ("node_enter", "think"),
        ("message_chunk", "think"),
        ("node_exit", "think"),
        ("reply", ""),
    ]
    back = stored(loom.read("".join(json.dumps(f) + "\n" for f in loom.lines(run))))
    assert [(e.content, bool(e.span)) for e in back if e.type == "respond"] == [
        ("inner", True),
        ("outer", False),
    ]


@pytest.mark.parametrize("first", ["c1", "c2"])
def test_an_exit_ends_the_node_of_its_id_among_those_of_one_name(first, tool):
    second = "c2" if first == "c1" else "c1"
    run = [ev.RunStart(), ev.User(content="q")]
    run += [ev.Call(call_id=c, name="ask", turn=1) for c in ("c1", "c2")]
    for call in ("c1", "c2"):
        run += [ev.Started(call_id=call, name="ask"), ev.Node(name="scout", span=call)]
    for call in (first, second):
        run += [
            ev.Respond(content=f"by {call}", block=f"{call}/b", span=call),
            ev.Node(name="scout", phase="exit", span=call, result="ok"),
            ev.Result(call_id=call, name="ask", content="done", turn=1),
        ]
    run += [ev.Respond(content="Both."), ev.End()]
    events = stored(tool("loom").read("\n".join(tool("loom").write(run, framing="ndjson"))))
    assert [(e.content, e.span) for e in events if e.type == "respond"] == [
        (f"by {first}", first),
        (f"by {second}", second),
        ("Both.", ""),
    ]


def test_a_run_of_ours_in_the_single_key_form_comes_back_as_one_run(our_run, tool):
    exported = tool("loom:export")
    back = exported.read("".join(line + "\n" for line in exported.write(our_run)))
    assert len({e.run for e in back}) == 1
    assert [e.content for e in back if e.type == "respond"] == ["There is a."]


def test_event_ids_are_unique_over_the_runs_of_a_session(tool, our_run):
    second = [msgspec.structs.replace(event, run="run2") for event in our_run]
    lines = tool("loom").lines([*our_run, *second], conversation="c")
    assert [line["event_id"] for line in lines] == list(range(1, len(lines) + 1))
    again = tool("loom").read(ndjson(*lines))
    assert [(e.run, e.finish_reason) for e in again if e.type == "end"] == [
        ("c", "stop"),
        ("c#2", "stop"),
    ]
    alone = tool("loom").lines([*our_run, *second])
    assert [line["event_id"] for line in alone] == [*range(1, len(lines) // 2 + 1)] * 2, (
        "without a session each run has its own"
    )
