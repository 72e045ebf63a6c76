"""The canonical events: nothing that was written in a log is ever lost or changed by reading it."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_nb import events
from agent_nb.events import TYPES, Event, Unknown
from agent_nb.events.event_json import decode_event, encode_event, event_from, to_builtins

SEED_TYPES = {
    "user",
    "think",
    "call",
    "execute",
    "result",
    "respond",
    "end",
    "metric",
    "error",
    "interrupt",
}
WORDS = st.text(st.characters(exclude_categories=["Cs"]))
SCALARS = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | WORDS
JSON = st.recursive(
    SCALARS, lambda v: st.lists(v, max_size=3) | st.dictionaries(WORDS, v, max_size=3), max_leaves=8
)


def test_the_ten_names_of_the_seed_taxonomy_are_there():
    assert TYPES.keys() >= SEED_TYPES


def test_the_union_has_eighteen_types():
    assert len(TYPES) == 18


@pytest.mark.parametrize("cls", TYPES.values(), ids=TYPES)
def test_every_type_survives_a_round_trip(cls):
    event = cls(
        seq=3,
        ts=1.5,
        run="r",
        turn=2,
        span="s",
        parent="p",
        path="a/b",
        origin="model",
        extra={"x": [1]},
    )
    assert decode_event(encode_event(event)) == event


@pytest.mark.parametrize("cls", TYPES.values(), ids=TYPES)
def test_the_type_of_a_class_is_the_tag_it_is_written_with(cls):
    assert to_builtins(cls())["type"] == cls.type == cls.__struct_config__.tag


def test_unknown_fields_come_out_again_at_the_top_level():
    line = b'{"type":"respond","content":"hi","mood":"calm","n":{"deep":[1,2]}}'
    event = decode_event(line)
    assert event.extra == {"mood": "calm", "n": {"deep": [1, 2]}}
    assert json.loads(encode_event(event)) == json.loads(line)


def test_an_unknown_type_is_kept_whole():
    line = b'{"type":"hologram","seq":4,"ts":1.5,"run":"r","depth":3}'
    event = decode_event(line)
    assert isinstance(event, Unknown)
    assert (event.kind, event.seq, event.run) == ("hologram", 4, "r")
    assert json.loads(encode_event(event)) == json.loads(line)


def test_a_known_type_with_a_malformed_field_is_kept_as_unknown():
    line = b'{"type":"call","args":"not an object"}'
    event = decode_event(line)
    assert isinstance(event, Unknown)
    assert json.loads(encode_event(event)) == json.loads(line)


def test_an_object_without_type_is_kept():
    assert json.loads(encode_event(decode_event(b'{"reply":"x"}'))) == {"reply": "x"}


@pytest.mark.parametrize(
    "line",
    [
        *(b"", b"[1]", b"12", b"{", b'"x"', b"\xff"),
        b'{"type":"result","content":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    ],
)
def test_a_line_without_a_json_object_is_a_decode_error(line):
    with pytest.raises(msgspec.DecodeError):
        decode_event(line)


def test_events_are_frozen():
    with pytest.raises(AttributeError):
        events.Respond(content="a").content = "b"


@given(
    st.dictionaries(
        st.text(st.characters(exclude_categories=["Cs"]), max_size=6), JSON, max_size=5
    ),
    st.sampled_from([*TYPES, "nova"]),
)
def test_any_object_comes_out_as_it_came_in(fields, kind):
    """Fields that equal their default may be left out; every other field and value is
    there again.
    """
    obj = {**fields, "type": kind}
    event = event_from(obj)
    back = to_builtins(event)
    assert isinstance(event, Event)
    assert event_from(back) == event
    defaults = to_builtins(TYPES[kind]()) if kind in TYPES else {}
    assert all(
        back.get(k, defaults.get(k)) == v
        for k, v in obj.items()
        if k not in getattr(type(event), "__struct_fields__", ())
    )


@pytest.mark.parametrize("extra", [True, "x", [1], 0])
def test_a_foreign_field_named_extra_is_kept(extra):
    obj = {"type": "respond", "content": "a", "extra": extra, "more": 1}
    assert to_builtins(event_from(obj)).get("extra", extra) == extra


def test_an_event_with_half_a_character_for_a_list_is_kept_whole():
    obj = {"type": "run_start", "tools": "\ud800"}
    assert event_from(obj).payload == obj


@pytest.mark.parametrize(
    "data",
    [
        '{"type":"user","content":"\ud800"}',
        '{"type":"user","content":"\\ud800"}',
        b'{"type":"user","content":"\\ud800"}',
        b'"\xff"',
        '{"x":NaN}',
        "[",
    ],
)
def test_what_is_not_json_is_a_decode_error(data):
    with pytest.raises(msgspec.DecodeError):
        decode_event(data)


@pytest.mark.parametrize("own", [0, "", False, []])
def test_a_falsy_field_named_extra_stays_beside_unknown_ones(own):
    obj = {"type": "user", "extra": own, "other": 1}
    assert json.loads(encode_event(event_from(obj))) == obj


@pytest.mark.parametrize("number", ["1e999", "-1e999", "9" * 5000, f"-{'9' * 5000}"])
@pytest.mark.parametrize(
    ("field", "kind"), [("payload", "extension"), ("args", "call"), ("x", "user"), ("x", "new")]
)
def test_a_number_that_no_double_holds_is_null(kind, field, number):
    event = decode_event(f'{{"type": "{kind}", "{field}": {{"x": {number}}}}}')
    assert json.loads(encode_event(event))[field] == {"x": None}


@pytest.mark.parametrize(
    "beside", ["NaN", "-Infinity", '"\\ud800"', "[" * 100_000 + "]" * 100_000, "1} {"]
)
def test_malformed_json_stays_so_beside_such_a_number(beside):
    with pytest.raises(msgspec.DecodeError):
        decode_event(f'{{"type": "new", "x": 1e999, "y": {beside}}}')


@pytest.mark.parametrize(
    "extra", [{"type": "user", "content": "b"}, {"extra": {"a": 1}}, {"extra": 1, "seq": 2, "c": 3}]
)
def test_a_foreign_field_named_like_ours_never_replaces_it(extra):
    event = decode_event(json.dumps({"type": "respond", "content": "a", "extra": extra}))
    assert (event.content, event.extra) == ("a", extra)
    assert decode_event(encode_event(event)) == event


@pytest.mark.parametrize("kind", [5, None, ["x"], "news"])
def test_a_type_that_is_no_text_is_written_as_it_came(kind):
    obj = {"type": kind, "a": 1}
    assert json.loads(encode_event(decode_event(json.dumps(obj)))) == obj
