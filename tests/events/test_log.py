"""The event log: numbering, subscription, folding of deltas, NDJSON."""

import itertools
import os
import threading

import pytest
from helpers.forked_child import is_true_in_child
from hypothesis import given
from hypothesis import strategies as st

from agent_nb.events import (
    Call,
    Delta,
    End,
    Node,
    Progress,
    Respond,
    RunStart,
    Think,
    User,
)
from agent_nb.events import (
    log as log_file,
)
from agent_nb.events.log import EventLog
from agent_nb.host import imports, inherited
from agent_nb.tools import capture


def ticking(step=0.0375, start=1000.0):
    numbers = itertools.count()
    return lambda: start + next(numbers) * step


def filled(clock=None):
    log = EventLog("r1", clock=clock or ticking())
    log.append(RunStart(model="m"))
    log.append(User(content="hi"))
    for text in ("one ", "two ", "three"):
        log.append(Delta(block="1.1", of="respond", text=text, turn=1))
    log.append(Respond(block="1.1", content="one two three", turn=1))
    log.append(End())
    return log


def test_seq_counts_from_one_without_gaps():
    assert [e.seq for e in filled()] == [1, 2, 3, 4]


def test_time_never_goes_back_and_is_whole_milliseconds():
    times = iter([5.00049, 4.0, 6.12345, 6.0])
    log = EventLog(clock=lambda: next(times))
    stamped = [log.append(User()) for _ in range(4)]
    assert [e.ts for e in stamped] == [5.0, 5.0, 6.123, 6.123]


def test_time_never_goes_back_after_recorded_events():
    log = EventLog.of_events([User(ts=9e9)])
    assert log.append(End()).ts == 9e9


def test_a_callable_that_subscribes_twice_is_detached_once():
    log, seen = EventLog(), []
    add = seen.append
    detach = log.subscribe(add)
    log.subscribe(add)
    detach()
    detach()
    log.append(User())
    assert len(seen) == 1


def test_deltas_are_passed_on_but_not_stored():
    log, seen = EventLog(), []
    log.subscribe(seen.append)
    log.append(Delta(block="1", of="respond", text="x"))
    assert [e.type for e in seen] == ["delta"]
    assert len(log) == 0


def test_deltas_are_regenerated_exactly_with_their_times():
    log, seen = EventLog("r", clock=ticking(0.0371)), []
    log.append(RunStart())
    log.subscribe(seen.append)
    for text in ("a", "bc", "déf", "🙂"):
        log.append(Delta(block="1.1", of="think", text=text, turn=1, origin="model"))
    log.append(Think(block="1.1", content="abcdéf🙂", turn=1, origin="model"))
    assert list(log.deltas()) == [e for e in seen if isinstance(e, Delta)]


@given(
    st.lists(
        st.tuples(st.text(min_size=1, max_size=8), st.integers(0, 5000)), min_size=1, max_size=20
    )
)
def test_any_deltas_are_regenerated(pieces):
    now = [1_700_000_000.0]
    log, seen = EventLog("r", clock=lambda: now[0]), []
    log.append(RunStart())
    log.subscribe(seen.append)
    for text, gap in pieces:
        now[0] += gap / 1000
        log.append(Delta(block="b", of="respond", text=text))
    log.append(Respond(block="b", content="".join(t for t, _ in pieces)))
    assert list(log.deltas()) == [e for e in seen if isinstance(e, Delta)]


def test_call_arguments_regenerate_from_the_raw_text():
    log = EventLog()
    for text in ('{"a"', ":1}"):
        log.append(Delta(block="1.1", of="call", name="f", text=text))
    log.append(Call(block="1.1", name="f", raw_args='{"a":1}', args={"a": 1}))
    assert [d.text for d in log.deltas()] == ['{"a"', ":1}"]


def test_a_block_that_its_deltas_do_not_add_up_to_has_no_chunks():
    log = EventLog()
    log.append(Delta(block="1.1", of="respond", text="abc"))
    assert log.append(Respond(block="1.1", content="something else")).chunks == ""


def test_a_late_subscriber_gets_the_prefix_first():
    log, seen = EventLog(), []
    log.append(RunStart())
    log.subscribe(seen.append)
    log.append(User())
    assert [e.type for e in seen] == ["run_start", "user"]


def test_a_subscriber_in_another_thread_gets_each_event_once_in_order():
    log, numbers, begun, appended = EventLog(), [], threading.Event(), threading.Event()
    log.append(RunStart())
    log.append(User())

    def subscriber(event):
        begun.set()
        appended.wait(10)  # meanwhile the next event is appended
        numbers.append(event.seq)

    thread = threading.Thread(target=log.subscribe, args=(subscriber,))
    thread.start()
    begun.wait(10)
    log.append(User())
    appended.set()
    thread.join()
    log.append(User())
    assert numbers == [1, 2, 3, 4]


def test_a_late_subscriber_that_raises_gets_no_more():
    log, calls = filled(), []

    def broken(event):
        calls.append(event)
        raise RuntimeError("boom")

    log.subscribe(broken)
    assert (len(calls), len(log.faults)) == (1, 1)


def test_a_raising_subscriber_is_detached_and_the_others_go_on():
    log, seen, calls = EventLog(), [], []

    def broken(event):
        calls.append(event)
        raise RuntimeError("boom")

    log.subscribe(broken)
    log.subscribe(seen.append)
    log.append(RunStart())
    log.append(End())
    assert len(calls) == 1
    assert len(seen) == 2
    assert str(log.faults[0][1]) == "boom"


def test_detaching_stops_the_news():
    log, seen = EventLog(), []
    detach = log.subscribe(seen.append)
    detach()
    log.append(RunStart())
    assert seen == []


def test_nothing_comes_after_the_end():
    with pytest.raises(ValueError, match="has ended"):
        filled().append(User())


def test_the_end_of_a_sub_agent_does_not_end_the_run():
    log = EventLog()
    log.append(End(span="child"))
    log.append(User())
    assert not log.ended


def test_recorded_events_keep_their_numbers_and_times():
    recorded = list(filled())
    log = EventLog("other", clock=ticking())
    for event in recorded:
        log.append(event)
    assert list(log) == recorded


def test_a_recorded_event_out_of_order_is_refused():
    with pytest.raises(ValueError, match="out of order"):
        EventLog().append(User(seq=5))


def test_ndjson_round_trip_is_byte_identical():
    text = filled().to_ndjson()
    assert EventLog.from_ndjson(text).to_ndjson() == text


def test_ndjson_names_the_broken_line():
    with pytest.raises(ValueError, match="line 2"):
        EventLog.from_ndjson('{"type":"user"}\nnonsense\n')


def test_ndjson_names_the_line_of_a_lone_surrogate():
    with pytest.raises(ValueError, match="line 2 is not a JSON object"):
        EventLog.from_ndjson('{"type":"user"}\n{"type":"user","content":"\ud800"}\n')


def test_a_line_separator_inside_a_string_does_not_split_a_line():
    log = EventLog()
    log.append(User(content="a\u2028b\x85c"))
    assert EventLog.from_ndjson(log.to_ndjson())[0].content == "a\u2028b\x85c"


def test_of_slices_and_conversation():
    log = filled()
    assert [e.type for e in log.of("user", "end")] == ["user", "end"]
    assert [e.type for e in log.conversation()] == ["user", "respond"]
    assert [e.seq for e in log[1:3]] == [2, 3]


def test_select_matches_the_path():
    log = EventLog("r9")
    log.append(Node(name="n", span="a"))
    log.append(Progress(span="a/b"))
    log.append(User())
    log.append(Progress(span="ab"))
    assert [e.type for e in log.select("r9/a/**")] == ["node", "progress"]
    assert [e.type for e in log.select("r9/a/*")] == ["progress"]
    assert len(log.select("r9/**")) == 4
    assert [e.type for e in log.select("**/b")] == ["progress"]
    assert log.select("r/**") == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="without fork")
@pytest.mark.parametrize(
    "lock",
    [log_file._LOCK, inherited._lock, imports._swapping, capture._lock],
    ids=["log", "inherited", "imports", "capture"],
)
def test_a_lock_that_a_thread_holds_at_a_fork_is_free_in_the_child(lock):
    assert is_true_in_child(lock, lambda: lock.acquire(timeout=2))
