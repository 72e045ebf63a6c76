"""Parts to events: blocks open and close in order, calls get ids, nothing poisonous passes."""

import pytest

from agent_nb.agent.clean_json import clean_value
from agent_nb.agent.turn import CallIds, Turn
from agent_nb.events.log import EventLog
from agent_nb.models import parts as p


def events_of(*batches, incomplete=False):
    turn, log = Turn(1), EventLog("r")
    for batch in batches:
        for event in turn.feed(batch if isinstance(batch, list) else [batch]):
            log.append(event)
    for event in turn.close(incomplete=incomplete):
        log.append(event)
    return log


def shape(log):
    return [(e.type, getattr(e, "content", getattr(e, "name", ""))) for e in log]


def test_deltas_of_one_kind_are_one_block():
    assert shape(events_of(p.Text("a"), p.Text("b"))) == [("respond", "ab")]


def test_a_change_of_kind_closes_the_block():
    log = events_of(p.Thought("why"), p.Text("because"), p.Thought("hm"))
    assert shape(log) == [("think", "why"), ("respond", "because"), ("think", "hm")]


def test_close_ends_a_block_so_that_two_of_a_kind_stay_apart():
    log = events_of([p.Thought("a"), p.Close(), p.Thought("b"), p.Close()])
    assert shape(log) == [("think", "a"), ("think", "b")]


def test_the_content_is_the_sum_of_the_deltas():
    turn = Turn(1)
    live = turn.feed([p.Text("  "), p.Text("\n a"), p.Text(" b ")])
    (block,) = turn.close()
    assert "".join(d.text for d in live) == block.content == "  \n a b "


def test_a_block_of_white_space_is_no_event():
    assert shape(events_of(p.Text(" \n"), p.Thought("x"), p.Text("\n"))) == [("think", "x")]


def test_a_cut_block_is_incomplete():
    (event,) = events_of(p.Text("half"), incomplete=True)
    assert event.incomplete


def test_interleaved_provider_blocks_are_put_in_order_of_first_appearance():
    log = events_of(
        *(p.Text("a1", "A"), p.Text("b1", "B"), p.Thought("c1", "C"), p.Text("a2", "A")),
        *(p.Text("b2", "B"), p.Close("A"), p.Close("B"), p.Thought("c2", "C")),
    )
    assert shape(log) == [("respond", "a1a2"), ("respond", "b1b2"), ("think", "c1c2")]


def test_interleaved_blocks_that_never_close_are_flushed_at_the_end():
    log = events_of(p.Text("a1", "A"), p.Text("b1", "B"), p.Text("a2", "A"), incomplete=True)
    assert shape(log) == [("respond", "a1a2"), ("respond", "b1")]


def test_any_number_of_blocks_may_wait_for_the_open_one():
    later = [part for n in range(2_000) for part in (p.Text("b", f"{n}"), p.Close(f"{n}"))]
    log = events_of([p.Text("a", "first"), *later, p.Close("first")])
    assert [e.content for e in log] == ["a"] + ["b"] * 2_000


def test_thought_attributes_and_opaque_values_are_kept():
    (event,) = events_of(
        p.Thought("x", attributes={"thought_type": "plan"}),
        p.Thought("", attributes={"confidence": 0.9}, opaque="sig"),
    )
    assert event.attributes == {"thought_type": "plan", "confidence": 0.9}
    assert event.opaque == "sig"


def test_a_thought_of_nothing_but_an_opaque_value_is_kept():
    (event,) = events_of(p.Thought("", opaque={"data": "encrypted"}))
    assert event.opaque == {"data": "encrypted"}


def test_calls_form_a_batch_with_positions_and_ids():
    log = events_of([p.Call("f", {"a": 1}, '{"a":1}'), p.Call("g", {}, "", "given"), p.Execute()])
    calls = log.of("call")
    assert [(c.name, c.index, c.synthetic) for c in calls] == [("f", 0, True), ("g", 1, False)]
    assert log.of("execute")[0].calls == tuple(c.call_id for c in calls)
    assert len({c.batch for c in calls}) == 1


def test_call_ids_are_unique_in_the_run():
    ids = CallIds()
    first, _ = ids.assign("x", 1)
    second, synthetic = ids.assign("x", 2)
    assert first == "x"
    assert second != "x"
    assert synthetic
    assert len({ids.assign("", 2)[0] for _ in range(50)}) == 50


def test_ids_that_a_model_gave_beforehand_are_skipped_in_linear_time():
    """In quadratic time it would exceed the test's time limit."""
    ids, number = CallIds(), 100_000
    for n in range(number):
        ids.assign(f"call_1_{number + n + 1}", 1)
    assert len({ids.assign("", 1) for _ in range(number)}) == number


def test_call_deltas_become_the_chunks_of_their_call():
    log = events_of(
        [
            p.CallDelta('{"a"', 0, "c1", "f"),
            p.CallDelta(":1}", 0),
            p.Call("f", {"a": 1}, '{"a":1}', "c1"),
        ]
    )
    assert [d.text for d in log.deltas()] == ['{"a"', ":1}"]


def test_text_before_a_call_is_closed_first():
    assert [e.type for e in events_of(p.Text("Let me look."), p.Call("f", {}))] == [
        "respond",
        "call",
    ]


def test_lone_surrogates_are_replaced_everywhere():
    log = events_of([p.Text("a\ud800b"), p.Call("f", {"k\udfff": ["\ud83d"]}, "{}")])
    log.to_ndjson().encode()
    assert log[0].content == "a\ufffdb"
    assert log[1].args == {"k\ufffd": ["\ufffd"]}


def test_a_character_of_two_surrogates_is_joined_everywhere():
    pair = "\ud83d\ude00"
    deltas = Turn(1).feed([p.CallDelta('{"a":"\ud83d'), p.CallDelta('\ude00"}')])
    assert "".join(delta.text for delta in deltas) == '{"a":"😀"}'
    log = events_of([p.Text(f"\ude00{pair}\ud83d"), p.Call("f", {pair: [pair]}, pair)])
    assert log[0].content == "\ufffd😀\ufffd"
    assert (log[1].args, log[1].raw_args) == ({"😀": ["😀"]}, "😀")


def test_values_nested_too_deeply_to_write_become_text():
    value = []
    for _ in range(5000):
        value = [value]
    assert "nested too deeply" in str(clean_value(value))


def test_feedback_and_other_faults_are_kept_apart():
    turn = Turn(1)
    turn.feed(
        [
            p.Fault("malformed_execute", "no", "[", 3, feedback=True),
            p.Fault("provider", "overloaded"),
        ]
    )
    assert [e.code for e in turn.feedback] == ["malformed_execute"]
    assert turn.broken


def test_usage_finish_and_head_are_remembered_not_logged():
    turn = Turn(1)
    assert turn.feed([p.Usage(input=3), p.Finish("stop"), p.Head(200, "m", "id")]) == []
    assert (turn.usage.input, turn.finish, turn.head.model) == (3, "stop", "m")


@pytest.mark.parametrize(
    "part", [p.Extra("openai", "logprobs", [1]), p.Resend("anthropic", {"type": "redacted"})]
)
def test_what_has_no_word_becomes_an_extension(part):
    (event,) = events_of(part)
    assert event.type == "extension"
    assert event.payload is not None
