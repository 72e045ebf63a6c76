"""All calls that a record can run again, wherever they stand in it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_nb import events as e
from agent_nb.errors import UsageError
from agent_nb.events.log import EventLog
from agent_nb.notebook.files.run_diff import list_comparable_parts
from agent_nb.record import recorded_calls
from agent_nb.record.countersign import Signatures
from agent_nb.record.inner_records import InnerRecords
from agent_nb.record.record import events_of, run_record
from agent_nb.record.recorded_calls import RecordedCall


def call(name, code, *, span="", status="ok", started=True, approved=None):
    """Return the events of one call, whose id is its code."""
    where = {"span": span, "parent": span}
    yield e.Call(call_id=code, name=name, args={"code": code}, turn=1, **where)
    if approved is not None:
        yield e.Approval(call_id=code, stage="decided", decision="allow", args=approved, **where)
    if started:
        yield e.Started(call_id=code, name=name, **where)
    yield e.Result(call_id=code, name=name, status=status, content="", **where)


def record(*parts, rows=None):
    log = EventLog("run")
    log.append(e.RunStart())
    for part in parts:
        for event in part:
            log.append(event)
    if rows:
        log.append(e.State(kind=InnerRecords.KIND, payload=InnerRecords(rows).to_payload()))
    log.append(e.End())
    return run_record(log, cap=10**8)


def listed(made):
    return [(c.rows, c.agents, c.args["code"]) for c in RecordedCall.list_all(events_of(made))]


def test_calls_are_found_in_records_inside_records_inside_records():
    deepest = record(call("python", "three"))
    middle = record(call("python", "two"), rows={"inner": deepest})
    whole = record(call("python", "one"), rows={"b": middle, "a": record(call("shell", "x"))})
    assert listed(whole) == [
        ((), "", "one"),
        (("a",), "", "x"),
        (("b",), "", "two"),
        (("b", "inner"), "", "three"),
    ]


def test_agents_nested_by_a_forger_are_not_compared_with_each_other():
    """With the square of their number for each call, they would exceed the test's time limit."""
    names = [f"c{n}" for n in range(2_000)]
    log = [each for n, name in enumerate(names) for each in call("a", name, span=f"c{n - 1}")]
    assert len(RecordedCall.list_all(log)) == 2_000


def test_calls_of_sub_agents_are_named_with_their_agents():
    outer, inner = call("helper", "h"), call("python", "h/p", span="h")
    assert listed(record(outer, inner)) == [((), "", "h"), ((), "helper", "h/p")]


@pytest.mark.parametrize("status", ["denied", "cancelled", "timeout"])
def test_calls_that_did_not_end_by_themselves_cannot_run_again(status):
    assert listed(record(call("python", "x", status=status))) == []
    assert listed(record(call("python", "x", started=False))) == []


def test_the_arguments_are_those_that_were_approved():
    changed = record(call("python", "x", approved={"code": "other"}))
    assert listed(changed) == [((), "", "other")]
    heads = {item.head: item.body for item in list_comparable_parts(events_of(changed))}
    assert "other" in heads["decision python"]


def test_equal_calls_count_together_in_rows_only():
    row = record(call("python", "same"))
    whole = record(call("python", "same"), rows={str(n): row for n in range(5)})
    found = RecordedCall.count_equal(RecordedCall.list_all(events_of(whole)))
    assert [(bool(c.rows), count) for c, count in found] == [(False, 1), (True, 5)]


def test_spans_that_stand_in_each_other_end():
    a = e.Call(call_id="a", name="a", span="b")
    b = e.Call(call_id="b", name="b", span="a")
    assert {c for _, c, _ in ((1, c.agents, 2) for c in RecordedCall.list_all([a, b]))} == set()
    assert len(recorded_calls.LogCalls([a, b]).list_agents("a")) == 2


def test_what_cannot_be_listed_is_not_signed(monkeypatch):
    monkeypatch.setattr(recorded_calls, "MOST_RECORDS", 3)
    whole = record(rows={str(n): record() for n in range(4)})
    with pytest.raises(UsageError, match="more records inside"):
        RecordedCall.digest_all(whole)
    with pytest.raises(UsageError, match="more records inside"):
        Signatures({}).add(whole, "", object())
    assert Signatures({}).describe(whole, "", []) == []


def test_records_inside_records_have_a_bottom():
    made = record(call("python", "x"))
    for _ in range(recorded_calls.DEEPEST + 1):
        made = record(rows={"r": made})
    with pytest.raises(UsageError, match="more records inside"):
        RecordedCall.list_all(events_of(made))


@given(st.lists(st.sampled_from(["a", "b", "c"]), max_size=6), st.randoms())
def test_the_digest_knows_each_call_and_no_order_of_rows(codes, random):
    rows = {str(n): record(call("python", code)) for n, code in enumerate(codes)}
    shuffled = list(rows.items())
    random.shuffle(shuffled)
    shown, inside = RecordedCall.digest_all(record(rows=rows))
    assert (shown, inside) == RecordedCall.digest_all(record(rows=dict(shuffled)))
    assert inside == bool(codes)
    more = record(rows={**rows, "more": record(call("python", "d"))})
    assert RecordedCall.digest_all(more)[0] != shown


def test_the_digest_is_the_same_in_another_home(monkeypatch):
    made = record(call("python", "open('/home/me/x')"))
    monkeypatch.setenv("HOME", "/home/me")
    at_home = run_record(events_of(made))
    shown = RecordedCall.digest_all(at_home)[0]
    monkeypatch.setenv("HOME", "/home/you")
    assert RecordedCall.digest_all(at_home)[0] == shown
