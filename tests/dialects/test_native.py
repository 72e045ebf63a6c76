"""Native calling: text as it is, calls out of fragments, arguments readable while they grow."""

import pytest

from agent_nb.dialects.call_assembly import CUT_OFF, NAMELESS, CallAssembler
from agent_nb.dialects.native import dialect
from agent_nb.models import parts as p


def calls(*deltas, incomplete=False):
    assembler = CallAssembler()
    for delta in deltas:
        assembler.feed(delta)
    return assembler.close(incomplete)


def test_text_passes_as_it_is():
    parser = dialect.parser()
    assert [
        *parser.feed("<think>a"),
        *parser.feed(""),
        *parser.feed("</think>"),
        *parser.close(),
    ] == [
        p.Text("<think>a"),
        p.Text("</think>"),
        p.Close(),
    ]


def test_no_text_is_no_block():
    assert list(dialect.parser().close()) == []


def test_fragments_of_one_index_are_one_call():
    assert calls(p.CallDelta('{"a"', 0, "id1", "f"), p.CallDelta(":1}", 0)) == [
        p.Call("f", {"a": 1}, '{"a":1}', "id1", 0)
    ]


def test_interleaved_calls_keep_the_order_of_their_first_fragments():
    found = calls(
        p.CallDelta("", 1, "b", "g"),
        p.CallDelta("{", 0, "a", "f"),
        p.CallDelta("{}", 1),
        p.CallDelta("}", 0),
    )
    assert [(c.name, c.raw_args, c.index) for c in found] == [("g", "{}", 1), ("f", "{}", 0)]


def test_another_id_at_the_same_index_is_another_call():
    found = calls(p.CallDelta("{}", 0, "a", "f"), p.CallDelta("{}", 0, "b", "g"))
    assert [(c.name, c.call_id) for c in found] == [("f", "a"), ("g", "b")]


@pytest.mark.parametrize("raw", ["", "  ", "{}"])
def test_no_arguments_are_an_empty_object(raw):
    assert calls(p.CallDelta(raw, 0, "a", "f")) == [p.Call("f", {}, raw, "a", 0)]


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ("[1]", "an array"),
        ("3", "a number"),
        ("null", "null"),
        ('{"a"', "truncated"),
        ('{"a": NaN}', "invalid"),
        ("{" * 20000, ""),
        ('{"a": "\ud800"}', "surrogate"),
    ],
)
def test_arguments_that_are_no_object_are_a_fault(raw, reason):
    (call,) = calls(p.CallDelta(raw, 0, "a", "f"))
    assert call.fault.startswith("The arguments are not a JSON object")
    assert reason in call.fault
    assert call.args == {}
    assert call.raw_args == raw


def test_a_call_without_a_name_is_a_fault():
    assert calls(p.CallDelta("{}", 0, "a"))[0].fault == NAMELESS


def test_a_call_that_was_cut_off_is_incomplete():
    (call,) = calls(p.CallDelta('{"a": 1}', 0, "a", "f"), incomplete=True)
    assert (call.incomplete, call.fault) == (True, CUT_OFF)


def test_a_call_that_the_provider_gave_whole_is_forgotten():
    assembler = CallAssembler()
    assembler.feed(p.CallDelta("{", 0, "a", "f"))
    assembler.feed(p.CallDelta("{}", 1, "b", "g"))
    assembler.drop(0)
    assembler.drop(7)
    assert [c.name for c in assembler.close()] == ["g"]


def test_an_assembler_is_empty_after_it_was_closed():
    assembler = CallAssembler()
    assembler.feed(p.CallDelta("{}", 0, "a", "f"))
    assembler.close()
    assert assembler.close() == []
