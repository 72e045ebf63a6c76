"""Runs become records and come back."""

import hashlib
import json
import math
import shutil
import subprocess

import msgspec
import pytest
from helpers.examples import count_examples
from helpers.paths import EXAMPLES
from helpers.record_schema import COUNT, FILL, PATH, load_schema, write_schema
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_nb import decode, encode
from agent_nb import events as e
from agent_nb.events.completion import complete_log
from agent_nb.events.event_json import decode_event, event_from, to_builtins
from agent_nb.events.log import EventLog
from agent_nb.notebook.files.verdicts import list_leaks
from agent_nb.record.fingerprint import Digests
from agent_nb.record.match import Match
from agent_nb.record.notebook_file import NotebookRuns
from agent_nb.record.packing import LARGE, Payloads
from agent_nb.record.record import Provenance, events_of, log_of, record_hash, run_record
from agent_nb.record.signing import UserKey, is_intact
from agent_nb.record.verify import check_record
from agent_nb.view.state.fold import RunView
from agent_nb.wire.json_text import encode_canonical

TEXT = st.text(max_size=20)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT,
    lambda v: st.lists(v, max_size=3) | st.dictionaries(TEXT, v),
)
FIELDS = st.dictionaries(
    st.sampled_from(["content", "args", "chunks", "turn", "note", "raw_args", "display"]),
    JSON,
    max_size=4,
)


def saved(record):
    """Return a record as a front end saves it: keys sorted, integral floats as integers."""
    text = json.dumps(record, sort_keys=True, indent=1, ensure_ascii=False)
    return json.loads(
        text, parse_float=lambda s: int(float(s)) if float(s).is_integer() else float(s)
    )


def test_the_events_come_back_exactly(log):
    assert events_of(saved(run_record(log))) == list(log)


def test_the_deltas_come_back_with_their_times(log):
    assert list(log_of(saved(run_record(log))).deltas()) == list(log.deltas())


def test_ndjson_is_the_same_byte_for_byte(log):
    assert log_of(saved(run_record(log))).to_ndjson() == log.to_ndjson()


def test_a_record_is_the_same_each_time(log):
    assert run_record(log) == run_record(log)


def test_saving_does_not_change_the_hash(log):
    record = run_record(log)
    assert record_hash(saved(record)) == record["hash"]


def test_any_changed_character_changes_the_hash(log):
    record = run_record(log)
    changed = json.loads(json.dumps(record).replace("base + 2", "base + 3"))
    assert record_hash(changed) != record["hash"]


@settings(max_examples=count_examples(50))
@given(st.lists(st.tuples(st.sampled_from([*e.TYPES, "novel"]), FIELDS), max_size=6))
def test_any_events_come_back(objects):
    events = EventLog.of_events(
        event_from({"type": t, **f}) for t, f in objects if t not in ("delta", "end")
    )
    back = events_of(saved(run_record([*events, e.End(seq=len(events) + 1)], home="")))
    want = [{**to_builtins(x), "chunks": None} for x in events]
    assert [{**to_builtins(x), "chunks": None} for x in back[:-1]] == want


@given(JSON)
def test_nothing_in_a_foreign_record_raises(value):
    for record in (
        value,
        {"events": value},
        {"events": [value, {"type": value}]},
        {"id": value, "format": value, "cut": value},
    ):
        events_of(record)
        check_record(record)


@pytest.mark.parametrize("events", [True, 7, 1e999, {"a": 1}, "words", ["\ud800"]])
def test_what_is_no_list_of_events_is_a_run_without_any(log, events):
    record = {**run_record(log), "events": events}
    assert Match.find([record], Digests(prompt="x")).record is None
    assert any("not a record" in problem for problem in check_record(record))


@pytest.mark.parametrize("ts", [math.inf, -math.inf, math.nan, 1e308, -1e308])
def test_what_is_no_time_is_none(log, ts):
    record = run_record(log)
    record["events"][0]["ts"] = ts
    assert [event.ts for event in events_of(record)][:2] == [0.0, log[1].ts]


@pytest.mark.parametrize("number", [math.inf, -math.inf, math.nan])
def test_a_field_that_is_infinite_has_its_default(number):
    progress = {"type": "progress", "call_id": "c", "fraction": number, "message": "x"}
    (event, *_) = events_of({"events": [progress]})
    assert event == e.Progress(call_id="c", message="x", seq=1)


def test_nan_inside_a_payload_is_not_the_null_beside_it():
    """Records hold a mark for nan; another writer's record may hold nan itself."""
    state = {"type": "state", "kind": "x", "payload": {"none": None, "nan": math.nan}}
    (event, *_) = events_of({"events": [state]})
    assert event.payload["none"] is None
    assert math.isnan(event.payload["nan"])


def test_events_share_nothing_with_their_record():
    call = {"type": "call", "call_id": "c", "name": "f", "args": {"rows": [1]}}
    events_of({"events": [call]})[0].args["rows"].append(2)
    assert call["args"] == {"rows": [1]}


def test_a_record_of_a_later_version_is_read():
    record = {
        "format": 9,
        "id": "r",
        "events": [{"type": "user", "content": "hi", "mood": "new"}, {"type": "novel", "x": 1}],
    }
    user, novel, *_ = events_of(record)
    assert (user.content, user.extra) == ("hi", {"mood": "new"})
    assert (novel.kind, novel.payload["x"]) == ("novel", 1)


def test_a_run_without_end_is_closed_as_interrupted(new_log):
    open_log = new_log(end=False)[:6]
    assert open_log[-1].type == "execute"
    *_, result, interrupt, end = complete_log(open_log)
    assert (result.type, result.call_id, result.status) == ("result", "call_1_1", "cancelled")
    assert (interrupt.type, end.status) == ("interrupt", "interrupted")
    assert [x.seq for x in complete_log(open_log)] == list(range(1, 10))


def test_arguments_are_not_stored_twice(log):
    text = json.dumps(run_record(log))
    assert text.count("that makes this longer") == 1


def test_arguments_that_differ_from_their_text_are_stored_as_they_are():
    raw = '{"code": "' + "x" * 80 + '", "code": "y"}'
    call = e.Call(seq=1, call_id="c", raw_args=raw, args={"code": "z"})
    assert events_of(run_record([call, e.End(seq=2)]))[0] == call


def test_large_payloads_are_stored_once_beside_the_run(new_log):
    record = run_record(new_log(turns=4, result="y" * (LARGE + 1)))
    bare, payloads = Payloads.detach(record)
    assert len(payloads) == 1
    assert len(json.dumps(bare)) < 20_000
    assert events_of(bare, payloads) == list(new_log(turns=4, result="y" * (LARGE + 1)))


def test_attach_undoes_detach_and_takes_only_needed_payloads(new_log):
    record = run_record(new_log(result="y" * (LARGE + 1)))
    bare, payloads = Payloads.detach(record)
    assert Payloads.attach(bare, {**payloads, "f" * 64: "of another run"}) == record


def test_a_payload_inside_a_payload_is_kept():
    value = [["x" * (LARGE + 1)], *range(40_000)]
    record = run_record([e.State(seq=1, payload=value), e.End(seq=2)])
    assert len(record["payloads"]) == 2
    assert events_of(record)[0].payload == value


@pytest.mark.parametrize("field", ["content", "display"])
def test_a_payload_of_several_events_counts_until_all_of_them_are_cut(field):
    value = "x" * 300_000 if field == "content" else {"text/html": "x" * 300_000}
    results = [e.Result(call_id=str(n), name="f", status="ok", **{field: value}) for n in range(3)]
    record = run_record([e.RunStart(), *results, e.User(content="x"), e.End()], cap=100_000)
    assert len(json.dumps(record)) < 100_000
    assert [cut["seq"] for cut in record["cut"]] == [2, 3, 4]


def test_deeply_nested_arguments_of_a_call_are_read_back():
    raw = '{"a": ' + "[" * 600 + "]" * 600 + "}"
    call = e.Call(call_id="c", name="f", args=json.loads(raw), raw_args=raw)
    log = [e.RunStart(), call, e.End(status="ok")]
    assert events_of(saved(run_record(log)))[1].raw_args == raw


def test_the_home_folder_is_not_recorded_and_comes_back(new_log, monkeypatch):
    monkeypatch.setenv("HOME", "/home/ann")
    log = new_log(result="Traceback: /home/ann/nb/x.py")
    record = run_record(log)
    assert "/home/ann" not in json.dumps(record)
    assert events_of(record) == list(log)


def test_deltas_stay_whole_under_another_home():
    log = EventLog("r")
    text = "see /home/ann/x"
    for at in range(0, len(text), 5):
        log.append(e.Delta(block="1", of="respond", text=text[at : at + 5]))
    log.append(e.Respond(block="1", content=text))
    log.append(e.End())
    record = run_record(log, home="/home/ann")
    other = EventLog.of_events(events_of(record, home="/Users/bob-the-builder"))
    assert "".join(d.text for d in other.deltas()) == "see /Users/bob-the-builder/x"


@pytest.mark.parametrize("field", ["result", "user", "respond", "progress"])
def test_a_run_beyond_the_size_limit_is_cut_and_says_so(field):
    big = "w" * 300_000
    events = {
        "result": e.Result(call_id="c", content=big),
        "user": e.User(content=big),
        "respond": e.Respond(content=big),
        "progress": e.Progress(call_id="c", data=[big, 1]),
    }
    log = EventLog.of_events([e.User(content="q"), events[field], e.End()])
    record = run_record(log, cap=10_000)
    assert len(json.dumps(record)) < 12_000
    assert [(c["kind"], c["seq"]) for c in record["cut"]] == [(field, 2)]
    assert "cut from the record" in json.dumps([to_builtins(x) for x in events_of(record)])


def test_tool_output_is_cut_before_the_words_of_the_model():
    log = EventLog.of_events(
        [e.Respond(content="a" * 5000), e.Progress(call_id="c", text="p" * 6000), e.End()]
    )
    record = run_record(log, cap=7000)
    assert [c["kind"] for c in record["cut"]] == ["progress"]


def test_too_many_small_events_are_dropped_and_counted():
    log = EventLog.of_events(
        [e.User(content="q"), *(e.Progress(call_id="c", text="line") for _ in range(2000)), e.End()]
    )
    record = run_record(log, cap=20_000)
    back = events_of(record)
    assert record["cut"][0]["events"] == 2000 - len(back) + 2
    assert (back[0].type, back[-1].type) == ("user", "end")
    assert check_record(record) == []


def test_a_sound_record_has_no_problems(log):
    assert check_record(saved(run_record(log, Provenance(cell="c1")))) == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda r: r.update(events=[]), "changed after"),
        (lambda r: r.update(format=7), "format 7"),
        (lambda r: r["events"].pop(), "no end"),
        (lambda r: r["events"].insert(1, 5), "not objects"),
        (lambda r: r["events"].insert(1, {"type": "novel"}), "unknown type"),
        (lambda r: r["events"].append({"type": "user"}), "others follow"),
        (lambda r: r["events"][0].update(seq=5), "calls itself 5"),
        (lambda r: r.update(cut="x"), "not a record"),
    ],
)
def test_check_names_the_problems(log, change, words):
    record = saved(run_record(log))
    change(record)
    assert any(words in problem for problem in check_record(record))


def test_the_id_of_a_run_is_text_that_every_format_can_write(log):
    events = events_of({**run_record(log), "id": "\ud800x"})
    assert {event.run for event in events} == {"\ufffdx"}
    assert "\ufffdx" in str(list(encode(events, "loom")))


def test_secrets_are_looked_for_beside_half_a_character():
    record = {"events": [{"type": "user", "content": "\ud800 hunter2-hunter2"}]}
    assert list_leaks(record, {"a word": "hunter2-hunter2"}) == [
        "a secret in event 1 (user): a word"
    ]


def test_check_says_when_a_payload_is_missing_or_changed(new_log):
    bare, payloads = Payloads.detach(run_record(new_log(result="y" * (LARGE + 1))))
    (key,) = payloads
    assert any("missing" in p for p in check_record(bare))
    assert any("was changed" in p for p in check_record(bare, {key: "z"}))
    assert check_record(bare, payloads) == []


def test_secrets_are_found_by_place_and_not_repeated(log):
    leaks = list_leaks(run_record(log), {"OPENAI_API_KEY": "What is the sum"})
    assert leaks == ["a secret in event 2 (user): OPENAI_API_KEY"]


def test_the_schema_file_is_what_its_script_writes(tmp_path):
    write_schema(tmp_path / "schema.json")
    assert PATH.read_bytes() == (tmp_path / "schema.json").read_bytes(), (
        "the event types have changed: run python tests/helpers/record_schema.py"
    )


def test_the_schema_accepts_a_record(new_log):
    jsonschema = pytest.importorskip("jsonschema")
    bare, payloads = Payloads.detach(
        saved(run_record(new_log(result="y" * (LARGE + 1)), Provenance(cell="c1")))
    )
    jsonschema.Draft202012Validator(load_schema()).validate(
        {"version": 1, "runs": {"c1": [bare]}, "payloads": payloads}
    )


@pytest.mark.parametrize(
    "event",
    [
        {"type": "call", "index": "one"},
        {"type": "end", "status": "perhaps"},
        {"type": "user", "content": {"x": 1}},
        {},
    ],
)
def test_the_schema_refuses_what_the_event_types_refuse(log, event):
    jsonschema = pytest.importorskip("jsonschema")
    record = saved(run_record(log))
    record["events"][1] = event
    assert not jsonschema.Draft202012Validator(load_schema()).is_valid(
        {"version": 1, "runs": {"c1": [record]}}
    )


def test_every_event_type_but_delta_is_in_the_schema():
    assert {
        n.removeprefix("event.") for n in load_schema()["$defs"] if n.startswith("event.")
    } == set(e.TYPES) - {"delta"}


WRITTEN = {"query": "x", "limit": 3, "by": [{"name": "b", "desc": True}], "after": None}


def calling(**fields):
    """Return a run with one call whose arguments are not in alphabetical order."""
    log = EventLog("run000000001")
    log.append(e.RunStart())
    log.append(
        e.Call(call_id="c", name="find", args=WRITTEN, raw_args=json.dumps(WRITTEN), **fields)
    )
    log.append(
        e.Approval(
            call_id="c",
            stage="decided",
            decision="allow",
            args={**WRITTEN, "limit": 5, "a new one": 1},
        )
    )
    log.append(e.Result(call_id="c", name="find", content="ok"))
    log.append(e.End())
    return log


@pytest.mark.parametrize(
    "padding", ["", "y" * 500], ids=["args beside their text", "args in their text only"]
)
def test_arguments_keep_the_order_in_which_the_model_wrote_them(padding, monkeypatch):
    monkeypatch.setitem(WRITTEN, "query", f"x{padding}")
    again = log_of(saved(run_record(calling())))
    call, approval = again[1], again[2]
    assert json.dumps(call.args) == json.dumps(WRITTEN)
    assert list(approval.args) == [*WRITTEN, "a new one"]
    card = RunView().extend(again[:2]).call("c")
    assert list(card.args) == list(WRITTEN)
    frames = [json.loads(line) for line in encode(again, "loom")]
    assert list(next(f["arguments"] for f in frames if f["type"] == "tool_call")) == list(WRITTEN)
    assert list(again.to_frame("all calls")["args"][0]) == [*WRITTEN, "a new one"]


FOREIGN = {
    "loom": {"type": "tool_call", "call_id": "c", "name": "find", "arguments": WRITTEN},
    "looopy": {
        "kind": "tool-call",
        "taskId": "t",
        "toolCallId": "c",
        "toolName": "find",
        "arguments": WRITTEN,
    },
    "agent-event": {"type": "tool_call", "toolName": "find", "toolArgs": WRITTEN},
    "ui-message": {
        "type": "tool-input-available",
        "toolCallId": "c",
        "toolName": "find",
        "input": WRITTEN,
    },
    "cogency": {"type": "call", "content": json.dumps({"name": "find", "args": WRITTEN})},
}


@pytest.mark.parametrize("codec", FOREIGN)
def test_arguments_of_an_imported_run_keep_their_order_too(codec):
    events = decode(json.dumps(FOREIGN[codec]) + "\n", codec)
    again = next(event for event in log_of(saved(run_record(events))) if event.type == "call")
    assert json.dumps(again.args) == json.dumps(WRITTEN)
    assert json.loads(encode([again], codec, framing="ndjson")[0]) == FOREIGN[codec]


def test_arguments_that_are_not_those_of_their_text_stay_as_they_are():
    record = run_record(calling())
    record["events"][1].update(args={"b": 1, "a": 2}, raw_args='{"a": 2, "b": 2}')
    assert list(log_of(record)[1].args.items()) == [("b", 1), ("a", 2)]


def stored(tmp_path, *runs):
    """Return a notebook with the records of `runs`, as nbformat saves it: keys sorted."""
    path = tmp_path / "a.ipynb"
    path.write_text(
        json.dumps(
            {
                "metadata": {
                    "agent_nb": {"version": 1, "runs": {"c1": [run_record(r) for r in runs]}}
                }
            },
            sort_keys=True,
        )
    )
    return path


def jq(*arguments):
    done = subprocess.run(
        ["jq", "-c", *map(str, arguments)], capture_output=True, text=True, check=True
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def whole(event):
    """Return an event as an object with all its fields."""
    fields = {f: getattr(event, f) for f in event.__struct_fields__}
    return {"type": event.type, **json.loads(msgspec.json.encode(fields))}


def filled(record, schema):
    """Return the stored events with the defaults that the schema and `FILL` add."""

    def defaults(definition):
        return {
            k: v["default"] for k, v in definition.get("properties", {}).items() if "default" in v
        }

    definitions = schema["$defs"]
    for place, event in enumerate(record["events"], 1):
        kind = defaults(definitions.get(f"event.{event['type']}", {}))
        yield {**defaults(definitions["event"]), **kind, "seq": place, "run": record["id"], **event}


def test_the_schema_names_the_defaults_that_a_record_omits(log):
    record = run_record(log)
    packed = ("extra", "chunks", "args")
    restored = [{k: v for k, v in whole(event).items() if k not in packed} for event in log]
    assert [
        {k: v for k, v in event.items() if k not in packed}
        for event in filled(record, load_schema())
    ] == restored
    assert "status" not in next(event for event in record["events"] if event["type"] == "result")


@pytest.mark.skipif(shutil.which("jq") is None, reason="needs jq")
def test_jq_fills_in_omitted_defaults(log, tmp_path):
    path = stored(tmp_path, log)
    results = [event.status for event in log if event.type == "result"]
    assert jq(COUNT, path) == [{"ok": len(results)}]
    assert jq("--slurpfile", "schema", PATH, FILL, path) == list(
        filled(run_record(log), load_schema())
    )
    assert all(program in load_schema()["$comment"] for program in (COUNT, FILL))


def test_the_record_is_small(new_log):
    log = new_log(turns=3, words=2000)
    text = sum(
        len(getattr(x, "content", "").encode()) + len(getattr(x, "raw_args", "").encode())
        for x in log
    )
    assert len(json.dumps(run_record(log), indent=1, ensure_ascii=False).encode()) <= 1.5 * text


def test_decoding_one_stored_event_needs_no_record(log):
    stored = run_record(log)["events"][3]
    assert decode_event(msgspec.json.encode(stored)).content == log[3].content


def older(record):
    """Return a record as older releases made it: hashes without a mark, lone surrogates as "?"."""

    def name(packed):
        return hashlib.sha256(encode_canonical(packed).encode("utf-8", "replace")).hexdigest()

    text = json.dumps(record)
    for key, packed in record.get("payloads", {}).items():
        text = text.replace(key, name(packed))
    made = json.loads(text)
    unsigned = {k: v for k, v in made.items() if k not in ("hash", "signature", "payloads")}
    return {**made, "hash": f"sha256:{name(unsigned)}"}


def run_of(prompt):
    where = {"ts": 1.0, "run": "r"}
    return EventLog.of_events(
        [e.RunStart(seq=1, **where), e.User(seq=2, content=prompt, **where), e.End(seq=3, **where)]
    )


@pytest.mark.parametrize("size", [1, LARGE], ids=["in the record", "as a payload"])
@pytest.mark.parametrize(
    "pair",
    [
        ("a\ud800", "a?"),
        ("a\ud800", "a\udc00"),
        ("\ud83d\ude00", "\U0001f600"),
        ("é", "e\u0301"),
        ("a\u2028b", "a\nb"),
    ],
)
def test_no_two_texts_have_one_hash(pair, size):
    one, other = (run_record(run_of(text * size)) for text in pair)
    assert one["hash"] != other["hash"]
    assert is_intact(one)
    assert is_intact(other)
    assert not is_intact({**one, "events": other["events"], "payloads": other.get("payloads", {})})
    assert len({Digests.of_inputs(text)["prompt"] for text in pair}) == 2


@pytest.mark.parametrize(
    "prompt",
    ["hello", "half \ud800", "x" * LARGE, "half \ud800" * LARGE],
    ids=["text", "half", "long", "long half"],
)
def test_records_from_before_the_exact_hash_still_verify_and_read(prompt):
    new = run_record(run_of(prompt))
    old = older(new)
    assert old["hash"] != new["hash"]
    assert is_intact(old)
    signed = UserKey(b"key").sign(old)
    assert signed["hash"] == old["hash"]
    assert UserKey(b"key").signed(signed)
    assert [event.content for event in events_of(old) if event.type == "user"] == [prompt]
    assert not is_intact({**old, "conversation": "other"})


def test_a_record_cannot_be_passed_off_as_an_older_one():
    signed = UserKey(b"key").sign(run_record(run_of("rm a?")))
    forged = older(json.loads(json.dumps(signed).replace("rm a?", "rm a\\ud800")))
    assert not UserKey(b"key").signed(forged)
    assert not UserKey(b"key").signed(
        {k: v for k, v in signed.items() if k != "hash"} | {"hash": "sha256:"}
    )


def test_the_records_of_the_examples_verify_as_they_were_made():
    found = [
        item.record
        for path in EXAMPLES.glob("*.ipynb")
        for item in NotebookRuns(json.loads(path.read_text(encoding="utf-8"))).list_all()
    ]
    assert found
    assert all(is_intact(record) for record in found)
