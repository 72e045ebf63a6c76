"""The cogency codec against lines written by hand from seed 000 § Event Stream."""

import json

import pytest

from agent_nb import events as ev
from agent_nb.agent.history import write_messages
from agent_nb.errors import WireError
from agent_nb.host import plugins
from agent_nb.view.state.cards import ThinkCard
from agent_nb.view.state.fold import RunView

T = {"timestamp": 1767225600.0}
#: (a line of the wire, the event's type and fields)
LINES = [
    ({"type": "user", "content": "hello"}, "user", {"content": "hello"}),
    ({"type": "think", "content": "why"}, "think", {"content": "why"}),
    (
        {"type": "call", "content": '{"name": "read", "args": {"file": "a"}}'},
        "call",
        {"name": "read", "args": {"file": "a"}, "synthetic": True},
    ),
    ({"type": "call", "content": '{"name": "list"}'}, "call", {"name": "list", "args": {}}),
    (
        {"type": "call", "content": "{broken"},
        "call",
        {"name": "", "args": {}, "raw_args": "{broken"},
    ),
    ({"type": "execute"}, "execute", {}),
    ({"type": "execute", "content": ""}, "execute", {}),
    (
        {"type": "result", "payload": {"outcome": "Found", "content": "x", "error": False}},
        "result",
        {"content": "x", "status": "ok", "display": {"text/plain": "Found"}},
    ),
    (
        {"type": "result", "payload": {"outcome": "Denied", "content": "", "error": True}},
        "result",
        {"status": "denied", "display": None},
    ),
    (
        {"type": "result", "payload": {"outcome": "Broke", "content": "", "error": True}},
        "result",
        {"status": "error"},
    ),
    (
        {"type": "result", "content": '{"outcome": "Success", "content": "body"}'},
        "result",
        {"content": "body", "display": None},
    ),
    ({"type": "result", "content": "just text"}, "result", {"content": "just text"}),
    ({"type": "respond", "content": "done"}, "respond", {"content": "done", "incomplete": False}),
    ({"type": "end"}, "end", {"status": "ok"}),
    (
        {
            "type": "metric",
            "step": {"input": 5, "output": 3, "duration": 0.5},
            "total": {"input": 9, "output": 4, "duration": 1.5},
        },
        "metric",
        {
            "step": ev.Counts(input=5, output=3, duration=0.5),
            "total": ev.Counts(input=9, output=4, duration=1.5),
        },
    ),
    (
        {"type": "error", "payload": {"error": "timeout", "tool": "shell"}},
        "error",
        {"message": "timeout"},
    ),
    ({"type": "error", "content": "as text"}, "error", {"message": "as text"}),
    ({"type": "interrupt"}, "interrupt", {"reason": "user"}),
    ({"type": "cancelled"}, "interrupt", {"reason": "user"}),
    (
        {"type": "plan", "steps": [1]},
        "extension",
        {"namespace": "cogency", "name": "plan", "payload": {"steps": [1]}},
    ),
]


@pytest.mark.parametrize(("line", "kind", "fields"), LINES)
def test_each_shape_is_read_and_written_back(line, kind, fields, tool):
    cogency = tool("cogency")
    events = cogency.read([_text({**line, **T})])
    event = next(e for e in events if e.type == kind)
    assert {k: getattr(event, k) for k in fields} == fields
    assert (event.origin, event.ts) == ("imported", T["timestamp"])
    assert cogency.lines(events) == [{**line, **T}]


def _text(line):
    return json.dumps(line) + "\n"


def test_our_run_is_written_as_the_ten_types(tool, our_run):
    t = [round(1767225600.0 + i / 10, 3) for i in range(20)]
    assert tool("cogency").lines(our_run) == [
        {"type": "user", "content": "List a", "timestamp": t[2]},
        {"type": "think", "content": "Look first.", "timestamp": t[4]},
        {"type": "call", "content": '{"name": "sh", "args": {"c": "ls"}}', "timestamp": t[5]},
        {"type": "call", "content": '{"name": "sh", "args": {"c": "cat b"}}', "timestamp": t[6]},
        {
            "type": "metric",
            "step": {"input": 20, "output": 9, "duration": 0.5},
            "total": {"input": 20, "output": 9, "duration": 0.5},
            "timestamp": t[8],
        },
        {"type": "execute", "timestamp": t[9]},
        {
            "type": "result",
            "payload": {"outcome": "Success", "content": "a", "error": False},
            "timestamp": t[12],
        },
        {
            "type": "result",
            "payload": {"outcome": "no such file", "content": "no such file", "error": True},
            "timestamp": t[13],
        },
        {"type": "respond", "content": "There is a.", "timestamp": t[15]},
        {"type": "end", "timestamp": t[18]},
        {
            "type": "metric",
            "step": {"input": 40, "output": 5, "duration": 0.0},
            "total": {"input": 60, "output": 14, "duration": 0.5},
            "timestamp": t[17],
        },
    ]


def test_a_metric_after_end_stands_before_our_end_and_goes_back_after_it(tool):
    cogency = tool("cogency")
    lines = [
        {"type": "respond", "content": "x"},
        {"type": "end"},
        {"type": "metric", "step": {}, "total": {}},
    ]
    events = cogency.read([_text(line) for line in lines])
    assert [e.type for e in events] == ["respond", "metric", "end"]
    assert cogency.lines(events) == lines


def test_a_metric_before_end_stays_before_it(tool):
    cogency = tool("cogency")
    lines = [
        {"type": "metric", "step": {}, "total": {}},
        {"type": "end"},
        {"type": "metric", "step": {"input": 1}, "total": {}},
    ]
    assert cogency.lines(cogency.read([_text(line) for line in lines])) == lines


def test_a_batch_array_becomes_one_result_per_call_in_call_order(tool):
    cogency = tool("cogency")
    content = '[{"tool": "sh", "status": "success", "content": ["a"]}, {"tool": "sh", "status": "failure", "content": "no"}]'
    lines = [
        {"type": "call", "content": '{"name": "sh", "args": {"n": 1}}'},
        {"type": "call", "content": '{"name": "sh", "args": {"n": 2}}'},
        {"type": "execute"},
        {
            "type": "result",
            "content": content,
            "payload": {"tools_executed": 2, "success_count": 1, "failure_count": 1},
        },
    ]
    events = cogency.read([_text(line) for line in lines])
    calls = [e for e in events if e.type == "call"]
    results = [e for e in events if e.type == "result"]
    assert [(r.call_id, r.name, r.status, r.content) for r in results] == [
        (calls[0].call_id, "sh", "ok", ["a"]),
        (calls[1].call_id, "sh", "error", "no"),
    ]
    assert next(e for e in events if e.type == "execute").calls == (
        calls[0].call_id,
        calls[1].call_id,
    )
    assert cogency.lines(events) == lines


@pytest.mark.parametrize("status", [["success"], {"ok": True}, None, 1, "ok"])
def test_a_batch_entry_without_a_known_status_is_an_error(status, tool):
    cogency = tool("cogency")
    content = json.dumps([{"tool": "sh", "status": status, "content": "a"}])
    line = {"type": "result", "content": content}
    events = cogency.read([_text(line)])
    assert [e.status for e in events if e.type == "result"] == ["error"]
    assert cogency.lines(events) == [line]


def test_each_user_message_begins_a_run_of_its_own(tool):
    events = tool("cogency").read(
        [
            '{"type":"user","content":"a"}\n{"type":"respond","content":"b"}\n{"type":"user","content":"c"}\n'
        ]
    )
    assert events[0].run == events[1].run != events[2].run


def test_run_ids_are_the_same_for_the_same_file(tool):
    text = ['{"type":"user","content":"a"}\n']
    assert tool("cogency").read(text)[0].run == tool("cogency").read(text)[0].run


def test_a_timestamp_finer_than_a_millisecond_comes_out_as_it_came(tool):
    cogency = tool("cogency")
    line = {"type": "user", "content": "a", "timestamp": 1730000000.1234567}
    events = cogency.read([_text(line)])
    assert events[0].ts == 1730000000.123
    assert cogency.lines(events) == [line]


def test_content_never_holds_a_delimiter(tool, our_run):
    assert not any(
        "§" in str(line.get("content")) or "<think>" in str(line.get("content"))
        for line in tool("cogency").lines(our_run)
    )


def test_what_a_sub_agent_does_is_left_out_and_counted(tool):
    cogency = tool("cogency")
    assert cogency.lines([ev.Respond(content="inner", span="call_1")]) == []
    assert cogency.encoder.losses.counts() == {"nested events": 1}


def test_an_approval_is_refused_in_strict_mode(tool):
    with pytest.raises(WireError, match="approval: there are no approvals"):
        tool("cogency").write([ev.Approval(call_id="c")], strict=True)


# Thoughts that come in pieces.


def thinking(count, step=0.25):
    pieces = [f"word {n}, " for n in range(count)]
    times = [T["timestamp"] + round(n * step, 3) for n in range(count)]
    lines = [
        {"type": "think", "content": text, "timestamp": ts}
        for text, ts in zip(pieces, times, strict=True)
    ]
    return lines, "".join(pieces)


CALL = [
    {"type": "call", "content": '{"name": "sh", "args": {}}'},
    {"type": "execute"},
    {"type": "result", "content": "x"},
]


@pytest.mark.parametrize("after", [[], CALL, [{"type": "respond", "content": "ok"}]])
@pytest.mark.parametrize("step", [0.25, 0.0, 0.0123])
def test_pieces_of_one_thought_are_one_thought(step, after, tool):
    cogency, (lines, text) = tool("cogency"), thinking(200, step)
    lines = [{"type": "user", "content": "q"}, *lines, *after]
    events = cogency.read([_text(line) for line in lines])
    thoughts = [e for e in events if e.type == "think"]
    assert [e.content for e in thoughts] == [text]
    assert [e.incomplete for e in thoughts] == [not after]
    assert "".join(e.text for e in events if e.type == "delta") == text
    assert cogency.lines(events) == lines
    assert cogency.lines([e for e in events if e.type != "delta"]) == lines


def test_pieces_of_a_thought_are_the_same_in_any_chunks(tool):
    cogency, (lines, _) = tool("cogency"), thinking(3)
    wire = "".join(_text(line) for line in [*lines, *CALL, *lines, {"type": "end"}])
    whole = cogency.read([wire])
    assert [e.type for e in whole if e.type == "think"] == ["think", "think"]
    assert cogency.read(list(wire)) == whole
    for cut in range(len(wire)):
        assert cogency.read([wire[:cut], wire[cut:]]) == whole


def test_a_thought_in_pieces_is_one_thought_for_the_model(tool):
    lines, text = thinking(200)
    events = tool("cogency").read([_text(line) for line in [*lines, *CALL]])
    sent = write_messages(
        plugins.load_plugin("dialects", "xml"), [[e for e in events if e.type != "delta"]]
    )
    assert sent[0].text.count("<think>") == 1
    assert text.strip() in sent[0].text


def test_a_thought_in_pieces_is_one_card(tool):
    lines, text = thinking(200)
    view = RunView().extend(tool("cogency").read([_text(line) for line in [*lines, *CALL]]))
    assert [str(c.text) for c in view.cards if isinstance(c, ThinkCard)] == [text]


def test_thoughts_with_something_between_them_stay_apart(tool):
    cogency = tool("cogency")
    lines = [
        {"type": "think", "content": "a"},
        {"type": "respond", "content": "b"},
        {"type": "think", "content": "c"},
        {"type": "user", "content": "q"},
        {"type": "think"},
        {"type": "think", "content": 7},
    ]
    events = cogency.read([_text(line) for line in lines])
    assert [e.content for e in events if e.type == "think"] == ["a", "c", ""]
    assert cogency.lines(events) == lines


def test_a_viewer_sees_a_thought_before_its_next_line(tool):
    cogency, (lines, text) = tool("cogency"), thinking(2)
    decoder = cogency.codec.decoder()
    first = [*decoder.feed(_text(lines[0])), *decoder.tick(1.0)]
    assert [(e.type, e.text) for e in first] == [("delta", "word 0, ")]
    rest = [*decoder.feed(_text(lines[1])), *decoder.tick(2.0), *decoder.close()]
    assert [(e.type, e.content) for e in rest if e.type != "delta"] == [("think", text)]
    assert cogency.lines([*first, *rest]) == lines


def test_pieces_of_a_thought_without_times_stay_lines_of_their_own(tool):
    cogency = tool("cogency")
    lines = [{"type": "think", "content": text} for text in ("a", "b")]
    events = cogency.read([_text(line) for line in lines])
    assert cogency.lines(events) == lines
    assert cogency.lines(e for e in events if e.type != "delta") == lines
