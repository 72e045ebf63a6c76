"""The loom codec against what a live server sends: chunks without a call, approvals, sockets,
cancelling, and the figures of the reply.
"""

import pytest
from helpers.streams import ndjson, stored

from agent_nb import events as ev
from agent_nb.codecs.detect import detect
from agent_nb.codecs.loom.open_nodes import OpenNodes
from agent_nb.events.settler import Settler

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


# How a run ends.

ASKED = [{"type": "tool_call", **WITH_ID, "arguments": {"c": "ls"}}, {**APPROVAL, **WITH_ID}]
WORDS = {"type": "message_chunk", "content": "I leave it.", "id": "think"}


def ended(tool, *frames):
    """The status of the run of some frames, and its frames again."""
    loom, settler = tool("loom"), Settler("loom")
    events = stored(loom.read(ndjson(*frames)))
    settled = [e for event in events for e in settler.feed(event)] + settler.close()
    assert loom.lines(settled) == list(frames)
    return settled[-1].status


@pytest.mark.parametrize(
    "after",
    [
        (),
        ({"type": "node_exit", "id": "act", "result": {"Err": "interrupted"}},),
        ({"type": "usage", "prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},),
        ({"reply": ""},),
        ({"type": "run_end", "id": "q", "reply": ""},),
    ],
)
@pytest.mark.parametrize("before", [ASKED, ASKED[1:], frames_of(WITH_ID, WITH_ID, APPROVAL)])
def test_a_stream_that_stops_at_an_approval_awaits(before, after, tool):
    assert ended(tool, *before, *after) == "awaiting"


@pytest.mark.parametrize(
    ("after", "status"),
    [
        ((WORDS,), "interrupted"),
        ((WORDS, {"reply": "I leave it."}), "ok"),
        (({**OVER, **WITH_ID}, WORDS, {"reply": "I leave it."}), "ok"),
        (({**START, **WITH_ID},), "interrupted"),
        (({"reply": "x", "stop_reason": "end_turn"},), "ok"),
    ],
)
def test_an_approval_that_was_answered_awaits_no_more(after, status, tool):
    assert ended(tool, *ASKED, *after) == status


CANCEL = {"type": "cancel_run", "id": "q2", "run_id": "r"}


@pytest.mark.parametrize("cancel", [CANCEL, {**CANCEL, "type": "cancel_run_ack"}])
@pytest.mark.parametrize(
    "after",
    [
        (),
        (WORDS,),
        ({"type": "error", "id": "q", "error": "run cancelled"},),
        ({"type": "run_end", "id": "q", "reply": ""},),
        ({"reply": "", "stop_reason": "cancelled"},),
        ({**CANCEL, "type": "cancel_run_ack"},),
    ],
)
def test_cancel_run_is_an_interruption(cancel, after, tool):
    frames = [WORDS, cancel, *after]
    assert ended(tool, *frames) == "interrupted"
    events = tool("loom").read(ndjson(*frames))
    assert [e.reason for e in events if e.type == "interrupt"] == ["user"]


def test_a_run_that_was_done_before_the_cancelling_is_done(tool):
    assert ended(tool, WORDS, CANCEL, {"reply": "I leave it.", "stop_reason": "end_turn"}) == "ok"


# What the reply and the end of a tool say beside.

USAGE = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}
TOTAL = {"prompt_tokens": 30, "completion_tokens": 5, "total_tokens": 35}
END = {"type": "run_end", "id": "q", "reply": "Hi", "usage": USAGE, "total_usage": TOTAL}
TWELVE, SUM = ev.Counts(input=10, output=2), ev.Counts(input=30, output=5)


@pytest.mark.parametrize(
    ("before", "end", "metrics"),
    [
        ([], END, [(TWELVE, SUM)]),
        ([], {"reply": "Hi", "usage": USAGE}, [(TWELVE, TWELVE)]),
        ([{"type": "usage", **USAGE}], END, [(TWELVE, TWELVE), (ev.Counts(), SUM)]),
        ([{"type": "usage", **TOTAL}], END, [(SUM, SUM)]),
        ([{"type": "usage", **USAGE}], {"reply": "Hi", "usage": USAGE}, [(TWELVE, TWELVE)]),
        ([], {"reply": "Hi", "usage": None, "total_usage": [1]}, []),
    ],
)
def test_the_usage_of_the_reply_counts_unless_it_came_before(before, end, metrics, tool):
    loom = tool("loom")
    events = stored(loom.read(ndjson(*before, end)))
    assert [(e.step, e.total) for e in events if e.type == "metric"] == metrics
    assert events[-1].type == "end"
    assert loom.lines(events) == [*before, end]


@pytest.mark.parametrize(
    ("streamed", "thoughts"),
    [
        ((), ["I look. Then I say."]),
        (("I look. ",), ["I look. ", "Then I say."]),
        (("I look. ", "Then I say."), ["I look. Then I say."]),
    ],
)
def test_the_reasoning_of_the_reply_is_a_thought_unless_it_was_streamed(streamed, thoughts, tool):
    loom = tool("loom")
    frames = [
        *({"type": "thought_chunk", "content": text, "id": "think"} for text in streamed),
        {"reply": "Hi", "reasoning_content": "I look. Then I say."},
    ]
    events = stored(loom.read(ndjson(*frames)))
    assert [e.content for e in events if e.type == "think"] == thoughts
    assert loom.lines(events) == frames


def test_raw_result_is_what_people_see_and_the_model_reads_the_excerpt(tool):
    loom = tool("loom")
    frame = {**OVER, **WITH_ID, "result": "a…", "raw_result": "a\nb\nc"}
    events = stored(loom.read(ndjson(frame)))
    assert (events[-1].content, events[-1].display) == ("a…", {"text/plain": "a\nb\nc"})
    assert "raw_result" not in str(events[-1].extra)
    assert loom.lines(events) == [frame]


@pytest.mark.parametrize("raw", ["a", None, 7])
def test_a_raw_result_that_says_nothing_more_is_kept_as_it_came(raw, tool):
    loom, frame = tool("loom"), {**OVER, **WITH_ID, "raw_result": raw}
    events = stored(loom.read(ndjson(frame)))
    assert events[-1].display is None
    assert loom.lines(events) == [frame]


def test_the_fields_of_the_reply_are_no_loss_in_another_format(tool):
    events = stored(tool("loom").read(ndjson({**END, "reasoning_content": "hm"})))
    other = tool("cogency")
    other.lines(events)
    assert "extra" not in other.encoder.losses.counts()


# Sockets.

SOCKET = [
    {"type": "run_stream_event", "id": "q", "event": {**ENVELOPE, "event_id": 1, **WORDS}},
    {"type": "run_end", "id": "q", "reply": "I leave it.", "usage": USAGE},
]


@pytest.mark.parametrize(
    "frames",
    [
        SOCKET,
        SOCKET[1:],
        [{"type": "run_stream_event", "id": "q", "event": {"type": "news", "value": 1}}],
        [CANCEL],
        [{"events": [WORDS], "reply": {"reply": "I leave it."}, "stop_reason": "end_turn"}],
    ],
)
def test_what_comes_over_a_socket_is_recognised(frames):
    assert detect(ndjson(*frames)).name == "loom"


def test_frames_of_a_socket_are_one_run_with_one_answer(tool):
    loom = tool("loom")
    events = stored(loom.read(ndjson(*SOCKET)))
    assert [(e.run, e.type) for e in events] == [("s", "respond"), ("s", "metric"), ("s", "end")]
    assert loom.lines(events) == SOCKET


def test_a_message_of_a_socket_inside_another_comes_back_as_it_was(tool):
    loom, outer = tool("loom"), {"type": "run_stream_event", "id": "o", "event": SOCKET[0]}
    assert loom.lines(loom.read(ndjson(outer))) == [outer]


def test_an_early_reply_is_kept_beside_the_frame_with_its_id(tool):
    first, late, reply, next_run = (
        {"session_id": "s", "event_id": n, **fields}
        for n, fields in ((1, WORDS), (2, WORDS), (3, {"reply": "r"}), (3, WORDS))
    )
    loom = tool("loom")
    events = loom.read(ndjson(first, reply, next_run, late))
    assert loom.lines(events) == [first, late, reply, next_run]


def test_a_reply_with_the_id_of_the_frame_before_it_holds_nothing_back(tool):
    frames = [{"session_id": "s", "event_id": n, **WORDS} for n in (1, 2, 3, 4)]
    reply = {"session_id": "s", "event_id": 3, "reply": "r"}
    loom = tool("loom")
    events = loom.read(ndjson(frames[0], frames[2], reply, frames[3], frames[1]))
    assert loom.lines(events) == [*frames[:3], reply, frames[3]]


def test_a_run_printed_as_one_object_has_its_usage_beside_the_reply(tool):
    whole = {"events": [WORDS], "reply": "I leave it.", "usage": USAGE, "reasoning_content": "hm"}
    kinds = [e.type for e in stored(tool("loom").read(ndjson(whole)))]
    assert kinds == ["respond", "think", "metric", "end"]


# Runs of ours, written live.


def streamed_call(span=""):
    """The events of one call of ours as a live run yields them."""
    who = {"span": span, "turn": 1}
    args = {"c": "ls"}
    return [
        *(ev.Delta(block="1.2", of="call", name="sh", text=t, **who) for t in ('{"c"', ':"ls"}')),
        ev.Call(
            call_id="call_1_1", name="sh", args=args, block="1.2", raw_args='{"c":"ls"}', **who
        ),
        ev.Approval(call_id="call_1_1", args=args, **who),
        ev.Started(call_id="call_1_1", name="sh", **who),
        ev.Progress(call_id="call_1_1", text="a", **who),
        ev.Result(call_id="call_1_1", name="sh", content="a", **who),
    ]


def test_live_chunks_carry_the_id_of_their_call(tool):
    loom = tool("loom")
    events = [ev.RunStart(), *streamed_call(), ev.End()]
    frames = loom.lines(events)
    assert {f["call_id"] for f in frames if f.get("type", "").startswith("tool_")} == {"call_1.2"}
    calls = [e for e in loom.read(ndjson(*frames)) if e.type == "call"]
    assert [(c.args, c.synthetic) for c in calls] == [({"c": "ls"}, False)]


def test_live_calls_of_a_sub_agent_have_ids_of_their_own(tool):
    inner = [ev.Node(name="w", span="n1", turn=1), *streamed_call("n1")]
    leave = ev.Node(name="w", span="n1", phase="exit", result="ok", turn=1)
    outer = streamed_call()
    frames = tool("loom").lines([ev.RunStart(), *outer[:5], *inner, leave, *outer[5:], ev.End()])
    ids = [f["call_id"] for f in frames if f.get("type") == "tool_call_chunk"]
    assert ids == ["call_1.2"] * 2 + ["call_n1_1.2"] * 2
    assert [f["call_id"] for f in frames if f.get("type") == "tool_end"] == [
        "call_n1_1.2",
        "call_1.2",
    ]


def test_calls_that_come_whole_keep_their_ids(tool):
    frames = tool("loom").lines([ev.RunStart(), *streamed_call()[2:], ev.End()])
    assert {f["call_id"] for f in frames if "call_id" in f} == {"call_1_1"}


def test_a_piece_of_the_arguments_of_an_open_call_is_an_extension(tool):
    piece = {"type": "tool_call_chunk", "call_id": "c", "name": "sh", "arguments_delta": "{}"}
    frames = [{"type": "tool_output", "call_id": "c", "name": "sh", "content": "a"}, piece]
    loom = tool("loom")
    events = loom.read(ndjson(*frames))
    assert [e.type for e in events] == ["call", "progress", "extension"]
    assert loom.lines(events) == frames


def test_nodes_that_are_never_left_take_linear_time():
    """In quadratic time it would exceed the test's time limit."""
    nodes = OpenNodes()
    for number in range(60_000):
        nodes.enter({"id": f"n{number}", "node_id": f"n{number}"})
        assert nodes.locate({"node_id": f"n{number}"})["path"] == f"n{number}"
        nodes.exit({"id": "other"})
