"""Reading and writing runs through the public functions, from every kind of source, in constant
memory.
"""

import io
import json
import os
import threading
import tracemalloc

import pytest
from helpers.codec_io import logs

from agent_nb import events as ev
from agent_nb.codecs.convert import convert, convert_files, decode, encode
from agent_nb.codecs.losses import Losses
from agent_nb.codecs.sources import is_live
from agent_nb.errors import UsageError, WireError
from agent_nb.events.log import EventLog
from agent_nb.wire.sse import Frame

LINES = [
    '{"type":"user","content":"hi","timestamp":1.5}',
    '{"type":"respond","content":"yo","timestamp":2.5}',
]
TEXT = "\n".join(LINES) + "\n"


def kinds(events):
    return [e.type for e in events]


# Sources.


@pytest.mark.parametrize(
    "source",
    [
        TEXT,
        TEXT.encode(),
        LINES,
        [line.encode() for line in LINES],
        [json.loads(line) for line in LINES],
        io.BytesIO(TEXT.encode()),
        io.StringIO(TEXT),
        iter([TEXT[:20], TEXT[20:60], TEXT[60:]]),
        "[" + ",".join(LINES) + "]",
        "\ufeff" + TEXT,
        TEXT.replace("\n", "\r\n"),
    ],
    ids=[
        "text",
        "bytes",
        "lines",
        "byte-lines",
        "objects",
        "binary-file",
        "text-file",
        "chunks",
        "array",
        "bom",
        "crlf",
    ],
)
def test_a_run_is_read_from_every_kind_of_source(source):
    assert [(e.type, e.content, e.ts) for e in decode(source, "cogency")] == [
        ("user", "hi", 1.5),
        ("respond", "yo", 2.5),
    ]


def test_a_run_is_read_from_a_file(tmp_path):
    path = tmp_path / "run.ndjson"
    path.write_text(TEXT)
    assert kinds(decode(path)) == kinds(decode(str(path), "cogency")) == ["user", "respond"]


def test_a_missing_file_says_what_a_text_begins_with():
    with pytest.raises(UsageError, match=r"nowhere\.ndjson.*A text to decode begins with"):
        decode("nowhere.ndjson", "cogency")


def test_one_object_over_several_lines_is_an_example_from_a_document():
    example = '{\n  "type": "tool_progress",\n  "toolName": "sh",\n  "data": "x"\n}'
    assert kinds(decode(example, "agent-event")) == ["call", "progress"]


def test_nothing_decodes_to_nothing(name):
    assert decode("", name) == []


def test_an_unknown_codec_is_refused_with_the_known_names():
    with pytest.raises(UsageError, match="cogency, loom, looopy"):
        decode("{}", "morse")


def test_what_was_encoded_decodes_from_the_list_that_encode_gave(foreign, our_run):
    assert decode(encode(our_run, foreign), foreign)[-1].type in ("end", "metric")


def test_events_are_numbered_in_each_run():
    frames = [
        {"session_id": s, "event_id": i, "type": "custom", "value": 1}
        for i in (1, 2)
        for s in ("a", "b")
    ]
    events = decode(frames, "loom")
    assert [(e.run, e.seq) for e in events] == [("a", 1), ("b", 1), ("a", 2), ("b", 2)]


def test_deltas_are_folded_into_their_block():
    events = decode([{"type": "stream", "content": t} for t in ("a", "bc")], "agent-event")
    log = EventLog.of_events(events)
    assert kinds(events) == ["respond"]
    assert [d.text for d in log.deltas()] == ["a", "bc"]


def test_each_run_of_a_source_becomes_a_log_that_has_ended(stem, corpus):
    found = logs(corpus(stem), stem.removesuffix("-export"))
    assert len({log.run for log in found}) == len(found) > 0
    assert all(log.ended for log in found)
    assert all(log[0].seq == 1 for log in found)


def test_losses_of_reading_are_reported():
    losses = Losses()
    decode(TEXT + "oops\n", "cogency", losses=losses)
    assert losses.counts() == {"malformed line": 1}
    with pytest.raises(WireError, match="malformed line"):
        decode(TEXT + "oops\n", "cogency", strict=True)


def test_losses_of_writing_are_reported_and_strict_mode_refuses():
    losses = Losses()
    lost = [ev.Approval(call_id="c"), ev.User(content="x")]
    assert len(encode(lost, "cogency", losses=losses)) == 1
    assert losses.counts() == {"approval": 1}
    with pytest.raises(WireError, match="approval"):
        encode(lost, "cogency", strict=True)


# Conversion.


def converted(text, from_, to, **options):
    out = io.StringIO()
    report = convert(text, out, from_, to, **options)
    return out.getvalue(), report


def test_a_stream_is_translated_between_formats():
    out, report = converted(TEXT, None, "agent-event")
    assert out == 'data: {"type":"stream","content":"yo"}\n\ndata: {"type":"final"}\n\n'
    assert (report.source, report.events, report.texts) == ("cogency", 3, 2)
    assert report.written.counts() == {"user": 1}


def test_the_framing_can_be_chosen():
    assert (
        converted(TEXT, "cogency", "agent-event", framing="ndjson")[0]
        == '{"type":"stream","content":"yo"}\n{"type":"final"}\n'
    )


def test_a_conversion_there_and_back_is_the_same(stem, corpus, parsed):
    name = stem.replace("-export", ":export")
    text = corpus(stem)
    canonical, _ = converted(text, name, "canonical")
    assert parsed(converted(canonical, "canonical", name)[0]) == parsed(text)
    assert parsed(converted(text, name, name)[0]) == parsed(text)


def test_canonical_output_is_numbered_ends_every_run_and_has_no_deltas(stem, corpus):
    out, _ = converted(corpus(stem), stem.replace("-export", ":export"), "canonical")
    runs = {}
    for line in out.splitlines():
        event = json.loads(line)
        assert event["type"] != "delta"
        runs.setdefault(event["run"], []).append(event)
    for events in runs.values():
        assert [e["seq"] for e in events] == list(range(1, len(events) + 1))
        assert [e["type"] for e in events if not e.get("span")].count("end") == 1
        assert events[-1]["type"] == "end"
        calls = [e["call_id"] for e in events if e["type"] == "call"]
        assert sorted(e["call_id"] for e in events if e["type"] == "result") == sorted(calls)


def test_a_stream_that_broke_off_is_ended_for_the_client():
    out, _ = converted(
        'data: {"type":"stream","content":"par"}\n\n', None, "looopy:document", framing="ndjson"
    )
    assert [json.loads(line)["kind"] for line in out.splitlines()] == [
        "content-delta",
        "task-status",
    ]


@pytest.mark.few(17)
def test_every_format_can_be_translated_into_every_other(stem, name, corpus):
    out, report = converted(corpus(stem), stem.replace("-export", ":export"), name)
    assert out
    assert not report.read


def test_strict_conversion_stops_at_the_first_loss():
    with pytest.raises(WireError, match="user"):
        converted(TEXT, "cogency", "agent-event", strict=True)


def test_each_line_of_a_pipe_is_passed_on_before_the_next_is_waited_for():
    read, write = os.pipe()
    seen = threading.Event()

    class Out(io.StringIO):
        def flush(self):
            if "one" in self.getvalue():
                seen.set()

    with os.fdopen(read, "rb") as reader, os.fdopen(write, "wb", buffering=0) as writer:
        thread = threading.Thread(target=lambda: convert(reader, Out(), "cogency", "agent-event"))
        thread.start()
        writer.write(b'{"type":"respond","content":"one"}\n')
        passed_on = seen.wait(20)
        writer.close()
        thread.join(20)
    assert passed_on


@pytest.mark.long
def test_memory_does_not_grow_with_the_stream(name):
    samples = {
        "cogency": '{"type":"think","content":"x"}\n{"type":"respond","content":"y"}',
        "agent-event": '{"type":"thought","content":"x"}',
        "loom": '{"session_id":"s","event_id":%d,"type":"custom","value":1}',
        "looopy": '{"kind":"thought-stream","taskId":"t","content":"x"}',
    }
    line = samples.get(name, '{"type":"think","content":"x","seq":%d,"run":"r"}')

    def peak(count):
        lines = ((line % i if "%d" in line else line) + "\n" for i in range(1, count + 1))
        tracemalloc.start()
        convert((part for part in lines), _Null(), name, "canonical")
        high = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return high

    peak(100)
    # the least of three: other threads of the process allocate, too
    small, large = (min(peak(count) for _ in range(3)) for count in (2_000, 6_000))
    assert large < small * 1.5 + 100_000


class _Null(io.StringIO):
    def write(self, text):
        return len(text)


# The command.


def test_the_command_translates_files(tmp_path):
    source, target = tmp_path / "a.ndjson", tmp_path / "b.sse"
    source.write_text(TEXT)
    report = convert_files(str(source), str(target), None, "agent-event")
    assert target.read_text().endswith('data: {"type":"final"}\n\n')
    assert "cogency -> agent-event: 3 events, 2 written" in str(report)
    assert "user: the client knows what was asked" in str(report)


def test_the_command_refuses_a_file_it_cannot_open(tmp_path):
    with pytest.raises(UsageError, match="No such file"):
        convert_files(str(tmp_path / "none"), "-", None, "loom")


def test_the_command_keeps_standard_output_open(tmp_path, capsys):
    source = tmp_path / "a.ndjson"
    source.write_text(TEXT)
    convert_files(str(source), "-", "cogency", "cogency")
    print("still there")
    assert capsys.readouterr().out.endswith("still there\n")


def test_decode_takes_the_items_that_watch_takes():
    stream = [
        Frame(event="message", data='{"type": "thought", "content": "Look."}'),
        "data: " + json.dumps({"type": "stream", "content": "One."}) + "\n\n",
        {"type": "final"},
    ]
    assert [e.type for e in decode(stream, "agent-event")] == ["think", "respond", "end"]
    ours = [ev.User(content="Hi", run="r"), ev.Respond(content="Hello", run="r")]
    assert [(e.type, e.seq) for e in decode(ours)] == [("user", 1), ("respond", 2)]


@pytest.mark.parametrize("source", ["https://example.com/run", 7])
def test_a_source_that_cannot_be_decoded_is_refused(source):
    with pytest.raises(UsageError, match="cannot be decoded"):
        decode(source)


@pytest.mark.parametrize("source", ["a\0b", "~no-such-user/run.ndjson"])
def test_a_path_that_names_no_file_is_refused_with_a_reason(source):
    with pytest.raises(UsageError, match="A text to decode begins with"):
        decode(source)
    assert not is_live(source, follow=False)


@pytest.mark.parametrize(("text", "to"), [(TEXT, "morse"), ("a\n", "loom"), ('{"a":1}\n', "loom")])
def test_a_file_stays_as_it_was_if_nothing_can_be_written(tmp_path, text, to):
    source, target = tmp_path / "a.ndjson", tmp_path / "b.ndjson"
    source.write_text(text)
    target.write_text("of great worth")
    with pytest.raises(UsageError):
        convert_files(str(source), str(target), None, to)
    assert target.read_text() == "of great worth"


def test_a_run_without_lines_empties_the_file(tmp_path):
    source, target = tmp_path / "a.ndjson", tmp_path / "b.ndjson"
    source.write_text("")
    target.write_text("old")
    convert_files(str(source), str(target), "cogency", "loom")
    assert target.read_text() == ""
