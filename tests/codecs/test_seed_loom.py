"""Seed 002 line by line: what a stream of frames means where frames lack fields, come twice, or
come in an odd order.
"""

import pytest
from helpers.streams import ndjson, stored

from agent_nb import events as ev

S = {"session_id": "s"}
USAGE = {"type": "usage", "prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}


def say(content, **more):
    return {"type": "message_chunk", "content": content, "id": "think", **more}


def spoken(events):
    return [(e.run, e.content) for e in events if e.type == "respond"]


@pytest.fixture
def read(tool):
    """Read frames with Loom's codec, and see that they come out again as they came: live, and from
    stored events where asked.
    """

    def run(*frames, form="loom", again="both"):
        codec = tool(form)
        events = codec.read(ndjson(*frames))
        if again:
            assert codec.lines(events) == list(frames)
        if again == "both":
            assert codec.lines(stored(events)) == list(frames)
        assert not codec.decoder.losses
        return stored(events)

    return run


# § 5, § 7.2: the reply, envelope or not.


def test_a_reply_without_an_envelope_ends_the_session_before_it(read):
    events = read(say("Hi", **S, event_id=1), {"reply": "Hi"})
    assert [(e.type, e.run) for e in events] == [("respond", "s"), ("end", "s")]


def test_frames_before_any_session_is_named_belong_to_the_first_that_is(read):
    events = read(
        {"type": "run_start", "message": "Hello"}, say("Hi", **S, event_id=1), {**S, "reply": "Hi"}
    )
    assert [e.type for e in events] == ["run_start", "user", "respond", "end"]
    assert len({e.run for e in events}) == 1


def test_the_next_run_may_count_anew_after_a_reply_without_an_id(read):
    frames = [say("a", **S, event_id=1), {**S, "reply": "a"}]
    assert spoken(read(*frames, *frames)) == [("s", "a"), ("s#2", "a")]


def test_a_second_run_start_begins_a_run(read):
    events = read(
        {"type": "run_start", "message": "one"},
        say("1"),
        {"type": "run_start", "message": "two"},
        say("2"),
    )
    assert [e.content for e in events if e.type == "user"] == ["one", "two"]
    assert len({e.run for e in events}) == 2


REPLIES = {
    "parted by a thought": (
        [say("Hel"), {"type": "thought_chunk", "content": "hm", "id": "think"}, say("lo")],
        "Hello",
    ),
    "the last turn": ([say("Let me look."), "tool", say("Done.\n")], "Done."),
    "all turns": ([say("Let me look."), "tool", say("Done.")], "Let me look.Done."),
    "the last block": (
        [say("a"), {"type": "thought_chunk", "content": "hm", "id": "think"}, say("b")],
        "b",
    ),
    "nothing": ([say("a")], ""),
}
TOOL = [
    {"type": "tool_call", "call_id": "c", "name": "sh", "arguments": {}},
    {"type": "tool_end", "call_id": "c", "name": "sh", "result": "r", "is_error": False},
]


@pytest.mark.parametrize("case", REPLIES)
def test_a_reply_that_had_been_streamed_is_no_second_answer(case, read):
    frames, reply = REPLIES[case]
    lines = [f for frame in frames for f in (TOOL if frame == "tool" else [frame])]
    events = read(*lines, {"reply": reply})
    assert [e.content for e in events if e.type == "respond"] == [
        f["content"] for f in lines if f["type"] == "message_chunk"
    ]


def test_of_an_answer_that_was_streamed_in_part_the_reply_tells_the_rest(read):
    events = read(say("I"), say(" have"), {"reply": "I have no clock."})
    assert [e.content for e in events if e.type == "respond"] == ["I have", " no clock."]


def test_another_answer_than_the_streamed_one_is_told(read):
    events = read(say("I"), {"reply": "You"})
    assert [e.content for e in events if e.type == "respond"] == ["I", "You"]


def test_our_reply_is_the_whole_answer_of_the_last_turn(tool):
    run = [
        ev.Respond(content="Let me look. ", turn=1),
        ev.Respond(content="It ", turn=2),
        ev.Think(content="hm", turn=2),
        ev.Respond(content="is 4.", turn=2),
        ev.End(turn=2),
    ]
    assert tool("loom:bare").lines(run)[-1] == {"reply": "It is 4."}


# § 4.2: the tool events.


def chunk(delta, **more):
    return {"type": "tool_call_chunk", **more, "arguments_delta": delta}


def call(arguments, **more):
    return {"type": "tool_call", **more, "name": "sh", "arguments": arguments}


CHUNKS = {
    "neither id nor name": [chunk('{"a"'), chunk(":1}"), call({"a": 1})],
    "id and name on the first": [
        chunk('{"a"', call_id="c", name="sh"),
        chunk(":1}"),
        call({"a": 1}, call_id="c"),
    ],
    "then only the name": [
        chunk('{"a"', call_id="c", name="sh"),
        chunk(":1}", name="sh"),
        call({"a": 1}, call_id="c"),
    ],
    "the id on the chunks only": [chunk('{"a":1}', call_id="c", name="sh"), call({"a": 1})],
    "the id on the call only": [chunk('{"a":1}', name="sh"), call({"a": 1}, call_id="c")],
}


@pytest.mark.parametrize("case", CHUNKS)
def test_chunks_belong_to_the_call_that_follows_whatever_fields_they_lack(case, read):
    events = read(*CHUNKS[case])
    assert [(e.type, e.name, e.args, e.raw_args) for e in events] == [
        ("call", "sh", {"a": 1}, '{"a":1}')
    ]


def test_the_chunks_of_two_calls_of_one_tool_without_ids_are_kept_apart(read):
    events = read(
        chunk('{"a":1}', name="sh"),
        chunk('{"a":2}', name="sh"),
        call({"a": 1}),
        call({"a": 2}),
        again="live",
    )
    assert [(e.args, e.raw_args) for e in events] == [({"a": 1}, '{"a":1}'), ({"a": 2}, '{"a":2}')]


def test_arguments_given_as_json_text_are_read(read):
    (event,) = read(call('{"a": 1}', call_id="c"))
    assert (event.args, event.raw_args) == ({"a": 1}, '{"a": 1}')


def end(call_id):
    return {"type": "tool_end", "call_id": call_id, "name": "sh", "result": "r", "is_error": False}


def test_a_call_told_twice_is_one_call_and_an_end_told_twice_one_result(read):
    events = read(call({}, call_id="c"), call({}, call_id="c"), end("c"), end("c"))
    assert [e.type for e in events] == ["call", "extension", "result", "extension"]


def test_an_id_used_again_after_its_end_is_another_call(read):
    events = read(call({"n": 1}, call_id="c"), end("c"), call({"n": 2}, call_id="c"), end("c"))
    assert [(e.type, e.call_id) for e in events] == [
        ("call", "c"),
        ("result", "c"),
        ("call", "c#2"),
        ("result", "c#2"),
    ]


def test_a_call_that_comes_after_its_start_is_no_second_call(read):
    events = read(
        {"type": "tool_start", "call_id": "c", "name": "sh"}, call({"a": 1}, call_id="c"), end("c")
    )
    assert [(e.type, getattr(e, "call_id", "")) for e in events] == [
        ("call", "c"),
        ("started", "c"),
        ("extension", ""),
        ("result", "c"),
    ]
    assert events[2].payload["arguments"] == {"a": 1}


# § 6: the single-key form.


def test_the_single_key_form_may_hold_the_payload_of_the_frame(read):
    events = read(
        {"TaskStart": {"id": "think"}},
        {"Messages": {"content": "Hi", "id": "think"}},
        {"reply": "Hi"},
        form="loom:export",
    )
    assert [e.type for e in events] == ["node", "respond", "end"]
    assert (events[0].name, events[1].content) == ("think", "Hi")


def test_the_single_key_form_may_stand_beside_an_envelope(read, tool):
    where = {**S, "node_id": "run-think-0"}
    message = {
        "chunk": {"content": "Hi", "kind": "Message"},
        "metadata": {"loom_node": "think", "namespace": None},
    }
    grown = {"node_id": "n1", "nodes_added": 1, "edges_added": 0}
    frames = [
        {**S, "event_id": 1, "TaskStart": {"node_id": "think"}},
        {**where, "event_id": 2, "Messages": message},
        {**where, "event_id": 3, "GotExpand": grown},
    ]
    events = read(*frames, form="loom:export")
    assert [(e.type, e.run) for e in events] == [
        ("node", "s"),
        ("respond", "s"),
        ("extension", "s"),
    ]
    assert events[2].payload == grown
    assert tool("loom").lines(events)[1] == {**where, "event_id": 2, **say("Hi")}


def test_a_run_printed_as_one_object_may_have_its_reply_as_text(tool):
    events = stored(
        tool("loom").read(ndjson({"events": [USAGE], "reply": "Hi", "session_id": "s"}))
    )
    assert [(e.type, e.run) for e in events] == [("metric", "s"), ("respond", "s"), ("end", "s")]


def test_an_object_of_events_with_more_than_frames_can_say_is_kept(read):
    (event,) = read({"events": [USAGE, 5], "session_id": "s"})
    assert event.type == "extension"


# § 1.2: sessions.


def test_memory_does_not_grow_with_sessions_that_are_over(tool):
    codec = tool("loom")
    decoder = codec.codec.decoder()
    session = [say("a", session_id="s-{}"), {"session_id": "s-{}", "reply": "a"}]
    events = []
    for number in (*range(600), 0, *range(600, 5000)):
        events += decoder.feed(ndjson(*session).replace("{}", str(number)))
    assert len(decoder._reader._sessions) <= 256
    assert len(decoder._reader._run_counts) <= 4096
    assert [e.run for e in events if e.type == "end"][600] == "s-0#2"


def test_many_open_sessions_are_all_kept(tool):
    frames = [say("a", session_id=f"s-{n}") for n in range(300)] + [
        {"session_id": f"s-{n}", "reply": "a"} for n in range(300)
    ]
    assert len([e for e in tool("loom").read(ndjson(*frames)) if e.type == "end"]) == 300
