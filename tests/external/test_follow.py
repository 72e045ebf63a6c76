"""A remote run put in order, each event once, over any sequence of broken connections; without a
network.
"""

import random

import pytest

from agent_nb import events as ev
from agent_nb.codecs.detect import named
from agent_nb.events.event_json import encode_event
from agent_nb.events.log import EventLog
from agent_nb.external.follow import Follower
from agent_nb.server.filters import Filter
from agent_nb.server.frames import Frames
from agent_nb.server.hub import Hub
from agent_nb.wire.sse import Frame, SSEDecoder


def a_run(answers=6):
    """Return a hub with one finished run `r` and its log: blocks with deltas, calls, results."""
    log, hub = EventLog("r"), Hub()
    hub.attach(log)
    log.append(ev.User(content="hi é \u2028"))
    for i in range(answers):
        for piece in ("The ", "answer ", str(i)):
            log.append(ev.Delta(of="respond", block=f"b{i}", text=piece))
        log.append(ev.Respond(content=f"The answer {i}", block=f"b{i}"))
        log.append(ev.Call(call_id=f"c{i}", name="sh"))
        log.append(ev.Result(call_id=f"c{i}", name="sh", content="x"))
    log.append(ev.End())
    return hub, log


def answer(hub, after):
    """Return the bytes that a server sends for a connection that resumes after an id."""
    subscription = hub.subscribe("r", Filter(internal=True), after=after)
    frames, out = Frames(named("canonical")[0], "", "sse"), b""
    while taken := subscription.take():
        out += frames.encode(taken)
    return out


def follow(connections):
    """Follow over connections (functions from the last id to bytes); return the follower and the
    log.
    """
    follower, log = Follower(), EventLog("r")
    for connection in connections:
        if follower.over:
            break
        decoder = SSEDecoder()
        follower.begin_connection()
        for frame in decoder.feed(connection(follower.last_id)):
            for event in follower.feed(frame):
                log.append(event)
    return follower, log


def stored(log):
    return [encode_event(e) for e in log]


def test_a_cut_at_every_byte_and_event_boundary_loses_nothing():
    hub, log = a_run(1)
    whole = len(answer(hub, ""))
    for cut in range(whole + 1):
        follower, got = follow(
            [lambda after, cut=cut: answer(hub, after)[:cut], lambda after: answer(hub, after)]
        )
        assert stored(got) == stored(log)
        assert follower.over


def test_300_random_runs_of_cuts_repeats_and_disorder_give_the_uncut_log():
    hub, log = a_run()
    rng = random.Random(11)
    for _ in range(300):
        past = []

        def connection(after, past=past):
            # a proxy may answer for an older id, bring an old answer again, swap frames, and cut at
            # any byte
            seen = after if rng.random() < 0.7 else rng.choice([*past, ""])
            past.append(after)
            parts = [p + b"\n\n" for p in answer(hub, seen).split(b"\n\n") if p]
            for _ in range(rng.randint(0, 4)):
                i, j = rng.randrange(len(parts)), rng.randrange(len(parts))
                parts[i], parts[j] = parts[j], parts[i]
            if rng.random() < 0.4:
                parts[0:0] = parts[rng.randrange(len(parts)) :]
            data = b"".join(parts)
            return data[: rng.randint(0, len(data))]

        endless = iter(lambda: connection, None)
        follower, got = follow(endless)
        assert stored(got) == stored(log)
        assert follower.over


def test_deltas_come_once_and_in_their_place():
    hub, _ = a_run(2)
    data = answer(hub, "")
    decoder, follower = SSEDecoder(), Follower()
    frames = decoder.feed(data)
    texts = [e.text for f in frames[:3] for e in follower.feed(f) if e.type == "delta"]
    follower.begin_connection()
    again = SSEDecoder().feed(answer(hub, follower.last_id))
    texts += [e.text for f in [*frames[:3], *again] for e in follower.feed(f) if e.type == "delta"]
    assert texts == ["The ", "answer ", "0", "The ", "answer ", "1"]


def test_events_that_nobody_has_are_an_error_in_the_log_and_it_goes_on():
    hub = Hub(keep=4)
    channel = hub.open("r")
    for i in range(20):
        channel.publish(ev.Think(content=str(i), run="r"))
    channel.publish(ev.End(run="r"))
    first = Frame("message", encode_event(ev.Think(content="0", run="r", seq=1)).decode(), "1")
    follower, log = Follower(), EventLog("r")
    frames = [first, *SSEDecoder().feed(answer(hub, "1"))]
    for event in [e for f in frames for e in follower.feed(f)]:
        log.append(event)
    assert [e.type for e in log][:2] == ["think", "error"]
    assert (log[1].code, log[1].run) == ("gap", "r")
    assert "no longer there" in log[1].message
    assert [e.seq for e in log] == list(range(1, len(log) + 1))
    assert log.ended
    assert follower.last_id == "21"


def test_a_server_that_does_not_know_our_place_repeats_nothing():
    hub, log = a_run(1)
    follower = Follower()
    got = EventLog("r")
    for frame in SSEDecoder().feed(answer(hub, "")[:400]):
        for event in follower.feed(frame):
            got.append(event)
    data = b'event: gap\ndata: {"run":"r","reason":"unknown","after":"x","missed":0}\n\n' + answer(
        hub, ""
    )
    for frame in SSEDecoder().feed(data):
        for event in follower.feed(frame):
            got.append(event)
    assert stored(got) == stored(log)


@pytest.mark.parametrize(
    "data",
    [
        "",
        "not json",
        "[]",
        "5",
        '{"type":"user"}',
        '{"type":"user","seq":-3}',
        "[" * 50000,
        '{"type":"end","seq":1e9}',
    ],
)
def test_what_is_no_event_of_the_run_is_passed_over(data):
    follower = Follower()
    assert follower.feed(Frame("message", data, "1")) == []
    assert not follower.over


def test_nothing_comes_after_the_end():
    follower = Follower()
    end = Frame("message", '{"type":"end","seq":1}', "1")
    assert len(follower.feed(end)) == 1
    assert follower.feed(Frame("message", '{"type":"user","seq":2}', "2")) == []


def test_what_waits_is_bounded():
    follower = Follower()
    for seq in range(2, 10_000):
        follower.feed(Frame("message", f'{{"type":"think","seq":{seq}}}', str(seq)))
    assert len(follower._waiting) <= 4096
    assert follower.is_waiting
    came = follower.feed(Frame("message", '{"type":"think","seq":1}', "1"))
    assert [event.seq for event in came] == list(range(1, 4098))


def test_a_gap_larger_than_any_run_is_ignored():
    follower = Follower()
    gap = Frame("gap", f'{{"missed": {"9" * 4300}, "reason": "evicted"}}')
    assert follower.feed(gap) + follower.feed(gap) == []


def test_an_event_that_waits_follows_the_gap_before_it():
    follower = Follower()
    events = (ev.User(content="hi", seq=1), ev.End(seq=5))
    for event in events:
        follower.feed(Frame("message", encode_event(event).decode()))
    passed = follower.feed(Frame("gap", '{"missed": 3, "reason": "evicted"}'))
    assert [(event.type, event.seq) for event in passed] == [("error", 2), ("end", 3)]
    assert follower.over


def test_a_gap_of_less_than_no_events_repeats_none():
    hub, _ = a_run()
    follower, frames = Follower(), SSEDecoder().feed(answer(hub, ""))
    for frame in frames[:12]:
        follower.feed(frame)
    assert follower.feed(Frame("gap", '{"missed": -9}')) == []
    assert not any(follower.feed(frame) for frame in frames[:12])


def follow_to(*seqs):
    """Return a follower that was fed the events of these numbers."""
    follower = Follower()
    for seq in seqs:
        follower.feed(Frame("message", f'{{"type":"think","seq":{seq}}}', str(seq)))
    return follower


@pytest.mark.parametrize("after", ["3", "1"])
def test_a_gap_that_comes_twice_skips_its_events_once(after):
    missed = 7 if after == "1" else 5
    gap = Frame("gap", f'{{"reason":"evicted","after":"{after}","missed":{missed}}}')
    follower = follow_to(1, 2, 3)
    assert [event.message[:9] for event in follower.feed(gap)] == ["5 events "]
    follower.begin_connection()
    assert follower.feed(gap) == []
    assert follower.last_id == "8"


@pytest.mark.parametrize("after", ["9", "0"])
def test_a_gap_that_is_not_after_the_newest_event_skips_nothing(after):
    gap = Frame("gap", f'{{"reason":"evicted","after":"{after}","missed":3}}')
    follower = follow_to(1, 2, 3)
    assert follower.feed(gap) == []
    assert follower.last_id == "3"


def test_events_that_wait_within_a_gap_are_not_missing():
    follower = follow_to(1, 5, 9)
    passed = follower.feed(Frame("gap", '{"reason":"evicted","after":"1","missed":6}'))
    assert [(event.type, event.seq) for event in passed] == [
        ("error", 2),
        ("think", 3),
        ("error", 4),
    ]
    assert [event.message[0] for event in passed if event.type == "error"] == ["3", "2"]
    assert (follower.last_id, follower.is_waiting) == ("7", True)


def test_a_gap_around_the_end_of_the_run_adds_nothing_behind_it():
    follower = follow_to(1)
    follower.feed(Frame("message", '{"type":"end","seq":3}', "3"))
    passed = follower.feed(Frame("gap", '{"reason":"evicted","after":"1","missed":6}'))
    assert [event.type for event in passed] == ["error", "end"]


def test_nothing_that_waits_behind_the_end_is_passed_on():
    follower = follow_to(1, 4)
    follower.feed(Frame("message", '{"type":"end","seq":3}', "3"))
    passed = follower.feed(Frame("message", '{"type":"think","seq":2}', "2"))
    assert [event.type for event in passed] == ["think", "end"]
    assert follower.over
