"""The parts that codecs are made of: residue, correlation, losses, settling, times, pieces."""

import json
import random

import pytest
from helpers.examples import count_examples
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_nb import events as ev
from agent_nb.codecs.call_matching import REMEMBERED, CallMatcher
from agent_nb.codecs.framing import Unframer, frame_sse
from agent_nb.codecs.losses import Losses
from agent_nb.codecs.passthrough import line_notes, note_difference, restore_object
from agent_nb.codecs.run_builder import UniqueIds
from agent_nb.codecs.times import format_iso, read_epoch, shift_iso
from agent_nb.codecs.writing import split_block
from agent_nb.errors import WireError
from agent_nb.events.settler import Numberer, Settler

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(-2, 2) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3)
    ),
    max_leaves=6,
)
OBJECT = st.dictionaries(st.sampled_from(["a", "b", "c", "d"]), JSON, max_size=4)


@given(OBJECT, OBJECT)
@settings(max_examples=count_examples(200), deadline=None)
def test_an_object_is_restored_from_any_drawing_and_its_difference(obj, drawn):
    assert json.dumps(
        restore_object(drawn, note_difference(obj, drawn)), sort_keys=True
    ) == json.dumps(obj, sort_keys=True)


@pytest.mark.parametrize(
    ("a", "b"), [(1, 1.0), (1, True), (0, False), ({"x": 1}, {"x": 1.0}), ([1], [True])]
)
def test_numbers_and_booleans_that_are_equal_in_python_are_told_apart(a, b):
    assert note_difference({"k": a}, {"k": b}) == {"fields": {"k": a}}


def test_a_note_of_another_form_is_ignored():
    assert restore_object({"a": 1}, {"fields": 5, "absent": "a"}) == {"a": 1}


def test_notes_of_lines_count_on_until_one_has_its_own():
    shifts = {"n": lambda v, lines, _ms: v + lines}
    notes = list(
        line_notes({"fields": {"n": 5}, "lines": {"2": {"fields": {"n": 9}}}}, shifts, [0, 0, 0, 0])
    )
    assert [n["fields"]["n"] for n in notes] == [5, 6, 9, 10]


def test_a_given_call_id_wins_over_the_oldest_open_call():
    calls = CallMatcher()
    calls.open_call("sh", "x1")
    calls.open_call("sh", "x2")
    assert calls.match_result("sh", "x2").call_id == "x2"
    assert calls.match_line("sh").call_id == "x1"


def test_made_up_ids_do_not_meet_given_ones():
    calls = CallMatcher()
    calls.open_call("sh", "call-1")
    assert calls.open_call("sh")[0] == "call-2"


def test_a_given_id_that_was_made_up_before_is_a_call_of_its_own():
    calls = CallMatcher()
    made = [calls.open_call("sh")[0], calls.open_call("sh", "call-1")[0]]
    assert made == ["call-1", "call-1#2"]
    assert calls.match_result("sh", "call-1").call_id == "call-1#2"
    assert calls.match_result("sh").call_id == "call-1"


def test_an_id_of_an_ended_call_is_not_made_up_again():
    calls = CallMatcher()
    calls.open_call("sh", "call-1")
    calls.match_result("sh", "call-1")
    assert calls.open_call("sh")[0] == "call-2"


def test_a_made_up_id_of_an_ended_call_is_not_given_again():
    calls = CallMatcher()
    calls.open_call("sh")
    calls.match_result("sh")
    assert calls.open_call("sh", "call-1")[0] == "call-1#2"


def test_an_id_that_ended_again_is_among_the_newest():
    calls = CallMatcher()
    for wire_id in ("a", *map(str, range(REMEMBERED - 1)), "a", "last"):
        calls.open_call("sh", wire_id)
        calls.match_result("sh", wire_id)
    assert calls.state_of("a") == "over"
    assert calls.state_of("0") == ""


def test_state_is_held_for_open_calls_only():
    calls = CallMatcher()
    for _ in range(1000):
        calls.open_call("sh")
        calls.match_result("sh")
    assert not calls._by_tool
    assert not calls._tools


def test_strict_losses_raise_with_what_and_why_and_the_raw_text():
    with pytest.raises(
        WireError, match=r"user\.attachments: a message is text\. Leave strict mode"
    ) as caught:
        Losses(strict=True).add("user.attachments", "a message is text", raw="{…}")
    assert caught.value.raw == "{…}"


def test_details_never_raise_and_are_no_loss():
    losses = Losses(strict=True)
    losses.add("envelope.ts", "made anew", detail=True)
    assert not losses
    assert losses.counts() == {}
    assert [loss.what for loss in losses] == ["envelope.ts"]


@pytest.mark.parametrize("order", [(False, True, True), (True, True, False)])
def test_a_real_loss_stays_real_beside_a_detail_of_the_same_name(order):
    losses, total = Losses(), Losses()
    for detail in order:
        losses.add("extra", "made anew" if detail else "it has no place", detail=detail)
        one = Losses()
        one.add("extra", "made anew" if detail else "it has no place", detail=detail)
        total.update(one)
    for found in (losses, total):
        assert found
        assert found.counts() == {"extra": 1}
        assert str(found) == "      1  extra: it has no place"
        assert {(loss.detail, loss.count) for loss in found} == {(False, 1), (True, 2)}


def test_a_run_without_an_end_gets_results_and_an_end():
    settler = Settler("loom")
    events = [*settler.feed(ev.Call(run="r", call_id="c", name="sh")), *settler.close()]
    assert [(e.type, getattr(e, "status", "")) for e in events] == [
        ("call", ""),
        ("result", "cancelled"),
        ("end", "interrupted"),
    ]
    assert all(e.extra == {"loom": {"derived": True}} for e in events[1:])


def test_a_conversation_without_ends_is_taken_as_answered():
    settler = Settler("cogency", interleaves=False, may_lack_end=True)
    run = [
        ev.User(run="a"),
        ev.Respond(run="a", content="x"),
        ev.User(run="b"),
        ev.Respond(run="b", content="y", incomplete=True),
    ]
    events = [e for event in run for e in settler.feed(event)] + settler.close()
    assert [(e.run, e.status) for e in events if e.type == "end"] == [
        ("a", "ok"),
        ("b", "interrupted"),
    ]
    assert [e.run for e in events] == ["a", "a", "a", "b", "b", "b"]


def test_the_end_of_a_run_inside_a_run_ends_nothing_else():
    settler = Settler("loom")
    events = [
        e
        for event in (ev.User(run="r"), ev.End(run="r", span="s"), ev.Respond(run="r", content="x"))
        for e in settler.feed(event)
    ]
    assert [e.type for e in [*events, *settler.close()]] == ["user", "end", "respond", "end"]


def test_numbers_count_in_each_run_and_deltas_have_none():
    numberer = Numberer()
    events = [
        ev.User(run="a"),
        ev.Delta(run="a"),
        ev.User(run="b"),
        ev.End(run="a"),
        ev.User(run="a", seq=9),
        ev.User(run="a"),
    ]
    assert [numberer.feed(e).seq for e in events] == [1, 0, 1, 2, 9, 10]


@pytest.mark.parametrize(
    "text", ["2026-01-31T12:00:00.123Z", "1970-01-01T00:00:01.000Z", "9999-12-31T23:59:59.999Z"]
)
def test_the_times_of_javascript_come_back_as_they_were(text):
    assert format_iso(read_epoch(text)) == text


@pytest.mark.parametrize("value", ["T", "", None, True, -5, 1e30, float("nan"), [], "2026-13-01"])
def test_what_is_no_time_is_zero(value):
    assert read_epoch(value) == 0.0
    assert shift_iso(value, 1, 5) is value


def test_a_block_whose_chunks_do_not_fit_its_text_is_one_piece():
    assert split_block(ev.Respond(content="edited", chunks="CA")) == [("edited", 0)]
    assert split_block(ev.Respond(content="ab", chunks="!!")) == [("ab", 0)]
    assert split_block(ev.Respond(content="ab", chunks="BABK")) == [("a", 0), ("b", 10)]


def test_a_line_break_in_an_event_name_is_refused():
    with pytest.raises(ValueError, match="line break"):
        frame_sse("{}", "a\ndata: x")


def test_ids_that_wrap_far_ahead_never_lose_a_frame(tool):
    rng = random.Random(3)
    for _ in range(200):
        frames = [
            {"session_id": "s", "event_id": i, "type": "custom", "value": i} for i in range(1, 41)
        ]
        order = sorted(range(40), key=lambda i: (i + rng.uniform(0, 12)) if i else -1)
        text = "".join(json.dumps(frames[i]) + "\n" * (1 + (rng.random() < 0.2)) for i in order)
        assert [e.payload for e in tool("loom").read(text)] == list(range(1, 41))


@pytest.mark.parametrize("format_", ["loom", "looopy", "looopy:document", "agent-event"])
def test_fields_named_like_the_marks_of_a_reader_come_back_as_they_were(tool, format_):
    marks = ("#own", "#ws", "#export", "#kind", "#event", "#id", "#bare", "#in", "##x")
    envelope = {"kind": "task-created", "taskId": "t"} if "looopy" in format_ else {"type": "usage"}
    lines = [{**envelope, mark: value} for mark in marks for value in (True, {"a": 1})]
    codec = tool(format_)
    assert codec.lines(codec.read("".join(json.dumps(line) + "\n" for line in lines))) == lines
    assert codec.write(codec.read("".join(json.dumps(line) + "\n" for line in lines)))


@pytest.mark.parametrize(
    ("format_", "line"),
    [
        ("cogency", {"type": "think", "content": "a", "timestamp": 10**400}),
        ("looopy", {"kind": "tool-complete", "taskId": "t", "metadata": {"duration": 10**400}}),
    ],
)
def test_a_number_beyond_every_float_is_read_and_written_as_it_came(tool, format_, line):
    codec = tool(format_)
    assert codec.lines(codec.read((json.dumps(line) + "\n") * 2)) == [line, line]


def test_a_time_beyond_every_date_is_left_out_of_ag_ui(tool):
    lines = tool("ag-ui").lines([ev.RunStart(run="r", ts=1e308), ev.End(run="r", ts=1.5)])
    assert [line.get("timestamp") for line in lines] == [None, 1500]


@pytest.mark.parametrize("wanted", [["a", "a", "a#2"], ["a#2", "a", "a"]])
def test_an_id_like_a_numbered_one_is_unique_too(wanted):
    ids = UniqueIds()
    assert len({ids.take(each) for each in wanted}) == 3


def test_ids_are_unique_among_the_newest(monkeypatch):
    monkeypatch.setattr(UniqueIds, "REMEMBERED", 2)
    ids = UniqueIds()
    assert [ids.take(i) for i in "aabacbd"] == ["a", "a#2", "b", "a#3", "c", "b", "d"]


@pytest.mark.parametrize("format_", ["cogency", "loom", "looopy", "ui-message", "ag-ui"])
def test_a_value_that_is_nested_too_deeply_to_write_is_a_loss(tool, format_):
    deep = 1
    for _ in range(100_000):  # Python 3.13 writes thousands of levels
        deep = [deep]
    call = ev.Call(run="r", call_id="c", name="sh", args={"a": deep})
    codec = tool(format_)
    codec.write([ev.RunStart(run="r"), call, ev.End(run="r")])
    assert any("nested" in loss.reason for loss in codec.encoder.losses)


@pytest.mark.parametrize("start", [b"", b"["])
def test_a_stream_of_blanks_without_end_takes_linear_time(start):
    """In quadratic time it would exceed the test's time limit."""
    unframer = Unframer(Losses())
    unframer.feed(start)
    for _ in range(4_000):
        assert unframer.feed(b" \n" * 32_000) == []
    assert [item.obj for item in (*unframer.feed(start and b'{"a": 1}]'), *unframer.close())] == (
        [{"a": 1}] if start else []
    )
