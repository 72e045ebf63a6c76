"""The way of one turn: filter, dialect, call fragments, size."""

import pytest

from agent_nb.agent import turn_reader as module
from agent_nb.agent.turn import Turn
from agent_nb.agent.turn_reader import TurnReader
from agent_nb.host import plugins
from agent_nb.models import parts as p
from agent_nb.wire.redact import Redaction

KEY = "value-of-a-secret-key"


def pipe(dialect="native", filtered=False):
    return TurnReader(
        plugins.load_plugin("dialects", dialect),
        Turn(1),
        Redaction({"MY_KEY": KEY}) if filtered else None,
    )


def stored(pipeline, *batches, **close):
    events = [
        e for b in batches for e in pipeline.feed(b if isinstance(b, list) else [b])
    ] + pipeline.close(**close)
    return [e for e in events if e.type != "delta"]


def test_call_fragments_become_one_call_and_a_batch():
    got = stored(
        pipe(), p.CallDelta('{"a"', 0, "c1", "f"), p.CallDelta(": 1}"), p.Finish("tool_calls")
    )
    assert [e.type for e in got] == ["call", "execute"]
    assert got[0].args == {"a": 1}


def test_native_calls_do_not_run_after_a_cut():
    got = stored(pipe(), p.CallDelta('{"a"', 0, "c1", "f"), incomplete=True)
    assert [e.type for e in got] == ["call"]
    assert got[0].incomplete


@pytest.mark.few(20)
@pytest.mark.parametrize("make", [p.Text, p.Thought, p.CallDelta])
@pytest.mark.parametrize("at", range(1, len(KEY)))
def test_a_key_split_over_two_parts_is_filtered(make, at):
    raw = ['{"k": "' + KEY[:at], KEY[at:] + '"}']
    got = stored(pipe(filtered=True), *(make(t) for t in raw))
    assert KEY not in str(got)
    assert "[redacted MY_KEY]" in str(got)


@pytest.mark.parametrize(
    "part",
    [
        p.Call(
            KEY, {"signature": KEY, KEY: 1}, f'{{"signature": "{KEY}"}}', call_id=KEY, fault=KEY
        ),
        p.CallDelta("{}", 0, KEY, KEY),
        p.Fault("provider", KEY, raw=KEY),
        p.Extra("openai", KEY, {"data": [KEY]}),
        p.Resend("openai", {"summary": KEY}),
        p.Thought("hm", attributes={"by": KEY}, opaque={"provider": "x", "note": KEY}),
        p.Thought(KEY[:4], attributes={"by": KEY}),  # its text is held back, and passed on later
        p.CallDelta(KEY[:4], 0, KEY, KEY),
    ],
    ids=lambda part: type(part).__name__,
)
def test_a_key_in_whatever_a_provider_says_is_filtered(part):
    assert KEY not in str(stored(pipe(filtered=True), part))


def test_the_names_that_a_provider_gives_are_filtered():
    pipeline = pipe(filtered=True)
    stored(pipeline, p.Head(200, KEY, KEY), p.Usage(raw={KEY: KEY}), p.Finish(KEY))
    assert (pipeline.turn.head.model, pipeline.turn.finish) == (
        "[redacted MY_KEY]",
        "[redacted MY_KEY]",
    )
    assert KEY not in str(pipeline.turn.usage)


def test_what_a_provider_wants_back_keeps_its_signatures():
    payload = {"encrypted_content": KEY, "nested": [{"signature": KEY}]}
    resent, thought = stored(
        pipe(filtered=True), p.Resend("x", payload), p.Thought("hm", opaque={"signature": KEY})
    )
    assert (resent.payload, thought.opaque) == (payload, {"signature": KEY})


def test_what_the_filter_holds_back_keeps_its_place():
    got = stored(pipe(filtered=True), p.Text("tail " + KEY[:5]), p.Thought("next"))
    assert [(e.type, e.content) for e in got] == [("respond", "tail " + KEY[:5]), ("think", "next")]


def test_after_a_complete_batch_only_usage_passes():
    pipeline = pipe("xml")
    got = stored(
        pipeline,
        p.Text('<execute>[{"name":"f","args":{}}]</execute>'),
        p.Text("late"),
        p.Usage(input=3),
        p.Extra("x", "y"),
    )
    assert [e.type for e in got] == ["call", "execute"]
    assert pipeline.stopped
    assert pipeline.turn.usage.input == 3


def test_reasoning_of_the_provider_is_not_read_as_markup():
    got = stored(
        pipe("xml"), p.Thought('<execute>[{"name":"f","args":{}}]</execute>'), p.Text("ok")
    )
    assert [e.type for e in got] == ["think", "respond"]


def test_a_turn_without_end_is_cut_off_with_a_clear_fault(monkeypatch):
    monkeypatch.setattr(module, "LONGEST_TURN", 10)
    pipeline = pipe()
    got = stored(pipeline, p.Text("12345678"), p.Text("90123"), p.Text("never"), incomplete=True)
    assert pipeline.stopped
    assert pipeline.turn.broken
    assert [e.type for e in got] == ["respond", "error"]
    assert "cut off" in got[1].message
    assert got[0].content == "1234567890123"
