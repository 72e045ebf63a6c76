"""The canonical codec: everything comes back, fast way or slow."""

import json

import pytest

from agent_nb import events as ev
from agent_nb.events.event_json import encode_event

RUN = [
    ev.User(seq=1, ts=1.5, run="r", content="é \u2028"),
    ev.Call(seq=2, run="r", call_id="c", name="n", args={"a": [1, None]}),
    ev.Respond(seq=3, run="r", content="x", extra={"cogency": {"fields": {"k": 1}}}),
    ev.Unknown(
        seq=4,
        run="r",
        kind="newer",
        payload={"type": "newer", "seq": 4, "run": "r", "field": {"deep": True}},
    ),
    ev.End(seq=5, run="r"),
]


@pytest.mark.parametrize("framing", ["ndjson", "sse"])
def test_every_event_comes_back_equal(framing, tool, joined):
    canonical = tool("canonical")
    assert canonical.read(joined(canonical.write(RUN, framing=framing))) == RUN


def test_a_frames_id_is_the_events_number(tool):
    canonical = tool("canonical")
    assert canonical.write([ev.User(seq=7), ev.Delta(text="x")], framing="sse") == [
        'id: 7\ndata: {"type":"user","seq":7}\n\n',
        'data: {"type":"delta","text":"x"}\n\n',
    ]


def test_blank_lines_and_two_events_on_a_line_differ_in_any_chunking(tool):
    text = b'{"type":"user"}\n\n{"type":"end"} {"type":"end"}\n{"type":\n"end"}\n{"type":"end"}'
    whole = tool("canonical")
    events = whole.read(text)
    single = tool("canonical")
    assert single.read([text[i : i + 1] for i in range(len(text))]) == events
    assert [e.type for e in events] == ["user", "end"]
    assert whole.decoder.losses.counts() == single.decoder.losses.counts() == {"malformed line": 3}


@pytest.mark.parametrize(
    "text",
    [
        b'{"type":"user"}{"type":"user"}\n\n',
        b'{"type":"user"}{"type":"end"}\n{"type":\n"end"}\n{"type":"end"}',
    ],
    ids=["blank line", "broken line"],
)
def test_as_many_events_as_lines_need_not_be_one_a_line(text, tool):
    whole, single = tool("canonical"), tool("canonical")
    assert whole.read(text) == single.read([text[i : i + 1] for i in range(len(text))])
    assert whole.decoder.losses.counts() == single.decoder.losses.counts()


@pytest.mark.parametrize("end", [b"\n", b""], ids=["ended", "cut off"])
def test_a_line_above_the_limit_is_skipped_to_its_end_and_is_one_loss(end, tool, monkeypatch):
    monkeypatch.setattr("agent_nb.codecs.canonical.LINE_LIMIT", 30)
    small, large = b'{"type":"end"}\n', b'{"type":"user","content":"%s"}' % (b"x" * 200)
    text = small + large + end + (small if end else b"")
    single = tool("canonical")
    events = single.read([text[i : i + 1] for i in range(len(text))])
    assert [event.type for event in events] == ["end", "end"] if end else ["end"]
    assert single.decoder.losses.counts() == {"malformed line": 1}


def test_objects_are_read_as_they_are(tool):
    decoder = tool("canonical").codec.decoder()
    assert decoder.read(json.loads(encode_event(RUN[1]))) == [RUN[1]]


def test_encoding_loses_nothing(tool):
    canonical = tool("canonical")
    canonical.write(RUN, strict=True)
    assert not list(canonical.encoder.losses)


@pytest.mark.parametrize("framing", ["ndjson", "sse"])
def test_half_a_character_is_written_as_a_question_mark(framing, tool, joined):
    written = joined(tool("canonical").write([ev.User(content="a\ud800b")], framing=framing))
    assert "a?b" in str(written)
