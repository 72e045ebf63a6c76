"""Calls whose arguments Vertex AI streams in pieces."""

import json

import pytest
from helpers.examples import count_examples
from hypothesis import given, settings
from hypothesis import strategies as st
from models.test_gemini import chunk, of, read, sse

from agent_nb.models import parts


def piece(name="", *args, more=True, **fields):
    """Return a part with a piece of a call; `args`: (path, value, whether it goes on)."""
    call = {"partialArgs": [partial(*each) for each in args]} if args else {}
    call |= {"name": name} if name else {}
    return {"functionCall": {**call, **fields, **({"willContinue": True} if more else {})}}


def partial(path, value, more=False):
    kinds = {str: "stringValue", bool: "boolValue", type(None): "nullValue"}
    kind = kinds.get(type(value), "numberValue")
    fields = {"jsonPath": path, kind: "NULL_VALUE" if value is None else value}
    return {**fields, **({"willContinue": True} if more else {})}


ENDED = chunk(finishReason="STOP")
STREAM = [
    chunk({"text": "Wait."}),
    chunk(piece("book")),
    chunk(piece("", ("$.city", "São ", True))),
    chunk(piece("", ("$.city", 'Paulo "', True), ("$.city", 'SP"'))),
    chunk(piece("", ("$.days", 3), ("$.people[0].name", "Ann", True))),
    chunk(piece("", ("$.people[0].name", "e"), ("$.people[0].age", 1.5))),
    chunk(piece("", ("$.people[1]['full name']", "Bo"), ("$.window", True), ("$.note", None))),
    chunk(piece(more=False)),
    chunk({"functionCall": {"name": "now", "args": {"a": 1}}}),
    ENDED,
]
ARGS = {
    "city": 'São Paulo "SP"',
    "days": 3,
    "people": [{"name": "Anne", "age": 1.5}, {"full name": "Bo"}],
    "window": True,
    "note": None,
}


def calls_of(*chunks, **how):
    """Return the calls of a stream, and their deltas by their indices."""
    seen = read(sse(*chunks), **how)
    deltas = {}
    for part in of(parts.CallDelta, seen):
        deltas[part.index] = deltas.get(part.index, "") + part.text
    return of(parts.Call, seen), deltas


def test_pieces_of_arguments_become_one_call_whose_text_grows():
    (book, now), deltas = calls_of(*STREAM)
    assert (book.name, book.args, book.fault) == ("book", ARGS, "")
    assert json.loads(book.raw_args) == ARGS
    assert book.raw_args == deltas[0] + "}"
    assert (now.name, now.args, now.index) == ("now", {"a": 1}, 1)


def test_pieces_of_arguments_do_not_depend_on_where_the_stream_is_cut():
    data = sse(*STREAM)
    assert read(data, size=1) == read(data)
    assert all(read(data, cuts=[cut]) == read(data) for cut in range(len(data)))


def test_a_call_that_is_written_shows_its_name_and_text_at_once():
    first, second = of(parts.CallDelta, read(sse(*STREAM)))[:2]
    assert (first.name, first.text) == ("book", "")
    assert (second.name, second.text) == ("book", '{"city": "São ')


def test_a_stream_that_breaks_off_in_a_call_leaves_it_incomplete():
    seen = read(sse(*STREAM[:4]))
    (call,) = of(parts.Call, seen)
    assert call.incomplete
    assert call.raw_args == '{"city": "São Paulo \\"SP\\""'
    assert of(parts.Fault, seen)[0].code == "cut"


def test_a_call_without_its_end_is_complete_where_the_answer_is():
    (call,), _ = calls_of(chunk(piece("f", ("$.a", "b", True))), ENDED)
    assert (call.args, call.incomplete) == ({"a": "b"}, False)


def test_pieces_of_several_calls_are_told_apart_by_their_ids():
    both = [
        chunk(piece("f", ("$.a", "1", True), id="x"), piece("f", ("$.a", "2", True), id="y")),
        chunk(piece("", ("$.a", "3"), id="x", more=False), piece("", ("$.a", "4"), id="y")),
        ENDED,
    ]
    calls, _ = calls_of(*both)
    assert [(c.call_id, c.args) for c in calls] == [("x", {"a": "13"}), ("y", {"a": "24"})]


def test_arguments_that_came_whole_are_joined_with_the_pieces():
    (call,), deltas = calls_of(
        chunk(piece("f", ("$.b", 2), args={"a": {"x": 1}}, more=False)), ENDED
    )
    assert call.args == {"a": {"x": 1}, "b": 2}
    assert call.raw_args == deltas[0] + "}"


@pytest.mark.parametrize(
    ("pieces", "args"),
    [
        ([("$.a", 1), ("$.b", 2), ("$.a", 3)], {"a": 3, "b": 2}),
        ([("$.a.x", 1), ("$.b", 2), ("$.a.y", 3)], {"a": {"x": 1, "y": 3}, "b": 2}),
        ([("$.a[1]", 1), ("$.a[0]", 0)], {"a": [0, 1]}),
        ([("$.a", 1), ("$.a.b", 2)], {"a": {"b": 2}}),
        ([("$.a.b", 2), ("$.a", "x", True), ("$.a", "y")], {"a": "xy"}),
        ([("$.a", "x"), ("$.a", "y")], {"a": "y"}),
        ([("$..a", 1), ("$.*", 2)], {"$..a": 1, "*": 2}),
        ([("a", 1), ("", 2), ("$", 3)], {"a": 1}),
        ([("$[0]", 1)], {}),
    ],
)
def test_paths_in_another_order_give_the_last_values(pieces, args):
    (call,), _ = calls_of(chunk(piece("f", *pieces, more=False)), ENDED)
    assert call.args == args


@pytest.mark.parametrize(
    "odd", [None, 3, [], {"jsonPath": 3}, {"stringValue": "a"}, {"jsonPath": "$.x"}]
)
def test_a_piece_without_path_or_value_adds_nothing(odd):
    odd_part = {"functionCall": {"name": "f", "partialArgs": [partial("$.a", 1), odd]}}
    (call,), _ = calls_of(chunk(odd_part), ENDED)
    assert call.args == {"a": 1}


SCALARS = st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=6)
NAMES = st.text("ab.'\"\\[]é", min_size=1, max_size=3)
VALUES = st.recursive(
    SCALARS,
    lambda v: (
        st.lists(v, min_size=1, max_size=3) | st.dictionaries(NAMES, v, min_size=1, max_size=3)
    ),
    max_leaves=8,
)


def write_pieces(value, path, size):
    """Return the pieces of a value in its order; strings are cut into `size` characters."""
    if isinstance(value, dict):
        keys = [(json.dumps(k, ensure_ascii=False), v) for k, v in value.items()]
        return [p for k, v in keys for p in write_pieces(v, f"{path}[{k}]", size)]
    if isinstance(value, list):
        return [p for n, v in enumerate(value) for p in write_pieces(v, f"{path}[{n}]", size)]
    if not isinstance(value, str) or not value:
        return [(path, value, False)]
    cuts = [value[n : n + size] for n in range(0, len(value), size)]
    return [(path, text, n < len(cuts)) for n, text in enumerate(cuts, 1)]


@settings(max_examples=count_examples(120), deadline=None)
@given(args=st.dictionaries(NAMES, VALUES, min_size=1, max_size=4), size=st.integers(1, 3))
def test_pieces_in_order_give_the_arguments_and_their_text(args, size):
    pieces = [chunk(piece("", each)) for each in write_pieces(args, "$", size)]
    (call,), deltas = calls_of(chunk(piece("f")), *pieces, chunk(piece(more=False)), ENDED)
    assert call.args == args
    assert call.raw_args.startswith(deltas[0])
    assert set(call.raw_args[len(deltas[0]) :]) <= set("]}")


@settings(max_examples=count_examples(80), deadline=None)
@given(
    args=st.dictionaries(NAMES, VALUES, min_size=1, max_size=4),
    random=st.randoms(use_true_random=False),
)
def test_pieces_in_any_order_give_the_arguments(args, random):
    pieces = write_pieces(args, "$", 99)
    random.shuffle(pieces)
    (call,), _ = calls_of(chunk(piece("f", *pieces, more=False)), ENDED)
    assert call.args == args
