"""Fan-out of runs: filters, resume, slow and failing readers, many threads."""

import threading

import pytest

from agent_nb import events as ev
from agent_nb.errors import UsageError
from agent_nb.events.log import EventLog
from agent_nb.server.channel import Gap
from agent_nb.server.filters import Filter
from agent_nb.server.hub import Hub

ALL = Filter(internal=True)


@pytest.fixture
def published(make_hub):
    """Return a function that makes a hub and the log of a run `r` with `count` thoughts."""

    def published(count=5, *, keep=20_000, ended=True, deltas=0):
        hub, log = make_hub(keep=keep, epoch=7), EventLog("r")
        hub.attach(log)
        for i in range(count):
            for piece in range(deltas):
                log.append(ev.Delta(of="think", block=f"b{i}", text=str(piece)))
            log.append(ev.Think(content=str(i), block=f"b{i}"))
        if ended:
            log.append(ev.End())
        return hub, log

    return published


@pytest.fixture
def evicted(make_hub):
    """A hub with a run `r` without a log whose first events are gone."""
    hub = make_hub(keep=8, entries=100)
    channel = hub.open("r")
    for i in range(1000):
        channel.publish(ev.Think(content=str(i)))
        if not i % 8:
            hub.settle()
    return hub


def ids(taken):
    return [e.id for e in taken if not isinstance(e, Gap)]


def drain(subscription):
    out = []
    while batch := subscription.take():
        out += batch
    return out


# Fan-out and resume.


def test_a_late_subscriber_gets_the_whole_run_and_then_it_is_over(published):
    hub, log = published()
    subscription = hub.subscribe("r")
    assert [e.event for e in subscription.take()] == list(log)
    assert (subscription.take(), subscription.closed, subscription.reason) == ([], True, "ended")
    assert hub.listeners() == 0


def test_a_reader_stays_listed_at_every_moment_while_another_one_leaves():
    hub = Hub()
    hub.attach(EventLog("r"))
    leaving, staying = hub.subscribe("r"), hub.subscribe("r")
    listed = []

    class Watched(dict):
        def pop(self, *args):
            popped = super().pop(*args)
            listed.append(self.get("r", []))
            return popped

        def __setitem__(self, run, readers):
            super().__setitem__(run, readers)
            listed.append(readers)

    hub._subscriptions = Watched(hub._subscriptions)
    leaving.close()
    assert listed
    assert all(staying in readers for readers in listed)


def test_events_come_as_they_happen(published):
    hub, log = published(1, ended=False)
    subscription = hub.subscribe("r")
    assert ids(subscription.take()) == ["1"]
    log.append(ev.Delta(of="think", block="x", text="a"))
    log.append(ev.Think(content="a", block="x"))
    assert ids(subscription.take()) == ["1.7.1", "2"]


@pytest.mark.parametrize("deltas", [0, 3])
def test_resuming_after_any_id_gives_exactly_what_came_after_it(deltas, published):
    hub, _ = published(4, deltas=deltas)
    everything = ids(drain(hub.subscribe("r")))
    for number, last in enumerate(everything, 1):
        assert ids(drain(hub.subscribe("r", after=last))) == everything[number:]


@pytest.mark.parametrize(
    "bad",
    ["99", "3.7.1", "3.9.1", "x", "-1", "1e3", "²", "9" * 400, "r-3", "1.", ".5", "1.2.3.4", "1.2"],
)
def test_an_id_that_the_run_never_had_is_said_and_everything_follows(bad, published):
    hub, _ = published(2)
    taken = drain(hub.subscribe("r", after=bad))
    assert taken[0] == Gap("r", "unknown", bad[:100])
    assert ids(taken) == ["1", "2", "3"]


def test_events_that_left_the_buffer_come_from_the_log(published):
    hub, log = published(50, keep=8, deltas=2)
    taken = drain(hub.subscribe("r", after="10"))
    assert not any(isinstance(e, Gap) for e in taken)
    assert [e.event for e in taken if not e.n] == list(log)[10:]


def test_events_that_left_the_buffer_of_a_run_without_a_log_are_a_gap(evicted):
    taken = drain(evicted.subscribe("r", after="2"))
    first = taken[1].seq
    assert taken[0] == Gap("r", "evicted", "2", first - 3)
    assert first > 500
    assert ids(taken) == [str(i) for i in range(first, 1001)]


def test_a_reader_may_ask_to_be_disconnected_instead(evicted):
    subscription = evicted.subscribe("r", after="2", overflow="disconnect")
    assert [type(e) for e in subscription.take()] == [Gap]
    assert (subscription.closed, subscription.reason) == (True, "evicted")


def test_buffers_are_bounded():
    hub = Hub(keep=10)
    channel = hub.open("r")
    for i in range(1000):
        channel.publish(ev.Think(content=str(i)))
    assert len(channel._entries) <= 12


def test_a_run_without_a_log_numbers_its_events_and_takes_none_at_its_end():
    channel = Hub().open("r")
    channel.publish(ev.Think())
    channel.publish(ev.End())
    assert channel.seq == 2
    with pytest.raises(ValueError, match="has ended"):
        channel.publish(ev.Think())


def test_the_end_of_a_sub_agent_is_not_the_end_of_the_run(published):
    hub, log = published(1, ended=False)
    log.append(ev.End(span="c1"))
    subscription = hub.subscribe("r")
    subscription.take()
    assert not subscription.closed
    assert hub.runs()[0].status == "running"


# Runs.


def test_a_run_id_is_never_used_again(published):
    hub, log = published()
    assert hub.attach(log) is hub.channel("r")
    with pytest.raises(UsageError, match="never used again"):
        hub.attach(EventLog("r"))


def test_attaching_twice_publishes_once(published):
    hub, log = published(2, ended=False)
    hub.attach(log)
    log.append(ev.End())
    assert len(drain(hub.subscribe("r"))) == 3


def test_an_unknown_run_is_an_error(make_hub):
    with pytest.raises(UsageError, match="no run 'x'"):
        make_hub().subscribe("x")


def test_the_list_of_runs_tells_what_they_are(make_hub):
    hub, log = make_hub(), EventLog("r", clock=lambda: 5.0)
    hub.attach(log, conversation="main")
    log.append(ev.RunStart(agent="helper"))
    log.append(ev.User(content="x" * 500))
    info = hub.runs()[0]
    assert (info.run, info.conversation, info.status, info.agent, info.started, info.events) == (
        "r",
        "main",
        "running",
        "helper",
        5.0,
        2,
    )
    assert len(info.prompt) == 200


def test_old_ended_runs_are_forgotten_but_never_a_running_one(make_hub):
    hub = make_hub(runs=2)
    for name in ("a", "b", "c", "d"):
        channel = hub.open(name)
        if name != "a":
            channel.publish(ev.End())
        hub.settle()
    hub.open("e")
    assert [i.run for i in hub.runs()] == ["a", "d", "e"]


# Filters.


def test_filters_hold_for_replayed_and_live_events_alike(published):
    hub, log = published(0, ended=False)
    internal = ev.Extension(namespace="looopy", name="internal:x")
    kinds = [
        ev.Node(name="llm", span="l"),
        ev.Think(content="t"),
        internal,
        ev.Respond(content="r"),
    ]
    think = frozenset({"think"})
    wanted = [
        Filter(),
        Filter(kinds=think),
        Filter(exclude=think),
        ALL,
        Filter(custom=lambda e: e.type == "respond"),
    ]
    expected = [
        ["think", "respond"],
        ["think"],
        ["respond"],
        ["node", "think", "extension", "respond"],
        ["respond"],
    ]
    live = [hub.subscribe("r", f) for f in wanted]
    for event in kinds:
        log.append(event)
    replayed = [hub.subscribe("r", f) for f in wanted]
    for subscription, want in zip([*live, *replayed], expected * 2, strict=True):
        assert [e.event.type for e in drain(subscription)] == want


def test_deltas_can_be_left_out_and_follow_the_kind_they_belong_to(published):
    hub, _ = published(1, deltas=2)
    assert ids(drain(hub.subscribe("r", Filter(deltas=False)))) == ["1", "2"]
    assert ids(drain(hub.subscribe("r", Filter(kinds=frozenset({"respond"}))))) == []


def test_a_path_pattern_selects_a_run_and_what_runs_inside_it(make_hub):
    hub = make_hub()
    logs = {name: EventLog(name) for name in ("a", "b")}
    for log in logs.values():
        hub.attach(log)
    other, inside = (hub.subscribe(name, Filter(path="b/**")) for name in ("a", "b"))
    for i in range(3):
        for name, log in logs.items():
            log.append(ev.Think(content=f"{name}{i}", span="s" if i == 1 else ""))
    assert [e.event.content for e in drain(inside)] == ["b0", "b1", "b2"]
    assert drain(other) == []
    logs["b"].append(ev.End())
    assert not other.closed


# Bad readers.


def test_a_filter_that_raises_stops_only_its_own_subscription(published):
    hub, log = published(1, ended=False)

    def broken(_event):
        raise RuntimeError("mine")

    bad, good = hub.subscribe("r", Filter(custom=broken)), hub.subscribe("r")
    log.append(ev.End())
    assert bad.take() == []
    assert (bad.reason, str(bad.fault)) == ("fault", "mine")
    assert len(good.take()) == 2
    assert not log.faults


def test_a_waker_that_raises_stops_only_its_own_subscription(published):
    hub, log = published(1, ended=False)
    bad, good = hub.subscribe("r"), hub.subscribe("r")
    calls = []
    bad.wake_with(lambda: 1 / 0)
    good.wake_with(lambda: calls.append(1))
    for subscription in (bad, good):
        drain(subscription)
    log.append(ev.Think())
    assert bad.reason == "fault"
    assert calls == [1]
    assert not log.faults


def test_a_reader_is_woken_once_until_it_has_taken_everything(published):
    hub, log = published(0, ended=False)
    subscription = hub.subscribe("r")
    calls = []
    subscription.wake_with(lambda: calls.append(1))
    for _ in range(3):
        log.append(ev.Think())
    hub.settle()
    assert calls == [1]
    drain(subscription)
    log.append(ev.Think())
    hub.settle()
    assert calls == [1, 1]


def test_a_reader_whose_filter_passes_nothing_is_woken_later(published):
    hub, log = published(0, ended=False)
    subscription = hub.subscribe("r", Filter(kinds=frozenset({"respond"})))
    calls = []
    subscription.wake_with(lambda: calls.append(1))
    for _ in range(2000):
        log.append(ev.Think())
    assert subscription.take() == []
    log.append(ev.Respond(content="x"))
    hub.settle()
    assert len(calls) == 2
    assert len(subscription.take()) == 1


def test_closing_the_hub_ends_every_subscription_and_wakes_its_reader(published):
    hub, _ = published(1, ended=False)
    subscription = hub.subscribe("r")
    calls = []
    subscription.wake_with(lambda: calls.append(1))
    hub.close()
    assert calls == [1]
    assert [e.seq for e in subscription.take()] == [1]
    assert (subscription.closed, subscription.reason) == (True, "closed")


def test_a_closed_hub_gives_what_there_was_and_waits_for_no_more(published):
    hub, log = published(3, ended=False)
    subscription, idle = hub.subscribe("r"), hub.subscribe("r", after="3")
    hub.close()
    log.append(ev.Think(content="later"))
    assert (subscription.closed, [e.seq for e in subscription.take(2)]) == (False, [1, 2])
    assert subscription.take(1)[0].seq == 3
    assert subscription.closed
    assert idle.take(1)[0].seq == 4  # it came before the reader looked
    assert idle.closed
    assert hub.subscribe("r").closed
    assert hub.subscribe("r").closed
    log.append(ev.End())
    assert hub.listeners() == 0


def test_a_reader_that_is_ended_while_it_looks_gets_what_came_before(monkeypatch):
    hub, log = Hub(), EventLog("r")
    hub.attach(log)
    log.append(ev.Think(content="first"))
    subscription = hub.subscribe("r")
    assert len(drain(subscription)) == 1
    channel = hub.channel("r")
    read = channel.read

    def end_after_reading(*where):
        found = read(*where)
        monkeypatch.setattr(channel, "read", read)
        log.append(ev.Think(content="last"))  # as another thread does
        hub.close()
        return found

    monkeypatch.setattr(channel, "read", end_after_reading)
    assert (subscription.take(), subscription.closed) == ([], False)
    assert [entry.event.content for entry in subscription.take()] == ["last"]
    assert subscription.closed


def test_many_threads_take_the_same_run_exactly_once_each(published):
    hub, log = published(0, ended=False)
    results = [[] for _ in range(8)]

    def read(out):
        ready = threading.Event()
        subscription = hub.subscribe("r", ALL)
        subscription.wake_with(ready.set)
        while not subscription.closed:
            taken = subscription.take(limit=7)
            out += [e.id for e in taken]
            if not taken and not subscription.closed:
                ready.wait(20)
                ready.clear()

    threads = [threading.Thread(target=read, args=(out,)) for out in results]
    for thread in threads:
        thread.start()
    for i in range(2000):
        log.append(ev.Delta(of="think", block=str(i), text="x") if i % 3 else ev.Think(content="x"))
    log.append(ev.End())
    for thread in threads:
        thread.join(30)
    expected = ids(drain(hub.subscribe("r", ALL)))
    assert len(expected) == 2001
    assert all(out == expected for out in results)
    assert not log.faults


def test_a_log_that_grows_while_it_is_attached_is_published_in_order():
    for _ in range(20):
        log, hub = EventLog("r"), Hub()
        for _ in range(200):
            log.append(ev.Think())
        writer = threading.Thread(
            target=lambda log=log: [log.append(ev.Think()) for _ in range(300)]
        )
        writer.start()
        hub.attach(log)
        writer.join(20)
        log.append(ev.End())
        assert ids(drain(hub.subscribe("r"))) == [str(i) for i in range(1, 502)]
