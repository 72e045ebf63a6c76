"""Seeds 000 and 001 line by line: shapes of calls, results and errors, and how runs without an end
are settled.
"""

import msgspec
import pytest
from helpers.codec_io import logs
from helpers.streams import ndjson

from agent_nb import events as ev
from agent_nb.codecs.framing import Unframer
from agent_nb.codecs.losses import Losses
from agent_nb.external.importer import Imported


@pytest.fixture
def read(tool):
    """Read events, and see that they come out again as they came."""

    def run(*objs):
        codec = tool("cogency")
        events = codec.read(ndjson(*objs))
        assert codec.lines(events) == list(objs)
        assert not codec.decoder.losses
        return events

    return run


# § Event Schema.


def test_a_call_may_hold_its_object_instead_of_its_text(read):
    (event,) = read({"type": "call", "content": {"name": "sh", "args": {"c": 1}}})
    assert (event.name, event.args) == ("sh", {"c": 1})


RESULTS = {
    "one entry of the wire": (
        {"content": '{"tool": "sh", "status": "success", "content": ["a"]}'},
        ("ok", ["a"], "sh"),
    ),
    "one that failed": (
        {"content": '{"tool": "sh", "status": "failure", "content": "no"}'},
        ("error", "no", "sh"),
    ),
    "an error that is a text": (
        {"payload": {"outcome": "Error", "error": "no such file"}},
        ("error", "no such file", ""),
    ),
    "an error beside content": (
        {"payload": {"outcome": "Error", "content": "c", "error": True}},
        ("error", "c", ""),
    ),
}


@pytest.mark.parametrize("case", RESULTS)
def test_a_result_is_read_in_each_of_its_shapes(case, read):
    obj, wanted = RESULTS[case]
    event = read({"type": "result", **obj})[-1]
    assert (event.status, event.content, event.name) == wanted


def test_an_error_of_ours_names_the_tool_of_its_call(tool):
    run = [
        ev.Call(call_id="c1", name="shell", args={}),
        ev.Error(message="Tool timeout after 30s", call_id="c1"),
    ]
    assert tool("cogency").lines(run)[1] == {
        "type": "error",
        "payload": {"error": "Tool timeout after 30s", "tool": "shell"},
    }


# Runs without an `end` line.

USER, SAID = {"type": "user", "content": "q"}, {"type": "respond", "content": "a"}
ENDS = {
    "an answer": ("ok", [USER, SAID]),
    "an error after it": (
        "error",
        [USER, SAID, {"type": "error", "payload": {"error": "provider"}}],
    ),
    "an interrupt after it": ("interrupted", [USER, SAID, {"type": "interrupt"}]),
    "no answer": ("interrupted", [USER, {"type": "think", "content": "hm"}]),
    "an error before it": ("ok", [USER, {"type": "error", "payload": {"error": "x"}}, SAID]),
}


@pytest.mark.parametrize("case", ENDS)
def test_a_run_without_an_end_ends_as_its_last_events_say(case):
    status, lines = ENDS[case]
    (log,) = logs(ndjson(*lines), "cogency")
    assert [e.status for e in log if e.type == "end"] == [status]


# Lines and arrays.


@pytest.mark.parametrize("first", ["[INFO] starting", "[1, 2]", "[", "[]x"])
@pytest.mark.parametrize("step", [1, 7, 10_000])
def test_a_first_line_that_only_begins_like_an_array_is_one_bad_line(first, step):
    data = f'{first}\n{{"type":"user","content":"q"}}\n{{"type":"end"}}\n'.encode()
    unframer = Unframer(losses := Losses())
    items = [
        i for at in range(0, len(data), step) for i in unframer.feed(data[at : at + step])
    ] + unframer.close()
    assert [i.obj.get("type") for i in items if isinstance(i.obj, dict)] == ["user", "end"]
    assert sum(losses.counts().values()) + sum(not isinstance(i.obj, dict) for i in items) == 1


@pytest.mark.parametrize("step", [1, 10_000])
def test_a_whole_array_of_objects_is_read(step):
    data = b' [ {"type":"user","content":"q"},\n {"type":"end"}]\n'
    unframer = Unframer(losses := Losses())
    items = [
        i for at in range(0, len(data), step) for i in unframer.feed(data[at : at + step])
    ] + unframer.close()
    assert [i.obj["type"] for i in items] == ["user", "end"]
    assert not losses


def test_a_run_that_tells_of_its_interrupt_is_not_said_to_be_cut():
    run = Imported("cogency")
    run.feed(ndjson(USER, {"type": "interrupt"}))
    run.close()
    (log,) = run.logs
    assert [e.type for e in log] == ["user", "interrupt", "end"]


# § Event Taxonomy: `end` is the signal that the task is done.

CAUSE = {"error": ev.Error(message="dead"), "interrupted": ev.Interrupt()}


@pytest.mark.parametrize("status", CAUSE)
def test_a_run_of_ours_that_was_not_done_has_no_end_line_and_still_ends_so(status, tool):
    cogency = tool("cogency")
    usage = ev.Counts(input=3)
    lines = cogency.lines(
        [
            ev.User(content="q"),
            ev.Metric(step=usage, total=usage),
            CAUSE[status],
            ev.End(status=status),
        ]
    )
    assert [o["type"] for o in lines] == [
        "user",
        "metric",
        {"interrupted": "interrupt"}.get(status, status),
    ]
    assert "end.status" not in cogency.encoder.losses.counts()
    (log,) = logs(ndjson(*lines), "cogency")
    assert log[-1].status == status


LIMIT, ERROR = ev.End(status="limit"), ev.End(status="error")


@pytest.mark.parametrize("run", [[LIMIT], [ev.Interrupt(reason="limit"), LIMIT], [ERROR]])
def test_an_end_that_no_line_tells_is_counted(run, tool):
    cogency = tool("cogency")
    assert "end" not in [o["type"] for o in cogency.lines([ev.User(content="q"), *run])]
    assert cogency.encoder.losses.counts()["end.status"] == 1


def test_an_end_line_after_an_interrupt_is_no_answer(read):
    assert [
        e.status
        for e in read(USER, SAID, {"type": "interrupt"}, {"type": "end"})
        if e.type == "end"
    ] == ["interrupted"]


TRACE = "Traceback (most recent call last):\n  File \"<agent code 1>\", line 1, in <module>\n    boom()\nKeyError: 'price'"


@pytest.mark.parametrize(
    ("result", "outcome"),
    [
        (
            ev.Result(
                status="error", content="so far\nKeyError: 'price'", display={"text/plain": TRACE}
            ),
            "KeyError: 'price'",
        ),
        (ev.Result(status="error", content="No such file: a.csv."), "No such file: a.csv."),
        (ev.Result(status="error", content={"code": 1}), "Error"),
        (ev.Result(status="denied", content="You denied this call."), "Denied"),
        (ev.Result(content="ok", display={"text/plain": "Read 3 lines"}), "Read 3 lines"),
    ],
)
def test_the_outcome_of_a_failed_call_is_the_message_not_the_traceback(tool, result, outcome):
    run = [
        ev.User(content="q"),
        ev.Call(call_id="c", name="t"),
        msgspec.structs.replace(result, call_id="c", name="t"),
        ev.End(),
    ]
    line = next(line for line in tool("cogency").lines(run) if line["type"] == "result")
    assert line["payload"]["outcome"] == outcome
    assert line["payload"]["content"] == result.content
