"""Runs over Redis: round trips, several servers, outages, limits. Against a real redis-server."""

import asyncio
import itertools
import logging
import random
import threading
import time

import pytest
from helpers.examples import count_examples
from helpers.redis_server import KEY, PATIENCE, need_redis, until
from helpers.run_server import TOKEN, Rig
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_nb import events as ev
from agent_nb.errors import HubAway, UsageError
from agent_nb.events.event_json import encode_event
from agent_nb.events.log import EventLog
from agent_nb.external.attached_run import attach
from agent_nb.external.connect import Backoff
from agent_nb.server.channel import Gap
from agent_nb.server.filters import Filter
from agent_nb.server.hub import Hub
from agent_nb.server.redis import hub as hub_module
from agent_nb.server.redis.address import parse_address
from agent_nb.server.redis.entries import (
    decode_entry,
    encode_bounded,
    encode_entry,
    split_id,
    stream_id,
)
from agent_nb.server.redis.hub import RedisHub, open_hub
from agent_nb.server.redis.link import Link
from agent_nb.server.redis.outgoing import Limits

pytestmark = pytest.mark.extra
ALL = Filter(internal=True)
QUICK = Backoff(first_wait=0.01, longest_wait=0.1, patience=60, missing=0.5)


@pytest.fixture
def hubs():
    """A function that makes hubs at an address; all are stopped at the end."""
    made = []

    def make(url, **options):
        made.append(RedisHub(parse_address(url), key=KEY, **options))
        return made[-1]

    yield make
    for each in made:
        each.stop()


def drain(subscription):
    out = []
    while batch := subscription.take():
        out += batch
    return out


def read(hub, run, **options):
    """Return what a hub has of a run now."""
    asyncio.run(hub.find(run))
    return drain(hub.subscribe(run, ALL, **options))


def write(log, count, *, pause=0.0):
    """Write blocks of three deltas and an event."""
    for i in range(count):
        for piece in "abc":
            log.append(ev.Delta(of="respond", block=f"b{i}", text=piece))
            time.sleep(pause)
        log.append(ev.Respond(content="abc", block=f"b{i}"))


def in_progress(kernel, count):
    """Return the log of a run in progress, whose first blocks are in Redis."""
    log = EventLog("r")
    kernel.attach(log)
    write(log, count)
    assert kernel.flush()
    return log


# Round trips.

TEXT = st.text(max_size=20)
EVENTS = st.one_of(
    st.builds(ev.Delta, of=st.sampled_from(["think", "respond", "status"]), text=TEXT, block=TEXT),
    st.builds(
        ev.Think, content=TEXT, attributes=st.none() | st.dictionaries(TEXT, TEXT, max_size=2)
    ),
    st.builds(ev.Call, call_id=TEXT, name=TEXT, args=st.dictionaries(TEXT, st.integers() | TEXT)),
    st.builds(ev.Result, content=TEXT | st.lists(st.floats(allow_nan=False, allow_infinity=False))),
    st.builds(ev.Extension, namespace=TEXT, name=TEXT, payload=st.none() | TEXT, span=TEXT),
    st.builds(ev.End, span=st.just("sub")),
    st.builds(ev.Unknown, kind=st.just("new"), payload=st.just({"type": "new", "x": 1})),
)


def published(events):
    """Return the entries of a run."""
    hub = Hub(epoch=7)
    log = EventLog("r", clock=lambda: 1.0)
    hub.attach(log)
    for event in events:
        log.append(event)
    return drain(hub.subscribe("r", ALL))


@given(st.lists(EVENTS, max_size=30))
def test_ids_in_a_stream_increase_strictly_and_entries_come_back_equal(events):
    entries = published(events)
    ids = [split_id(stream_id(e)) for e in entries]
    assert all(a < b for a, b in itertools.pairwise(ids))
    assert all(n == 0 for e, (_, n) in zip(entries, ids, strict=True) if e.event.type != "delta")
    for entry in entries:
        back = decode_entry(stream_id(entry).encode(), encode_entry(entry), "r")
        assert (back.id, encode_event(back.event)) == (entry.id, encode_event(entry.event))


@settings(max_examples=count_examples(25))
@given(events=st.lists(EVENTS, max_size=30))
def test_any_run_that_goes_through_redis_is_read_as_it_was_written(events, redis_server):
    url = redis_server.url
    kernel, server = (RedisHub(parse_address(url), key=KEY, epoch=7) for _ in range(2))
    try:
        log = EventLog("r")
        kernel.attach(log)
        for event in events:
            log.append(event)
        assert kernel.flush(PATIENCE)
        there, here = read(server, "r"), read(kernel, "r")
        assert [(e.id, encode_event(e.event)) for e in there] == [
            (e.id, encode_event(e.event)) for e in here
        ]
    finally:
        kernel.stop()
        server.stop()


@pytest.mark.parametrize(
    "given_",
    [
        [],
        [b"e"],
        [b"x", b"{}"],
        [b"e", b"not json"],
        [b"e", b"[" * 100_000],
        [b"e", b'{"type":"delta"}'],
        [b"e", b'{"type":"think"}', b"p", b"x"],
    ],
)
def test_an_entry_that_is_none_of_ours_is_not_read(given_):
    assert decode_entry(b"5-0", given_, "r") is None


def test_an_entry_cannot_claim_another_run_or_number():
    entry = decode_entry(b"5-0", [b"e", b'{"type":"think","run":"other","seq":9}'], "r")
    assert (entry.event.run, entry.event.seq, entry.id) == ("r", 5, "5")


@pytest.mark.parametrize(
    "event",
    [
        ev.User(
            seq=1, content="short", attachments=({"media_type": "image/png", "data": "x" * 9000},)
        ),
        ev.Result(seq=1, call_id="c", name="f", content="x" * 9000),
        ev.Result(seq=1, call_id="c", content=[1] * 9000),
        ev.Call(seq=1, call_id="c", name="f", args={"x": "y" * 9000}),
        ev.Unknown(seq=1, kind="odd", payload={"type": "odd", "x": "y" * 9000}),
        ev.State(seq=1, kind="s", payload="y" * 9000),
        ev.Error(seq=1, message="y" * 9000),
    ],
)
def test_an_event_beyond_the_limit_is_published_smaller_under_its_number(event):
    data = encode_bounded(event, 4000)
    assert len(data) <= 4000
    assert encode_bounded(event, 4000) == data
    back = decode_entry(b"1-0", [b"e", data], "")
    assert (back.event.seq, back.event.type in (event.type, "error")) == (1, True)
    assert encode_bounded(event) == encode_event(event)


# Several servers.


def test_two_servers_stream_the_same_bytes_of_one_run(redis_server):
    url = redis_server.url
    first, second = Rig(url), Rig(url)
    try:
        run = first.publish("r", ev.RunStart(agent="a"), ev.User(content="hi"))
        bodies = {}

        def get(name, rig, form):
            params = {"internal": "1", **({"format": form} if form else {})}
            bodies[name] = rig.client.get("/runs/r/events", params=params).text

        asked = [(r, f) for r in (first, second) for f in ("", "loom")]
        threads = [threading.Thread(target=get, args=(i, *each)) for i, each in enumerate(asked)]
        for thread in threads:
            thread.start()
        until(lambda: first.hub.listeners("r") == second.hub.listeners("r") == 2)
        write(run.log, 20)
        run.feed(ev.End())
        for thread in threads:
            thread.join(PATIENCE)
        assert bodies[0] == bodies[2]
        assert bodies[1] == bodies[3]
        assert bodies[0].count("\ndata: ") == 20 * 4 + 3
        # and from any id on
        ids = [line[4:] for line in bodies[0].splitlines() if line.startswith("id: ")]
        for last in ids[:-1:9]:
            texts = {
                r.client.get(
                    "/runs/r/events", params={"internal": "1"}, headers={"Last-Event-ID": last}
                ).text
                for r in (first, second)
            }
            assert len(texts) == 1
            assert [x[4:] for x in texts.pop().splitlines() if x.startswith("id: ")] == ids[
                ids.index(last) + 1 :
            ]
    finally:
        first.close()
        second.close()


def test_a_client_from_another_server_finds_its_place_further_on(hubs, redis_server):
    url = redis_server.url
    kernel, server = hubs(url), hubs(url)
    log = in_progress(kernel, 2)
    asyncio.run(server.find("r"))
    server._reader.leave(server.address.key("run", "r", "events"))  # it is slow
    write(log, 3)
    assert kernel.flush()
    assert read(server, "r", after="5") == []
    assert server.channel("r").seq == 5


def test_runs_of_several_kernels_are_listed_in_the_order_of_their_start(hubs, redis_server):
    url = redis_server.url
    kernels, server = [hubs(url) for _ in "ab"], hubs(url)
    for i in range(6):
        log = EventLog(f"run{i}")
        kernels[i % 2].attach(log, conversation=f"talk{i % 2}")
        log.append(ev.User(content=f"question {i}"))
        kernels[i % 2].flush()
    found = asyncio.run(server.list_runs())
    assert [(i.run, i.prompt, i.conversation) for i in found] == [
        (f"run{i}", f"question {i}", f"talk{i % 2}") for i in range(6)
    ]


def test_the_same_run_from_two_kernels_is_one_and_mixes_with_no_other(hubs, redis_server, caplog):
    url = redis_server.url
    log = EventLog("r", clock=lambda: 5.0)
    write(log, 3)
    log.append(ev.End())
    first, replay, other, server = (hubs(url) for _ in range(4))
    first.attach(log)
    assert first.flush()
    replay.attach(EventLog.from_ndjson(log.to_ndjson()))
    assert replay.flush()
    assert replay.faults() == {}
    wrong = EventLog("r")
    wrong.append(ev.User(content="mine"))
    wrong.append(ev.End())
    with caplog.at_level(logging.WARNING, "agent_nb.hub"):
        other.attach(wrong)
        assert other.flush()
    assert "another run has this id" in other.faults()["r"]
    assert "another run has this id" in caplog.text
    assert [e.event for e in read(server, "r")] == list(log)
    assert asyncio.run(server.list_runs())[0].prompt == ""


def test_a_run_that_nobody_reads_is_let_go(hubs, redis_server, monkeypatch):
    monkeypatch.setattr("agent_nb.server.redis.hub.MAINTENANCE_INTERVAL", 0.02)
    url = redis_server.url
    kernel, server = hubs(url), hubs(url)
    in_progress(kernel, 2)
    asyncio.run(server.find("r"))
    subscription = server.subscribe("r")
    with monkeypatch.context() as patch:  # only now: before, a found run waits for its reader
        patch.setattr("agent_nb.server.redis.mirrors.IDLE", 0.05)
        time.sleep(0.3)
        assert server._mirrors.get_mirror("r")
        subscription.close()
        until(lambda: not server._mirrors.get_mirror("r"))
    assert len(server._reader._cursors) == 1
    assert len(read(server, "r")) == 8


def test_a_run_whose_kernel_is_gone_is_away_and_cannot_be_controlled(hubs, redis_server):
    url = redis_server.url
    kernel, server = hubs(url), hubs(url)
    log = EventLog("r")
    kernel.attach(log, cancel=print, approve=print)
    log.append(ev.User(content="x"))
    assert kernel.flush()
    info = asyncio.run(server.list_runs())[0]
    assert (info.status, info.controls) == ("running", ("cancel", "approve"))
    redis_server.command("DEL", kernel.address.key("run", "r", "alive"))
    for info in (asyncio.run(server.list_runs())[0], asyncio.run(server.find("r")).info()):
        assert (info.status, info.controls) == ("away", ())


def test_readers_of_a_run_whose_kernel_is_gone_are_let_go(hubs, redis_server, monkeypatch):
    monkeypatch.setattr("agent_nb.server.redis.hub.MAINTENANCE_INTERVAL", 0.02)
    url = redis_server.url
    kernel, server = hubs(url), hubs(url)
    log = EventLog("r")
    kernel.attach(log)
    log.append(ev.User(content="x"))
    assert kernel.flush()
    asyncio.run(server.find("r"))
    reading = server.subscribe("r")
    woken = threading.Event()
    reading.wake_with(woken.set)
    time.sleep(0.2)
    assert reading._until is None
    kernel.stop()
    assert woken.wait(PATIENCE)
    assert [e.seq for e in reading.take()] == [1]
    assert (reading.closed, reading.reason) == (True, "closed")
    assert asyncio.run(server.find("r")).info().status == "away"


# Limits.


def test_deltas_go_beyond_the_buffer_and_at_the_end_and_all_expires(
    hubs, redis_server, monkeypatch
):
    monkeypatch.setattr("agent_nb.server.redis.hub.MAINTENANCE_INTERVAL", 0.02)
    url = redis_server.url
    kernel = hubs(url, keep=40, limits=Limits(deltas=0.0, lifetime=500))
    log = EventLog("r")
    kernel.attach(log)
    key = kernel.address.key("run", "r", "events")
    for _ in range(20):
        write(log, 10)
        assert kernel.flush()
    held = redis_server.command("XLEN", key)
    assert 200 <= held <= 200 + 50
    log.append(ev.End())
    until(lambda: redis_server.command("XLEN", key) == 201)
    names = redis_server.command("KEYS", f"{kernel.address.prefix}:run:*")
    assert len(names) >= 2
    assert all(0 < redis_server.command("TTL", name) <= 500 for name in names)


def test_a_stream_is_trimmed_and_what_is_gone_is_a_gap(hubs, redis_server):
    url = redis_server.url
    kernel = hubs(url, limits=Limits(entries=100))
    server = hubs(url)
    log = EventLog("r")
    kernel.attach(log)
    for _ in range(10):
        for _ in range(100):
            log.append(ev.Think())
        kernel.flush()
    first = read(server, "r")
    assert type(first[0]) is Gap
    assert first[0].missed == first[1].seq - 1 >= 700
    assert [e.seq for e in first[1:]] == list(range(first[1].seq, 1001))


def test_a_hole_in_the_middle_is_a_gap_for_every_reader(hubs, redis_server):
    url = redis_server.url
    server = hubs(url)
    kernel = hubs(url)
    log = EventLog("r")
    kernel.attach(log)
    log.append(ev.Think(content="1"))
    assert kernel.flush()
    asyncio.run(server.find("r"))
    live = server.subscribe("r")
    assert len(live.take()) == 1
    key = server.address.key("run", "r", "events")
    redis_server.command("XADD", key, "5-0", "e", encode_event(ev.Think(run="r", seq=5)))
    redis_server.command("XADD", key, "6-0", "e", b"garbage")
    redis_server.command("XADD", key, "7-0", "e", encode_event(ev.End(run="r", seq=7)))
    until(lambda: server.channel("r").ended)
    got = drain(live)
    assert got[0] == Gap("r", "evicted", "1", 5)
    assert [e.seq for e in got[1:]] == [7]


def test_a_key_that_is_no_stream_keeps_nothing_else_from_being_read(hubs, redis_server):
    url = redis_server.url
    kernel, server = hubs(url), hubs(url)
    logs = {name: EventLog(name) for name in ("bad", "good")}
    for name, log in logs.items():
        kernel.attach(log)
        log.append(ev.User(content="x"))
        assert kernel.flush()
        asyncio.run(server.find(name))
    key = server.address.key("run", "bad", "events")
    redis_server.command("DEL", key)
    redis_server.command("SET", key, "not a stream")
    logs["bad"].append(ev.End())
    logs["good"].append(ev.End())
    until(lambda: server.channel("good").ended)
    until(kernel.faults)
    assert "WRONGTYPE" in kernel.faults()["bad"]


# Outages.


def test_a_redis_that_is_not_there_is_an_error_without_secrets(free_port):
    need_redis()
    with pytest.raises(UsageError, match="redis-server") as caught:
        RedisHub(parse_address(f"redis://ada:s3cret-word@127.0.0.1:{free_port}/0"), key=KEY)
    assert f"127.0.0.1:{free_port}" in str(caught.value)
    assert "s3cret" not in str(caught.value)
    assert "ada" not in str(caught.value)


def test_a_password_is_used_and_a_wrong_one_is_refused_without_showing_it(
    redis_folder, hubs, caplog
):
    server = redis_folder("--requirepass", "s3cret-word")
    good = f"redis://:s3cret-word@127.0.0.1:{server.port}/0"
    hub = hubs(good)
    log = EventLog("r")
    hub.attach(log)
    log.append(ev.End())
    assert hub.flush()
    for url in (
        good.replace("s3cret", "wr0ng"),
        f"redis://ada:wr0ng-word@127.0.0.1:{server.port}/0",
        f"redis://127.0.0.1:{server.port}",
    ):
        with pytest.raises(UsageError) as caught:
            hubs(url)
        assert "s3cret" not in str(caught.value)
        assert "wr0ng" not in str(caught.value)
        assert "ada" not in str(caught.value)
    assert "s3cret" not in caplog.text + repr(hub) + repr(hub.address)


def test_tls_is_used_and_the_certificate_is_checked(redis_folder, hubs, tmp_path, free_port):
    cert, key = _certificate(tmp_path)
    redis_folder(
        *("--tls-port", str(free_port), "--tls-auth-clients", "no"),
        *(
            "--tls-cert-file",
            str(cert),
            "--tls-key-file",
            str(key),
            "--tls-ca-cert-file",
            str(cert),
        ),
    )
    url = f"rediss://127.0.0.1:{free_port}/0"
    hub = hubs(f"{url}?ssl_ca_certs={cert}")
    log = EventLog("r")
    hub.attach(log)
    log.append(ev.End())
    assert hub.flush()
    assert len(read(hubs(f"{url}?ssl_ca_certs={cert}"), "r")) == 1
    with pytest.raises(UsageError, match="certificate verify failed"):
        hubs(url)
    with pytest.raises(UsageError, match=r"(?i)hostname|certificate"):
        hubs(f"rediss://localhost:{free_port}/0?ssl_ca_certs={cert}")


def _certificate(folder):
    """Write a certificate for 127.0.0.1 and its key; return their paths."""
    import datetime
    import ipaddress

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "redis")])
    now = datetime.datetime.now(datetime.UTC)
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    cert = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(address, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    made = folder / "cert.pem", folder / "key.pem"
    made[0].write_bytes(cert.public_bytes(serialization.Encoding.PEM))
    private = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    made[1].write_bytes(key.private_bytes(*private, serialization.NoEncryption()))
    return made


@pytest.mark.parametrize("kills", [3, pytest.param(20, marks=pytest.mark.long)])
def test_kill_9_of_redis_mid_run_loses_no_event_and_repeats_none(redis_folder, kills):
    rng = random.Random(kills)
    redis = redis_folder(aof=True)
    url = redis.url
    first, second = Rig(url), Rig(url)
    try:
        driven = first.publish("r", ev.User(content="hi"))
        following = [
            attach(f"{rig.server.url}/runs/r", TOKEN, backoff=QUICK) for rig in (first, second)
        ]
        seen = [[], []]

        async def follow(number):
            async for event in following[number]:
                seen[number].append(event)

        async def main():
            await asyncio.gather(*(follow(i) for i in range(2)))

        reading = threading.Thread(target=asyncio.run, args=(main(),), daemon=True)
        reading.start()
        until(lambda: all(seen))
        over = threading.Event()

        def go_on():
            while not over.is_set():
                write(driven.log, 5, pause=0.001)

        writing = threading.Thread(target=go_on)
        writing.start()
        for _ in range(kills):
            time.sleep(0.3 * rng.random())
            redis.kill()
            time.sleep(0.2 * rng.random())
            redis.start()
        over.set()
        writing.join(PATIENCE)
        driven.feed(ev.End())
        reading.join(60)
        whole = [encode_event(e) for e in driven.log]
        for events in seen:
            assert [encode_event(e) for e in events if e.type != "delta"] == whole
        late = Rig(url)
        try:
            assert [
                e["seq"] for e in late.lines("/runs/r/events", internal="1", deltas="0")
            ] == list(range(1, len(whole) + 1))
        finally:
            late.close()
    finally:
        first.close()
        second.close()


def test_a_redis_that_lost_everything_is_filled_again_and_readers_go_on(redis_folder, hubs):
    redis = redis_folder()
    url = redis.url
    kernel, server = hubs(url), hubs(url)
    log = in_progress(kernel, 5)
    before = read(server, "r")
    live = server.subscribe("r", ALL, after=before[-1].id)
    redis.kill()
    write(log, 5)  # the run does not notice
    redis.start()
    log.append(ev.End())
    until(lambda: server.channel("r").ended)
    assert [e.event.seq for e in [*before, *drain(live)] if not e.n] == list(range(1, 12))
    assert kernel.flush(PATIENCE)
    fresh = hubs(url)
    assert [e.event for e in read(fresh, "r") if not e.n] == list(log)


@pytest.mark.parametrize("left", [0, 2])
def test_what_redis_lost_between_two_events_is_published_again(hubs, redis_server, left):
    """A restart that no command met, with an old copy of the data or none."""
    url = redis_server.url
    kernel, server = hubs(url), hubs(url)
    log = in_progress(kernel, 4)
    key = kernel.address.key("run", "r", "events")
    there = redis_server.command("XRANGE", key, "-", "+")[:left]
    redis_server.command("DEL", key)
    for number, said in there:
        redis_server.command("XADD", key, number, *said)
    log.append(ev.End())
    assert kernel.flush(PATIENCE)
    assert [e.event for e in read(server, "r") if not e.n] == list(log)


def test_a_run_whose_stream_was_deleted_is_published_again(hubs, redis_server, monkeypatch):
    monkeypatch.setattr("agent_nb.server.redis.hub.MAINTENANCE_INTERVAL", 0.02)
    url = redis_server.url
    kernel, server = hubs(url), hubs(url)
    log = in_progress(kernel, 3)
    key = kernel.address.key
    redis_server.command("DEL", key("run", "r", "events"), key("run", "r", "info"), key("runs"))
    until(lambda: [i.run for i in asyncio.run(server.list_runs())] == ["r"])
    assert [e.event for e in read(server, "r") if not e.n] == list(log)


def test_deltas_published_again_are_not_deleted_as_surplus(hubs, redis_server):
    url = redis_server.url
    kernel = hubs(url, keep=100)
    log = in_progress(kernel, 25)
    key = kernel.address.key("run", "r", "events")
    redis_server.command("DEL", key)
    write(log, 6)
    assert kernel.flush(PATIENCE)
    live = [entry.id for entry in drain(kernel.subscribe("r", ALL)) if entry.n]
    assert len(live) > 80
    assert [e.id for e in read(hubs(url), "r") if e.n] == live


def test_deltas_that_an_outage_left_are_deleted_later(hubs, redis_server, monkeypatch):
    url = redis_server.url
    kernel = hubs(url, limits=Limits(deltas=0))
    log = in_progress(kernel, 4)
    fails, whole = [True], Link.send

    async def ask(link, *command):
        if command[0] == "XDEL" and fails:
            fails.pop()
            raise HubAway("away")
        return await whole(link, *command)

    monkeypatch.setattr(Link, "send", ask)
    monkeypatch.setattr("agent_nb.server.redis.hub.MAINTENANCE_INTERVAL", 0.02)
    log.append(ev.End())
    assert kernel.flush(PATIENCE)
    until(lambda: not fails)
    until(lambda: not [e for e in read(hubs(url), "r") if e.n])


def test_a_redis_that_hangs_keeps_no_run_waiting(redis_folder, hubs):
    redis = redis_folder()
    url = redis.url
    kernel = hubs(url)
    log = in_progress(kernel, 1)
    redis.freeze()
    try:
        write(log, 300)
        log.append(ev.End())
        assert len(drain(kernel.subscribe("r", Filter(deltas=False)))) == 302
    finally:
        redis.thaw()
    assert kernel.flush(PATIENCE)
    assert [e.event for e in read(hubs(url), "r") if not e.n] == list(log)


def test_where_only_records_are_played_no_redis_is_asked(monkeypatch, free_port):
    monkeypatch.setenv("AGENT_NB_RERUN", "replay")
    hub = open_hub(f"redis://127.0.0.1:{free_port}/0")
    assert type(hub) is Hub
    with pytest.raises(UsageError, match="rediss://"):
        open_hub("redis://example.org/0")


def test_while_redis_is_away_servers_say_so_and_what_they_have_is_read(redis_folder):
    redis = redis_folder()
    rig = Rig(redis.url)
    try:
        rig.publish("r", ev.User(content="hi"), ev.End())
        assert len(rig.lines("/runs/r/events")) == 2
        redis.kill()
        assert len(rig.lines("/runs/r/events")) == 2
        for path in ("/runs", "/runs/other"):
            answer = rig.client.get(path)
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
            assert "does not answer" in answer.json()["error"]
        redis.start()
        until(lambda: rig.client.get("/runs").status_code == 200)
    finally:
        rig.close()


def test_a_redis_without_memory_holds_up_no_run_and_gets_events_later(redis_folder, hubs):
    redis = redis_folder()
    kernel, server = hubs(redis.url), None
    log = in_progress(kernel, 2)
    redis.command("CONFIG", "SET", "maxmemory", "1")
    write(log, 5)
    log.append(ev.End())
    assert not kernel.flush(0.3)
    redis.command("CONFIG", "SET", "maxmemory", "0")
    assert kernel.flush(PATIENCE)
    url = f"redis://127.0.0.1:{redis.port}/0?prefix={kernel.address.prefix}"
    server = hubs(url)
    assert [e.event for e in read(server, "r") if not e.n] == list(log)


def test_stopping_a_hub_publishes_what_is_left(redis_server):
    url = redis_server.url
    kernel, server = (RedisHub(parse_address(url), key=KEY) for _ in "ab")
    log = EventLog("r")
    kernel.attach(log)
    write(log, 500)
    kernel.stop()
    assert len([e for e in read(server, "r") if not e.n]) == 500
    server.stop()


# Strangers who may write to Redis.


def test_an_entry_with_the_largest_id_is_not_read_and_its_run_says_so(hubs, redis_server, caplog):
    url = redis_server.url
    kernel, server = hubs(url), hubs(url)
    log = EventLog("r")
    kernel.attach(log)
    log.append(ev.User(content="mine"))
    assert kernel.flush(PATIENCE)
    key = kernel.address.key("run", "r", "events")
    poison = encode_event(ev.User(content="poison"))
    redis_server.command("XADD", key, f"{2**64 - 1}-0", "e", poison)
    with caplog.at_level(logging.WARNING, "agent_nb.hub"):
        log.append(ev.Respond(content="lost"))
        assert kernel.flush(PATIENCE)
    assert "has not come to" in kernel.faults()["r"]
    assert "run r is not published" in caplog.text
    assert [e.event.content for e in read(server, "r")] == ["mine"]


def test_of_an_index_that_a_stranger_fills_only_the_newest_runs_are_read(
    hubs, redis_server, monkeypatch
):
    monkeypatch.setattr("agent_nb.server.redis.index.MOST", 3)
    url = redis_server.url
    kernel, server = hubs(url), hubs(url)
    kernel.attach(EventLog("mine"))
    assert kernel.flush(PATIENCE)
    runs = kernel.address.key("runs")
    for n in range(20):
        redis_server.command("ZADD", runs, -n, f"x{n}")
        redis_server.command("SET", kernel.address.key("run", f"x{n}", "info"), b"x" * 200_000)
    assert [info.run for info in asyncio.run(server.list_runs())] == ["mine"]


def publish(kernel, run):
    """Publish a run with one event."""
    log = EventLog(run)
    kernel.attach(log)
    log.append(ev.RunStart())
    assert kernel.flush(PATIENCE)


@pytest.mark.parametrize(
    "garbage",
    [
        ("SET", b"\xff\xfe"),
        ("SET", b'{"info": {"run": "\xff"}}'),
        ("SET", b'{"info": 3}'),
        ("SET", b"[" * 60_000),
        ("RPUSH", b"a list"),
        ("SET", b"the words on another run"),
    ],
)
@pytest.mark.parametrize("name", [b"x", b"\xff"])
def test_garbage_in_the_index_hides_that_entry_only(hubs, redis_server, garbage, name):
    url = redis_server.url
    kernel, server = hubs(url), hubs(url)
    publish(kernel, "mine")
    how, data = garbage
    if b"another run" in data:
        data = redis_server.command("GET", kernel.address.key("run", "mine", "info"))
    redis_server.command("ZADD", kernel.address.key("runs"), 7, name)
    redis_server.command(
        how, kernel.address.key("run", name.decode("utf-8", "replace"), "info"), data
    )
    assert [info.run for info in asyncio.run(server.list_runs())] == ["mine"]
    publish(kernel, "later")
    assert [info.run for info in asyncio.run(server.list_runs())] == ["mine", "later"]


def test_a_hub_whose_end_fails_leaves_no_other_open(monkeypatch):
    ended = []

    class Ending:
        def __init__(self, name):
            self.name = name

        async def _finish(self):
            if self.name == "bad":
                raise ZeroDivisionError
            for _ in range(9):
                await asyncio.sleep(0)
            ended.append(self.name)

    async def main():
        with pytest.raises(ZeroDivisionError):
            await hub_module._finish_all()
        return list(ended)

    monkeypatch.setattr(hub_module, "_HUBS", [Ending("one"), Ending("bad"), Ending("two")])
    assert asyncio.run(main()) == ["one", "two"]
