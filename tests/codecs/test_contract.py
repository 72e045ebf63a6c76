"""What every codec keeps: the lines it read, in any chunking; the kinds it says it carries; and the
promise to lose nothing in silence.
"""

import json
import random

import msgspec
import pytest
from helpers.map_runs import map_run
from helpers.streams import stored

from agent_nb import events as ev
from agent_nb.codecs.base import DETAILS
from agent_nb.codecs.detect import detect, named
from agent_nb.codecs.foreign_stream import ForeignStream
from agent_nb.errors import UsageError, WireError
from agent_nb.events import TYPES, Event
from agent_nb.events.event_json import encode_event

READS = {"loom-export": "loom:export"}


def per_line(text):
    return [
        part
        for part in (text.split("\n\n") if not text.startswith("{") else text.split("\n"))
        if part.strip()
    ]


# Foreign lines come out as they went in.


def test_a_corpus_comes_out_as_it_went_in_when_translated_live(stem, tool, corpus, parsed, joined):
    with_codec = tool(READS.get(stem, stem))
    text = corpus(stem)
    assert parsed(joined(with_codec.write(with_codec.read(text)))) == parsed(text)
    assert not with_codec.decoder.losses
    assert not with_codec.encoder.losses


def test_a_corpus_comes_out_as_it_went_in_from_stored_events(stem, tool, corpus, parsed, joined):
    with_codec = tool(READS.get(stem, stem))
    text = corpus(stem)
    assert parsed(joined(with_codec.write(stored(with_codec.read(text))))) == parsed(text)


def test_a_corpus_survives_the_canonical_form(stem, tool, corpus, parsed, joined):
    with_codec, canonical = tool(READS.get(stem, stem)), tool("canonical")
    text = corpus(stem)
    back = canonical.read(joined(canonical.write(stored(with_codec.read(text)))))
    assert parsed(joined(with_codec.write(back))) == parsed(text)


def test_every_line_of_a_corpus_comes_out_alone(stem, tool, corpus, parsed, joined):
    with_codec = tool(READS.get(stem, stem))
    for line in per_line(corpus(stem)):
        alone = line + ("\n" if line.startswith("{") else "\n\n")
        assert parsed(joined(with_codec.write(stored(with_codec.read(alone))))) == parsed(alone)


def test_corpora_lose_nothing_in_strict_mode(stem, tool, corpus):
    with_codec = tool(READS.get(stem, stem))
    with_codec.write(with_codec.read(corpus(stem), strict=True), strict=True)


def test_unknown_fields_and_kinds_of_every_line_come_out(stem, tool, corpus, parsed, joined):
    with_codec = tool(READS.get(stem, stem))
    extra = {"zz_unknown": {"deep": [1, 1.0, None, "é"]}}
    lines = [
        {**obj, **extra} if len(obj) > 1 or "type" in obj else obj
        for _, obj, _ in parsed(corpus(stem))
        if "kind" not in obj
    ]
    lines.insert(0, {"type": "zz_kind", "kind": "zz-kind", **extra})
    text = "".join(json.dumps(line) + "\n" for line in lines)
    assert [
        o for _, o, _ in parsed(joined(with_codec.write(with_codec.read(text), framing="ndjson")))
    ] == lines


# Chunking, truncation, garbage.


def test_events_do_not_depend_on_the_chunking(stem, tool, corpus):
    with_codec = tool(READS.get(stem, stem))
    data = corpus(stem).encode()
    whole = with_codec.read(data)
    assert with_codec.read([data[i : i + 1] for i in range(len(data))]) == whole
    rng = random.Random(1)
    for _ in range(25):
        cuts = sorted(rng.sample(range(1, len(data)), 7))
        assert (
            with_codec.read(
                [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True)]
            )
            == whole
        )


def test_events_do_not_depend_on_line_ends(stem, tool, corpus):
    with_codec = tool(READS.get(stem, stem))
    text = corpus(stem)
    assert with_codec.read(text.replace("\n", "\r\n")) == with_codec.read("\ufeff" + text)


def test_interleaved_decoders_do_not_disturb_each_other(stem, tool, corpus):
    codec = tool(READS.get(stem, stem)).codec
    data = corpus(stem).encode()
    whole = tool(READS.get(stem, stem)).read(data)
    one, two = codec.decoder(), codec.decoder()
    first, second = [], []
    for i in range(0, len(data), 13):
        first += one.feed(data[i : i + 13])
        second += two.feed(data[i : i + 13])
    assert first + one.close() == whole == second + two.close()


def test_a_stream_cut_anywhere_closes_its_blocks(stem, tool, corpus):
    with_codec = tool(READS.get(stem, stem))
    data = corpus(stem).encode()
    for cut in range(0, len(data), 17):
        events = with_codec.read(data[:cut])
        opened = {(e.run, e.block) for e in events if e.type == "delta"}
        assert opened <= {(e.run, _block(e)) for e in stored(events)}
        ended = set()
        for event in events:
            assert event.run not in ended or event.type == "delta", (
                "an event came after the end of its run"
            )
            if event.type == "end" and not event.span:
                ended.add(event.run)


def _block(event):
    """A user's message has no field for the id of its block; its note has."""
    notes = [
        n["block"] for n in (event.extra or {}).values() if isinstance(n, dict) and "block" in n
    ]
    return getattr(event, "block", "") or "".join(notes)


@pytest.mark.few(20)
@pytest.mark.parametrize(
    "garbage",
    [
        "not json",
        "nan",
        "[1,2]",
        '"text"',
        "{",
        '{"a":NaN}',
        '{"type":"\\ud800"}',
        "[" * 50_000,
        '{"a":' * 50_000,
        "\x00",
        "\ufffd",
    ],
    ids=[
        "words",
        "nan",
        "list",
        "string",
        "open",
        "NaN",
        "surrogate",
        "deep-list",
        "deep-object",
        "nul",
        "replacement",
    ],
)
def test_garbage_between_lines_is_counted_and_survived(name, garbage, tool):
    with_codec = tool(name)
    line = '{"type":"zz","kind":"zz"}\n'
    events = with_codec.read(line + garbage + "\n" + line)
    assert len(stored(events)) == 2
    assert with_codec.decoder.losses.counts() == {"malformed line": 1}
    with pytest.raises(WireError, match="malformed line"):
        with_codec.read(line + garbage + "\n", strict=True)


def test_values_nested_as_deep_as_can_be_read_never_raise(name, tool):
    shapes = {
        "cogency": '{"type":"result","payload":{"outcome":"o","content":%s,"error":false}}',
        "loom": '{"Values":%s}',
        "agent-event": '{"type":"tool_progress","toolName":"x","data":%s}',
        "looopy": '{"kind":"tool-complete","toolCallId":"c","result":%s}',
    }
    line = shapes.get(name, '{"type":"state","payload":%s}')
    for depth in (*range(100, 900, 100), *range(900, 1010, 2)):
        events = tool(name).read(line % ("[" * depth + "]" * depth) + "\n")
        for target in ("canonical", "cogency", "loom", "agent-event", "looopy"):
            tool(target).write(events)


def test_bytes_that_are_no_utf8_are_survived(name, tool):
    with_codec = tool(name)
    events = with_codec.read(
        b'{"type":"zz","kind":"zz","x":"\xff\xfe"}\n{"type":"zz","kind":"zz"}\n'
    )
    assert stored(events)[-1].type in ("extension", "unknown")


def test_objects_of_any_shape_are_survived(foreign, tool):
    rng = random.Random(7)
    values = [None, True, 0, -1, 1.5, "", "x", [], [1], {}, {"a": 1}, {"error": 5}, '{"name":[]}']
    keys = _kinds_of("keys")
    kinds = _kinds_of(foreign)
    for _ in range(1500):
        obj = {k: rng.choice(values) for k in rng.sample(keys, rng.randint(0, 8))}
        if rng.random() < 0.8:
            obj["kind" if foreign == "looopy" else "type"] = rng.choice(kinds)
        obj.pop("event_id", None)
        if "reply" in obj and not isinstance(obj["reply"], str):
            del obj["reply"]
        with_codec = tool(foreign)
        events = with_codec.read(json.dumps(obj) + "\n")
        if with_codec.decoder.losses:
            continue
        assert with_codec.lines(stored(events)) == [obj]


def test_streams_of_anything_end_once_and_can_be_written_in_any_format(foreign, tool):
    rng = random.Random(5)
    keys, kinds = _kinds_of("keys"), _kinds_of(foreign)
    values = [
        None,
        True,
        0,
        1.5,
        1e300,
        10**30,
        "",
        "x",
        "c1",
        [],
        ["agent:a"],
        {"a": 1},
        {"state": "failed"},
        {"error": "e"},
    ]
    for _ in range(150):
        objs = [
            {k: rng.choice(values) for k in rng.sample(keys, rng.randint(0, 7))} for _ in range(10)
        ]
        for obj in objs:
            obj["kind" if foreign == "looopy" else "type"] = rng.choice(kinds)
        events = tool(foreign).read("".join(json.dumps(o) + "\n" for o in objs))
        ended = set()
        for event in events:
            assert event.run not in ended or event.type == "delta"
            if event.type == "end" and not event.span:
                ended.add(event.run)
        for target in ("canonical", "cogency", "loom", "loom:export", "agent-event", "looopy"):
            for some in (events, stored(events)):
                tool(target).write(some)


def _kinds_of(name):
    names = {
        "keys": "type kind content payload id call_id name arguments toolName toolArgs data result reply timestamp event_id session_id "
        "node_id state status delta metadata path step total callId messageId toolCallId toolCallName runId role snapshot stepName input "
        "errorText inputTextDelta output preliminary",
        "cogency": "user think call execute result respond end metric error interrupt cancelled",
        "loom": "run_start node_enter node_exit message_chunk thought_chunk usage values updates custom checkpoint tool_call tool_start "
        "tool_output tool_end tool_approval error",
        "agent-event": "thought tool_call tool_progress tool_result progress result stream final error start cancelled tool_error",
        "ag-ui": "RUN_STARTED RUN_FINISHED RUN_ERROR STEP_STARTED STEP_FINISHED TEXT_MESSAGE_START TEXT_MESSAGE_CONTENT "
        "TEXT_MESSAGE_END TEXT_MESSAGE_CHUNK TOOL_CALL_START TOOL_CALL_ARGS TOOL_CALL_END TOOL_CALL_CHUNK TOOL_CALL_RESULT REASONING_MESSAGE_START "
        "REASONING_MESSAGE_CONTENT REASONING_MESSAGE_END REASONING_MESSAGE_CHUNK STATE_SNAPSHOT STATE_DELTA MESSAGES_SNAPSHOT "
        "SUBAGENT_STARTED SUBAGENT_ERROR CUSTOM",
        "ui-message": "start finish abort error start-step finish-step message-metadata text-start text-delta text-end reasoning-start "
        "reasoning-delta reasoning-end tool-input-start tool-input-delta tool-input-available tool-input-error tool-output-available "
        "tool-output-error tool-output-denied tool-approval-request data-x",
        "looopy": "task-created task-status task-complete content-delta content-complete thought-stream tool-call tool-start tool-progress "
        "tool-complete tool-input-required llm-usage message internal:llm-call internal:checkpoint subtask-created",
    }
    return names.get(name, "x").split()


# Our own events.

SAMPLES: dict[str, list[Event]] = {
    "run_start": [
        ev.RunStart(
            agent="helper", model="lab/m", dialect="xml", tools=("sh",), settings={"hash": "h"}
        )
    ],
    "user": [
        ev.User(content="What is in a?"),
        ev.User(content="see", attachments=({"media_type": "image/png", "data": "AA"},)),
    ],
    "think": [
        ev.Think(content="hm\n"),
        ev.Think(content="x", attributes={"thought_type": "planning", "confidence": 0.5}),
    ],
    "call": [
        ev.Call(call_id="c1", name="sh", args={"c": "ls \u2028 é"}),
        ev.Call(call_id="c1", name="sh", args={}, raw_args='{"a'),
    ],
    "approval": [
        ev.Approval(call_id="c1", args={"c": 1}),
        ev.Approval(call_id="c1", stage="decided", decision="allow", by="click"),
    ],
    "execute": [ev.Execute(batch="b", calls=("c1",))],
    "started": [ev.Started(call_id="c1", name="sh")],
    "progress": [
        ev.Progress(call_id="c1", text="out\n"),
        ev.Progress(call_id="c1", fraction=0.65),
        ev.Progress(call_id="c1", fraction=1 / 3, message="m"),
        ev.Progress(call_id="c1", data={"rows": [1]}),
        ev.Progress(call_id="c1", message="only words"),
        ev.Progress(call_id="c1", data=[1]),
    ],
    "result": [
        ev.Result(call_id="c1", name="sh", content="fine"),
        ev.Result(call_id="c1", name="sh", content="bad", status="error"),
        ev.Result(call_id="c1", name="sh", content={"rows": [1]}, duration=1.25),
        ev.Result(call_id="c1", name="sh", content="", status="denied"),
        ev.Result(call_id="c1", name="sh", content="x", display={"text/plain": "short"}),
        ev.Result(
            call_id="c1",
            name="sh",
            content="x",
            attachments=({"media_type": "image/png", "data": "AA"},),
        ),
    ],
    "respond": [
        ev.Respond(content="an answer"),
        ev.Respond(content="pieces", block="1.1", chunks="DADAAA"),
        ev.Respond(content="cut", incomplete=True),
    ],
    "metric": [
        ev.Metric(step=ev.Counts(input=5, output=3), total=ev.Counts(input=5, output=3)),
        ev.Metric(step=ev.Counts(cost=0.5)),
    ],
    "node": [
        ev.Node(name="plan", phase="enter", span="s1"),
        ev.Node(name="plan", phase="exit", span="s1", result="error: no"),
    ],
    "state": [
        ev.State(kind="values", payload={"a": 1}),
        ev.State(kind="checkpoint", payload={"n": 1}),
        ev.State(kind="odd", payload=1),
    ],
    "extension": [ev.Extension(namespace="elsewhere", name="thing", payload={"a": 1})],
    "error": [ev.Error(code="provider", message="went wrong", raw="raw")],
    "interrupt": [ev.Interrupt(reason="timeout", detail="60 s")],
    "end": [
        ev.End(status=s, finish_reason=r)
        for s, r in (("ok", ""), ("ok", "stop"), ("error", ""), ("interrupted", ""), ("limit", "x"))
    ],
}
assert SAMPLES.keys() == TYPES.keys() - {"delta"}
#: What a sample needs around it to mean anything.
BEFORE = {
    "result": [ev.Call(call_id="c1", name="sh", args={})],
    "progress": [ev.Call(call_id="c1", name="sh", args={})],
    "started": [ev.Call(call_id="c1", name="sh", args={})],
    "approval": [ev.Call(call_id="c1", name="sh", args={})],
}
AFTER = {
    "think": [ev.End()],
    "respond": [ev.End()],
    "error": [ev.End(status="error")],
    "interrupt": [ev.End(status="interrupted")],
}
ENVELOPE = set(Event.__struct_fields__)
# fields of fixed words
WORDS = {"status", "phase", "stage", "kind", "decision", "reason", "namespace"}
# told by the call; an entered node has no result
DERIVED = {("started", "name"), ("result", "name"), ("node", "result")}
CASES = [(kind, i) for kind, samples in SAMPLES.items() for i in range(len(samples))]


@pytest.mark.few(71)
@pytest.mark.parametrize(("kind", "number"), CASES)
def test_what_no_loss_is_reported_for_comes_back_equal(name, kind, number, tool, joined):
    with_codec = tool(name)
    sample = SAMPLES[kind][number]
    texts = with_codec.write([*BEFORE.get(kind, []), sample, *AFTER.get(kind, [])])
    lost = {loss.what: loss for loss in with_codec.encoder.losses}
    if kind in lost:
        assert lost[kind].reason
        return
    back = [e for e in stored(with_codec.read(joined(texts))) if e.type == kind]
    partly = {
        what for what, loss in lost.items() if what.startswith(f"{kind}.") and not loss.detail
    }
    if not back:
        assert partly, "the event is gone, and no loss reports it"
        return
    assert len(back) == 1
    blank = type(sample)()
    for field in set(type(sample).__struct_fields__) - ENVELOPE - DETAILS:
        expected = getattr(sample, field)
        if f"{kind}.{field}" not in partly and not (partly and expected == getattr(blank, field)):
            assert getattr(back[0], field) == expected, field


@pytest.mark.few(61)
@pytest.mark.parametrize(("kind", "number"), CASES)
def test_a_field_with_no_place_is_counted_and_refused_in_strict_mode(foreign, kind, number, tool):
    """A token in each text field of a sample is either in the output or in the report, and strict
    mode refuses what is in the report.
    """
    with_codec = tool(foreign)
    sample = SAMPLES[kind][number]
    for field in type(sample).__struct_fields__:
        value = getattr(sample, field)
        if field in ENVELOPE | DETAILS | WORDS or not isinstance(value, str):
            continue
        marked = msgspec.structs.replace(sample, **{field: "zq-token"})
        events = [*BEFORE.get(kind, []), marked, *AFTER.get(kind, [])]
        shown = "zq-token" in "".join(with_codec.write(events))
        losses = with_codec.encoder.losses.counts()
        reported = kind in losses or any(what.startswith(f"{kind}.{field}") for what in losses)
        assert shown or reported or (kind, field) in DERIVED, field
        if losses:
            with pytest.raises(WireError, match="Leave strict mode"):
                with_codec.write(events, strict=True)
        if kind in losses:
            with pytest.raises(WireError, match=kind):
                with_codec.write(events, strict=True)


def test_the_kinds_a_codec_cannot_write_are_listed_with_a_reason(foreign):
    codec, _ = named(foreign)
    for kind in TYPES.keys() - {"delta"} - codec.carries.keys():
        assert codec.lossy.get(kind), f"{foreign} does not say why it cannot carry {kind}"


def test_a_kind_without_a_place_is_counted_as_often_as_it_came(foreign, tool):
    with_codec = tool(foreign)
    lost = ev.Extension(namespace="elsewhere", name="thing", payload={"secret": "zq-token"})
    assert "zq-token" not in "".join(with_codec.write([lost, lost, lost]))
    assert with_codec.encoder.losses.counts() == {"extension": 3}


def test_no_canonical_json_travels_inside_a_foreign_field(foreign, tool):
    with_codec = tool(foreign)
    events = [
        msgspec.structs.replace(e, seq=1, ts=1.5, run="r", turn=1)
        for samples in SAMPLES.values()
        for e in samples
    ]
    text = "".join(with_codec.write(events))
    unescaped = text.replace("\\", "")
    for event in events:
        assert encode_event(event).decode() not in unescaped
    assert '"settings"' not in text
    assert '"raw_args"' not in text
    assert '"attachments"' not in text


def test_live_deltas_are_written_once(foreign, tool):
    with_codec = tool(foreign)
    live = [ev.Delta(of="respond", block="b", text=t) for t in ("Hel", "lo")]
    closed = ev.Respond(content="Hello", block="b", chunks="DACA")
    assert with_codec.lines([*live, closed]) == with_codec.lines([closed])


def test_two_streams_of_one_codec_are_written_apart(foreign, tool):
    codec = tool(foreign).codec
    run = [ev.RunStart(), ev.User(content="a"), ev.Respond(content="b"), ev.End()]
    alone = codec.encoder()
    expected = [t for e in run for t in alone.feed(e)] + alone.close()
    one, two = codec.encoder(), codec.encoder()
    first, second = [], []
    for event in run:
        first += one.feed(event)
        second += two.feed(event)
    assert first + one.close() == expected == second + two.close()


# The contract's edges.


def test_the_format_of_a_corpus_is_detected(stem, corpus):
    assert detect(corpus(stem)).name == READS.get(stem, stem).partition(":")[0]


def test_an_unclear_format_is_an_error_that_lists_the_formats():
    with pytest.raises(UsageError, match="agent-event, canonical, cogency"):
        detect('{"hello":"world"}\n')


@pytest.mark.parametrize("comment", [": ping\n\n", ":\r\n\r\n", "\n", ": a\n: b\n"])
def test_comments_before_the_first_event_decide_no_format(comment):
    stream = ForeignStream()
    for _ in range(100):
        assert stream.feed(comment.encode()) == []
    assert not stream._held  # a server may wait for days
    line = json.dumps({"seq": 1, "ts": 1.0, "run": "r", "type": "respond", "content": "hi"})
    events = [*stream.feed(f"data: {line}\n\n".encode()), *stream.close()]
    assert [(e.type, e.content) for e in events] == [("respond", "hi")]


@pytest.mark.parametrize("kind", [["string", "null"], {"a": 1}, None, 1.5])
@pytest.mark.parametrize("key", ["type", "event", "kind"])
def test_a_line_whose_type_is_not_a_text_has_no_clear_format(key, kind):
    with pytest.raises(UsageError, match="The format is not clear"):
        detect(json.dumps({key: kind}) + "\n")


def test_an_unknown_form_is_refused_with_the_known_ones(name):
    with pytest.raises(UsageError, match="no form 'morse'"):
        named(f"{name}:morse")


def test_an_unknown_framing_is_refused(name):
    with pytest.raises(UsageError, match="framing"):
        named(name)[0].encoder(framing="smoke")


def test_every_codec_has_a_media_type_and_a_title(name):
    codec, _ = named(name)
    assert codec.media_type in ("application/x-ndjson", "text/event-stream")
    assert codec.title


def test_the_rows_of_a_map_and_its_live_counts_reach_no_other_format(foreign, tool):
    with_codec = tool(foreign)
    made = map_run()
    for events in (made.seen, list(made.log)):
        wrote = joined_text(with_codec.write(events))
        assert "row1" not in wrote
        assert "asking" not in wrote


def joined_text(parts):
    return "".join(p if isinstance(p, str) else json.dumps(p, default=str) for p in parts)
