"""Following a run over real connections: through a proxy that breaks them, through restarts, and
refusals.
"""

import asyncio
import json
import os
import random
import threading
from contextlib import aclosing
from functools import partial
from urllib.parse import quote

import anyio
import httpx
import pytest
from helpers.printing import print_every_way
from helpers.tcp_server import listen
from helpers.waiting import wait
from msgspec.structs import replace

from agent_nb import events as ev
from agent_nb.errors import AgentError, ModelError, UsageError
from agent_nb.events.event_json import encode_event
from agent_nb.events.log import EventLog
from agent_nb.external import attached_run
from agent_nb.external.attached_run import attach
from agent_nb.external.connect import Backoff, Target, parse_target
from agent_nb.external.follow import Follower
from agent_nb.external.http_stream import read_stream
from agent_nb.external.server_notes import Note
from agent_nb.server.app import Server, Settings
from agent_nb.server.hub import Hub

QUICK = Backoff(first_wait=0.001, longest_wait=0.01, patience=20, missing=0.05, idle=5)
RUNS = int(os.environ.get("AGENT_NB_PROXY_RUNS", "300"))


def stored(log):
    return [encode_event(e) for e in log]


def speak(feed, answers=3):
    feed(ev.User(content="hi"))
    for i in range(answers):
        for piece in ("The ", "answer ", str(i)):
            feed(ev.Delta(of="respond", block=f"b{i}", text=piece))
        feed(ev.Respond(content=f"The answer {i}", block=f"b{i}"))
    feed(ev.End())


class Proxy:
    """A server in the middle that spoils connections: refuses, cuts, delays, repeats and disorders
    them by a random plan.
    """

    def __init__(self, upstream: str, seed: int) -> None:
        self._upstream = upstream
        self._rng = random.Random(seed)
        self._client = httpx.AsyncClient(trust_env=False, timeout=20, verify=False)
        self._past: list[str] = []

    async def __aenter__(self):
        # httpx loses a connection that is made while its request is cancelled: they end first
        self._server = listen(self._serve, grace=20)
        self.url = f"http://127.0.0.1:{await self._server.__aenter__()}"
        return self

    async def __aexit__(self, *_):
        await self._server.__aexit__(None, None, None)
        await self._client.aclose()

    async def _serve(self, reader, writer):
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            headers = dict(line.split(": ", 1) for line in head[1:] if ": " in line)
            await self._spoil(
                head[0].split()[1], {k.lower(): v for k, v in headers.items()}, writer
            )
        except (OSError, asyncio.IncompleteReadError, httpx.HTTPError):
            pass
        finally:
            writer.close()

    async def _spoil(self, path, headers, writer):
        rng, kind = self._rng, self._rng.random()
        if kind < 0.08:
            return  # nothing at all
        if kind < 0.16:
            writer.write(
                b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 4\r\nConnection: close\r\n\r\noops"
            )
            await writer.drain()
            return
        asked = {"Authorization": headers["authorization"], "Accept": headers["accept"]}
        after = headers.get("last-event-id", "")
        self._past.append(after)
        if kind < 0.3:
            after = rng.choice(self._past)  # an answer for an older request
        if after:
            asked["Last-Event-ID"] = after
        async with self._client.stream("GET", self._upstream + path, headers=asked) as answer:
            writer.write(
                b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
            )
            left = rng.choice([rng.randint(0, 900), 10**9])
            held = b""
            async for chunk in answer.aiter_bytes():
                for data in self._disorder(held + chunk):
                    writer.write(data[:left])
                    left -= len(data)
                    if rng.random() < 0.2:
                        await writer.drain()
                        await asyncio.sleep(rng.random() / 500)
                    if left <= 0:
                        await writer.drain()
                        if rng.random() < 0.5:
                            writer.transport.abort()
                        return
            await writer.drain()

    def _disorder(self, data):
        rng = self._rng
        parts = [p + b"\n\n" for p in data.split(b"\n\n") if p]
        if len(parts) > 1 and rng.random() < 0.4:
            i = rng.randrange(len(parts) - 1)
            parts[i], parts[i + 1] = parts[i + 1], parts[i]
        if parts and rng.random() < 0.4:
            parts.insert(rng.randrange(len(parts)), rng.choice(parts))
        return parts


@pytest.mark.few(1)
@pytest.mark.parametrize("runs", [30, pytest.param(RUNS, marks=pytest.mark.long)])
def test_through_a_proxy_that_breaks_connections_the_log_is_the_uncut_one(rig, token, runs):
    server = rig()
    driven = server.publish("r")
    speak(driven.feed)
    expected = stored(driven.log)

    async def main():
        connections = 0
        for start in range(0, runs, 10):
            results = {}

            async def one(seed, results=results):
                async with Proxy(server.server.url, seed) as proxy:
                    attached = attach(f"{proxy.url}/runs/r", token, backoff=QUICK)
                    await attached
                    results[seed] = attached

            async with anyio.create_task_group() as group:
                for seed in range(start, min(start + 10, runs)):
                    group.start_soon(one, seed)
            for attached in results.values():
                assert stored(attached.log) == expected
                connections += attached.connections
        return connections

    assert wait(main, 100) > runs * 1.2


def test_a_run_is_followed_through_a_proxy_that_breaks_connections(rig, token):
    server = rig()

    async def one(seed):
        driven = server.publish(f"live{seed}")
        threading.Thread(
            target=speak,
            args=(lambda event: (driven.feed(event), threading.Event().wait(0.002)), 10),
            daemon=True,
        ).start()
        async with Proxy(server.server.url, seed) as proxy:
            attached = attach(f"{proxy.url}/runs/live{seed}", token, backoff=QUICK)
            await attached
        assert stored(attached.log) == stored(driven.log)

    async def main():
        async with anyio.create_task_group() as group:
            for seed in range(10):
                group.start_soon(one, seed)

    wait(main, 100)  # breaks and resumes ten runs: long beside other tests


def test_a_server_that_takes_a_request_and_never_answers_is_asked_again(rig, token):
    server = rig()
    driven = server.publish("r")
    speak(driven.feed)

    class Silent(Proxy):
        """A proxy that leaves the first request without an answer."""

        requests = 0

        def __init__(self, upstream, seed):
            super().__init__(upstream, seed)
            self.over = asyncio.Event()

        async def _spoil(self, path, headers, writer):
            self.requests += 1
            if self.requests == 1:
                await self.over.wait()
                return
            self._rng = random.Random(3)  # its first plan passes all on
            await super()._spoil(path, headers, writer)

    async def main():
        async with Silent(server.server.url, 0) as proxy:
            attached = attach(f"{proxy.url}/runs/r", token, backoff=replace(QUICK, idle=0.5))
            await attached
            proxy.over.set()
            return proxy.requests, attached

    requests, attached = wait(main)
    assert requests > 1
    assert stored(attached.log) == stored(driven.log)


def test_a_server_that_restarts_is_found_again(rig, token, free_port):
    first = rig(port=free_port)
    log = EventLog("r")
    first.hub.attach(log)
    log.append(ev.User(content="before"))

    async def main():
        attached = attach(f"{first.server.url}/runs/r", token, backoff=QUICK)
        seen = []
        async for event in attached:
            seen.append(event.type)
            if event.type == "user":
                await anyio.to_thread.run_sync(first.server.stop)
                log.append(ev.Respond(content="meanwhile"))
                hub = Hub()
                second = Server(
                    hub, port=first.server.port, token=token, settings=Settings(keepalive=0)
                ).start()
                # the restarted server does not have the run at once
                threading.Timer(0.2, _publish, (hub, log)).start()
        await anyio.to_thread.run_sync(second.stop)
        assert seen == ["user", "respond", "end"]
        assert stored(attached.log) == stored(log)

    wait(main)


def _publish(hub, log):
    hub.attach(log)
    log.append(ev.End())


def test_events_come_live_with_their_deltas(rig, token):
    server = rig()
    driven = server.publish("r")
    speak(driven.feed, 1)

    async def main():
        return [e.type async for e in attach(f"{server.server.url}/runs/r", token)]

    assert wait(main) == ["user", "delta", "delta", "delta", "respond", "end"]


@pytest.mark.parametrize("name", ["r", "a/b", "a b?c#d/%2F", "a/events"])
def test_awaiting_gives_the_run(rig, token, name):
    server = rig()
    speak(server.publish(name).feed, 1)

    async def main():
        return await attach(
            f"{server.server.url}/runs/{quote(name, safe='')}/events?token={token}", backoff=QUICK
        )

    found = wait(main)
    assert (found.id, found.answer, found.status) == (name, "The answer 0", "ok")


def test_a_servers_address_follows_its_newest_run(rig, token):
    server = rig()
    speak(server.publish("old").feed)
    speak(server.publish("new").feed)

    async def main():
        return (await attach(server.server.url, token)).id

    assert wait(main) == "new"


def test_following_again_stays_with_the_run_that_was_newest_at_first(rig, token):
    server = rig()
    old = server.publish("old", ev.User(content="x"))

    async def main():
        attached = attach(server.server.url, token, backoff=QUICK)
        async with aclosing(aiter(attached)) as events:
            await anext(events)
        speak(server.publish("new").feed)
        old.feed(ev.End())
        return [(event.type, event.run) async for event in attached]

    assert wait(main) == [("end", "old")]


def test_a_finished_run_can_be_iterated_again_and_a_busy_one_not_twice(rig, token):
    server = rig()
    speak(server.publish("r").feed, 1)

    async def main():
        attached = attach(f"{server.server.url}/runs/r", token)
        async for _ in attached:
            with pytest.raises(UsageError, match="followed already"):
                await attached
            break
        again = attach(f"{server.server.url}/runs/r", token)
        await again
        return [e.type async for e in again]

    assert wait(main) == ["user", "respond", "end"]


@pytest.mark.parametrize("name", ["r", "a/b"])
def test_the_remote_run_can_be_stopped_and_asked(rig, token, name):
    server = rig()
    driven = server.publish(name, ev.User(content="x"))

    async def main():
        attached = attach(f"{server.server.url}/runs/{quote(name, safe='')}", token)
        async for event in attached:
            if event.type == "user":
                await attached.approve("c/1", allow=True, args={"a": 1})
                with pytest.raises(UsageError, match="no open question"):
                    await attached.approve("other", allow=False)
                await attached.cancel()
        return attached.run.status

    assert wait(main) == "interrupted"
    assert driven.answers[0] == (
        "c/1",
        {"allow": True, "args": {"a": 1}, "scope": "once", "reason": ""},
    )


def test_the_id_of_a_call_may_look_like_a_part_of_an_address(rig, token):
    server = rig()
    driven = server.publish("r", ev.User(content="x"))

    async def main():
        attached = attach(f"{server.server.url}/runs/r", token)
        with pytest.raises(UsageError, match="no open question"):
            await attached.approve("c/approvals/1", allow=True)

    wait(main)
    assert [call for call, _ in driven.answers] == ["c/approvals/1"]


@pytest.mark.parametrize(
    ("path", "wrong", "words"),
    [("/runs/r", "x" * 10, "refuses \\(401\\)"), ("/health", "", "refuses|no stream")],
)
def test_a_refusal_that_waiting_cannot_mend_is_an_error_at_once(path, wrong, words, rig, token):
    server = rig()
    server.publish("r")

    async def main():
        await attach(server.server.url + path, wrong or token, backoff=QUICK)

    with pytest.raises(UsageError, match=words):
        wait(main)


def test_the_end_of_a_line_is_no_part_of_a_token(rig, token):
    server = rig()
    speak(server.publish("r").feed, 1)

    async def main():
        return (await attach(server.server.url, f"{token}\n", backoff=QUICK)).status

    assert wait(main) == "ok"


@pytest.mark.parametrize("token", ["correct\nhorse", "correct-hörse", "correct\ud800"])
def test_a_token_that_cannot_be_sent_is_refused_and_not_shown(token):
    async def main():
        await attach("http://127.0.0.1:1/runs/r", token, backoff=QUICK)

    with pytest.raises(UsageError, match="cannot be sent") as refusal:
        wait(main)
    assert "correct" not in str(refusal.value)


def test_a_server_without_runs_says_so(rig, token):
    server = rig()

    async def main():
        await attach(server.server.url, token)

    with pytest.raises(UsageError, match="no run to follow"):
        wait(main)


def test_it_gives_up_when_nothing_comes_for_long(free_port):
    async def main():
        await attach(
            f"http://127.0.0.1:{free_port}/runs/r",
            "token",
            backoff=Backoff(first_wait=0.001, longest_wait=0.01, patience=0.05),
        )

    with pytest.raises(ModelError, match=r"Gave up on http://127\.0\.0\.1"):
        wait(main)


def test_a_connection_that_says_nothing_is_left(rig, token):
    server = rig()
    driven = server.publish("r", ev.User(content="x"))
    states = []

    def note(state):
        states.append(state)
        if states.count("following") == 2 and state == "following":  # the first one was left
            driven.feed(ev.End())

    async def main():
        attached = attach(
            f"{server.server.url}/runs/r",
            token,
            backoff=Backoff(first_wait=0.001, longest_wait=0.001, idle=0.05, patience=20),
            on_state=note,
        )
        await attached
        return attached.connections

    assert wait(main) > 1


def test_states_are_told(rig, token):
    server = rig()
    speak(server.publish("r").feed, 1)
    states = []

    async def main():
        await attach(f"{server.server.url}/runs/r", token, on_state=states.append)

    wait(main)
    assert states == ["connecting", "following", "ended"]


@pytest.mark.parametrize("url", ["", "ftp://x/runs/r", "http://", "file:///etc/passwd"])
def test_what_is_no_address_is_refused(url):
    with pytest.raises(UsageError, match="not the address of a run"):
        attach(url)


@pytest.mark.parametrize(
    ("url", "where", "name", "token"),
    [
        ("127.0.0.1:80/runs/r/events?token=t", "http://127.0.0.1:80", "r", "t"),
        ("http://h/", "http://h", "", ""),
        ("http://h/runs/a/b", "http://h", "a/b", ""),
        ("http://h/runs/a/events/events", "http://h", "a/events", ""),
        ("http://h/runs/a%2Fevents", "http://h", "a/events", ""),
        ("https://h/runs/a/", "https://h", "a", ""),
        ("https://h/user/me/proxy/9/runs/a", "https://h/user/me/proxy/9", "a", ""),
        ("http://h/runs", "http://h", "", ""),
        ("http://h/x/", "http://h/x", "", ""),
    ],
)
def test_addresses_are_understood(url, where, name, token):
    found = parse_target(url)
    assert (found.server, found.run, found.token) == (where, name, token)


@pytest.mark.parametrize(
    "url",
    [
        "http://[::1",
        "http://h:ab/runs/x",
        "http://h:99999",
        "ftp://h",
        "http://ä..b",
        "http://xn--",
    ],
)
def test_what_is_no_address_is_refused_in_words(url):
    with pytest.raises(UsageError, match="is not the address of a run"):
        parse_target(url)
    with pytest.raises(UsageError, match="not an http address"):
        wait(partial(_read_all, url))


def test_any_stream_can_be_read_for_a_codec(rig, token):
    from agent_nb.codecs.convert import decode

    server = rig()
    speak(server.publish("r").feed, 1)

    async def main(path):
        return [chunk async for chunk in read_stream(server.server.url + path, token=token)]

    chunks = wait(partial(main, "/runs/r/events?format=looopy"))
    assert decode(chunks, "looopy")[-1].type == "end"
    with pytest.raises(UsageError, match="answers 404"):
        wait(partial(main, "/runs/none/events"))
    with pytest.raises(UsageError, match="not an http address"):
        wait(partial(_read_all, "file:///etc/passwd"))


async def _read_all(url):
    return [chunk async for chunk in read_stream(url)]


def test_a_stream_that_breaks_off_is_told():
    async def main():
        async with listen(_half) as port:
            return [chunk async for chunk in read_stream(f"http://127.0.0.1:{port}/")]

    with pytest.raises(ModelError, match="broke off"):
        wait(main)


async def _half(reader, writer):
    await reader.readuntil(b"\r\n\r\n")
    writer.write(
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 100\r\n\r\ndata: {}\n\n"
    )
    await writer.drain()
    writer.close()


def test_json_lines_of_a_stream_are_events(rig):
    server = rig()
    speak(server.publish("r").feed, 1)
    text = server.client.get("/runs/r/events", headers={"Accept": "application/json"}).text
    assert [json.loads(line)["type"] for line in text.splitlines()] == [
        "user",
        "delta",
        "delta",
        "delta",
        "respond",
        "end",
    ]


def test_an_iteration_that_is_left_goes_on_in_the_next_one(rig, token):
    server = rig()
    speak(server.publish("r").feed, 1)

    async def main():
        attached = attach(f"{server.server.url}/runs/r", token, backoff=QUICK)
        async for _ in attached:
            break
        return [event.seq async for event in attached if event.seq]

    assert wait(main) == [2, 3]


def test_events_that_come_together_outlast_an_iteration_that_is_left(rig, token, monkeypatch):
    server = rig()
    log = server.publish("r", *(ev.User(content=str(n)) for n in range(4)), ev.End()).log
    feed = Follower.feed

    def deliver_late(self, frame):
        """Hold every event but the last back, as if the network had changed their order."""
        held.append(frame)
        last = [feed(self, each) for each in reversed(held)] if frame.id == "5" else []
        return [event for events in last for event in events]

    held = []
    monkeypatch.setattr(Follower, "feed", deliver_late)

    async def main():
        attached = attach(f"{server.server.url}/runs/r", token, backoff=QUICK)
        for _ in range(5):
            async with aclosing(aiter(attached)) as events:
                await anext(events)
        return stored(attached.log)

    assert wait(main) == stored(log)


@pytest.mark.parametrize("asks", [False, True])
def test_a_run_without_events_yet_stays_the_followed_one(rig, token, asks):
    server = rig()
    first = server.publish("first")

    async def main():
        following = anyio.Event()

        def note(state):
            if state == "following":
                following.set()

        attached = attach(server.server.url, token, backoff=QUICK, on_state=note)
        task = asyncio.ensure_future(attached.follow())
        await following.wait()
        second = server.publish("second", ev.User(content="x"))
        if asks:
            await attached.cancel()
        else:
            attached.stop()
            await task
            first.feed(ev.User(content="y"), ev.End())
            task = asyncio.ensure_future(attached.follow())
        await asyncio.wait_for(task, 20)
        return attached.run.id, second.cancelled.is_set()

    assert wait(main) == ("first", False)


@pytest.mark.parametrize(
    "answer",
    [
        b'{"status": "running", "controls": 5}',
        b'{"status": "running"' + b', "x": ' + b"[" * 5000 + b"]" * 5000 + b"}",
        b"5",
        b"{}",
    ],
)
def test_an_odd_answer_leaves_a_detached_run_unstoppable(answer, monkeypatch):
    async def send_request(*_):
        return 200, answer

    monkeypatch.setattr(attached_run, "send_request", send_request)
    attached = attach("http://127.0.0.1:9/runs/r")
    assert wait(attached._may_cancel) is False


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:99999/runs/r?token=very-secret-1",
        "ftp://user:very-secret-1@host/runs/r",
        "http://user:very-secret-1@host:x/runs/r",
    ],
)
def test_the_error_about_an_address_holds_no_secret(url):
    with pytest.raises(UsageError, match="is not the address of a run") as caught:
        attach(url)
    assert "very-secret-1" not in str(caught.value)


def test_no_error_of_a_server_holds_its_password(free_port):
    url = f"http://user:very-secret-1@127.0.0.1:{free_port}"
    backoff = Backoff(first_wait=0.01, unreached=0.05)

    async def ask(work):
        with pytest.raises(AgentError) as caught:
            await work
        return str(caught.value)

    async def main():
        return [
            await ask(attach(url)._wait()),
            await ask(attach(url).cancel()),
            await ask(attach(f"{url}/runs/r", backoff=backoff)._wait()),
        ]

    for text in wait(main):
        assert f"127.0.0.1:{free_port}" in text
        assert "very-secret-1" not in text


def test_the_address_of_a_run_for_people_holds_no_password():
    attached = attach("http://user:very-secret-1@h/me@x/runs/a%2Fb?token=t")
    assert attached.address == "http://h/me@x/runs/a%2Fb"


@pytest.mark.parametrize(
    "holder",
    [Target("http://eve:correct-horse@h", "r", "correct-horse"), Note("http://h", "correct-horse")],
)
def test_what_holds_a_token_is_printed_without_it(holder):
    assert "correct-horse" not in print_every_way(holder)
