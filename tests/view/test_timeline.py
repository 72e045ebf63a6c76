"""The waterfall of a run."""

import math
import re

import pytest

from agent_nb import events as e
from agent_nb.agent.run import Run
from agent_nb.events.chunks import encode_chunks
from agent_nb.events.log import EventLog
from agent_nb.view.timeline import Timeline, _label, _seconds, timeline_html, timeline_text
from agent_nb.view.waterfall import Segment, TimeRow, list_time_rows


def at(second, event):
    return type(event)(
        **{**{f: getattr(event, f) for f in event.__struct_fields__}, "ts": 1000.0 + second}
    )


def llm(second, phase, number=1, result="", **more):
    return at(
        second,
        e.Node(name="llm", phase=phase, span=f"llm-{number}", turn=number, result=result, **more),
    )


@pytest.fixture
def log():
    return [
        at(0, e.RunStart()),
        llm(0, "enter", data={"attempt": 1}),
        at(3, e.Think(content="ab", block="1", turn=1, chunks=encode_chunks([(1, 500), (1, 500)]))),
        llm(3, "exit", result="ok"),
        at(3, e.Approval(call_id="c", stage="requested", turn=1)),
        at(4, e.Approval(call_id="c", stage="decided", decision="allow", turn=1)),
        at(4, e.Started(call_id="c", name="shell", turn=1)),
        at(6, e.Result(call_id="c", name="shell", status="error", duration=2.0, turn=1)),
        llm(6, "enter", 2),
        at(8, e.Respond(content="x", block="2", turn=2)),
        llm(8, "exit", 2, result="ok"),
        at(8, e.End()),
    ]


def test_model_requests_and_tools_have_a_line_each_in_order(log):
    assert [(r.label, round(r.start, 3), round(r.seconds, 3)) for r in list_time_rows(log)] == [
        ("model, turn 1", 0, 3),
        ("shell", 3, 3),
        ("model, turn 2", 6, 2),
    ]


@pytest.mark.parametrize("second", [-1e12, 1e12, math.inf, math.nan])
def test_whatever_the_times_of_a_record_are_its_bars_have_their_width(log, second):
    for place in range(len(log)):
        changed = [*log[:place], at(second, log[place]), *log[place + 1 :]]
        assert all(len(line) < 200 for line in timeline_text(changed).splitlines())


def test_the_time_before_the_first_piece_is_waiting(log):
    first = list_time_rows(log)[0]
    assert [(s.kind, round(s.start, 1), round(s.end, 1)) for s in first.segments] == [
        ("wait", 0, 0.5),
        ("think", 0.5, 3),
    ]


def test_a_question_is_waiting_and_a_failed_call_is_seen(log):
    assert [s.kind for s in list_time_rows(log)[1].segments] == ["wait", "failed"]
    assert "error" in timeline_text(log)


def test_the_sums_say_where_the_time_went(log):
    assert "8.0 s in all: model 2.5 s · tools 2.0 s · waiting 3.5 s" in timeline_text(log)


def test_short_times_are_milliseconds_and_what_took_none_is_left_out():
    log = [
        at(0, e.Started(call_id="a", name="a")),
        at(0.0124, e.Result(call_id="a", name="a", duration=0.012)),
    ]
    assert timeline_text(log).startswith("12 ms in all: tools 12 ms\n")


def test_parallel_calls_count_once_in_the_sum():
    calls = [at(0, e.Started(call_id=c, name=c)) for c in "ab"] + [
        at(2, e.Result(call_id=c, name=c, duration=2.0)) for c in "ab"
    ]
    assert "tools 2.0 s" in timeline_text(calls)


def test_the_pause_before_a_retry_belongs_to_the_next_request():
    log = [
        llm(0, "enter"),
        llm(1, "exit", result="error: 503"),
        at(1, e.Error(code="retry")),
        llm(3, "enter", data={"attempt": 2}),
        llm(4, "exit", result="ok"),
    ]
    second = list_time_rows(log)[1]
    assert (second.label, second.start, second.seconds) == ("model, turn 1, attempt 2", 1, 3)


def test_open_spans_end_with_the_last_event(log):
    open_rows = list_time_rows(log[:7])
    assert [r.note for r in open_rows] == ["", "running"]
    assert list_time_rows(log[:2])[0].note == "running"


def test_a_running_call_of_a_sub_agent_stands_at_its_level():
    outer = at(1, e.Started(call_id="a", name="helper", turn=1))
    inner = at(2, e.Started(call_id="a/b", name="shell", turn=1))
    rows = list_time_rows([at(0, e.RunStart()), outer, inner, at(3, e.User(content="x"))])
    assert [(row.label, row.level) for row in rows] == [("helper", 0), ("shell", 1)]


def test_blocks_without_requests_still_show():
    assert [
        r.label
        for r in list_time_rows(
            [at(0, e.User()), at(1, e.Respond(content="x", turn=1, chunks="BA"))]
        )
    ] == ["model, turn 1"]


def test_bars_are_as_long_as_their_time(log):
    bars = [line.split("|")[1] for line in timeline_text(log).splitlines()[1:]]
    assert {len(b) for b in bars} == {48}
    assert bars[0].rstrip() == "░" * 3 + "▒" * 15
    assert bars[2] == " " * 36 + "░" * 12


def test_html_has_text_bars_and_nothing_that_a_sanitizer_takes(log):
    html = timeline_html(log)
    assert "▒" * 10 in html
    assert not re.search(r"<(script|style|svg|img|link)|class=|on\w+=", html)


def test_names_are_escaped(log):
    log = [
        at(0, e.Started(call_id="x", name="<script>alert(1)</script>")),
        at(1, e.Result(call_id="x", name="y", duration=1.0)),
    ]
    assert "<script" not in timeline_html(log)


@pytest.mark.parametrize("log", [[], [at(0, e.User())], EventLog("r")])
def test_a_run_without_work_says_so(log):
    assert "No time to show" in timeline_html(log)
    assert "No time to show" in timeline_text(log)


def test_very_many_calls_are_cut():
    log = [
        x
        for n in range(500)
        for x in (at(n, e.Started(call_id=str(n), name="t")), at(n, e.Result(call_id=str(n))))
    ]
    assert "300 more" in timeline_html(log)


def test_a_run_shows_its_timeline(log):
    shown = Run(EventLog.of_events(log)).timeline()
    assert isinstance(shown, Timeline)
    assert set(shown._repr_mimebundle_()) == {"text/html", "text/plain"}
    assert "shell" in str(shown)


def test_nodes_of_a_graph_are_spans():
    found = list_time_rows(
        [
            e.RunStart(ts=10.0),
            e.Node(name="think", phase="enter", span="think-0", ts=10.0),
            e.Node(name="think", phase="exit", span="think-0", result="ok", ts=12.0),
            e.Extension(namespace="loom", name="got_node_start", payload={"id": "n1"}, ts=12.0),
            e.Extension(
                namespace="loom",
                name="got_node_failed",
                payload={"id": "n1", "error": "lost"},
                ts=13.0,
            ),
            e.Node(name="act", phase="enter", span="act-1", ts=13.0),
            e.End(ts=14.0),
        ]
    )
    assert [(r.label, r.start, r.seconds, r.note) for r in found] == [
        ("think", 0.0, 2.0, ""),
        ("n1", 2.0, 1.0, "error: lost"),
        ("act", 3.0, 1.0, "not finished"),
    ]


def test_words_of_simultaneous_sub_agents_belong_to_their_own_requests():
    def child(second, event, name):
        return at(
            second,
            type(event)(
                **{**{f: getattr(event, f) for f in event.__struct_fields__}, "span": name}
            ),
        )

    found = list_time_rows(
        [
            at(0, e.RunStart()),
            at(0, e.Node(name="llm", phase="enter", span="a/llm-1", parent="a", turn=1)),
            at(0, e.Node(name="llm", phase="enter", span="b/llm-7", parent="b", turn=1)),
            child(2, e.Respond(content="x", turn=1), "a"),
            child(3, e.Respond(content="y", turn=1), "b"),
            at(4, e.Node(name="llm", phase="exit", span="a/llm-1", parent="a", result="ok")),
            at(4, e.Node(name="llm", phase="exit", span="b/llm-7", parent="b", result="ok")),
            at(4, e.End()),
        ]
    )
    assert [(r.label, r.level) for r in found] == [("model, turn 1", 1), ("model, turn 1", 1)]


def test_a_run_without_times_says_so():
    assert "gave no times" in timeline_text(
        [e.RunStart(), e.Started(call_id="c", name="x"), e.End()]
    )


def test_names_and_notes_reach_the_terminal_without_escape_sequences():
    segments = (Segment("tool", 0.0, 1.0),)
    row = TimeRow(label="send\x1b[2Jx", segments=segments, note="no\u202eway")
    assert not set(_label(row) + _seconds(row)) & {"\x1b", "\u202e"}


@pytest.mark.parametrize("key", ["id", "node_id"])
def test_nodes_of_a_graph_of_thought_have_a_row_each(key):
    times = [("start", 1.0, "a"), ("start", 2.0, "b"), ("complete", 5.0, "a"), ("failed", 9.0, "b")]
    log = [
        e.Extension(namespace="loom", name=f"got_node_{name}", payload={key: node}, ts=ts)
        for name, ts, node in times
    ]
    assert [(row.label, row.seconds) for row in list_time_rows(log)] == [("a", 4.0), ("b", 7.0)]
