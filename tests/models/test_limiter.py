"""The limiter of an endpoint: never more than it allows, in order, in any event loop."""

import asyncio
import gc
import json
import threading

import anyio
import pytest
from helpers.waiting import wait
from hypothesis import given
from hypothesis import strategies as st

from agent_nb import Agent
from agent_nb.models import choose
from agent_nb.models.http import limiter as module
from agent_nb.models.http.limiter import POLL, SLOW, STALE, WINDOW, Limiter, Places, reporting


class Clock:
    """A clock that sleepers move."""

    def __init__(self):
        self.now, self._lock = 1000.0, threading.Lock()

    def __call__(self):
        return self.now

    async def sleep(self, seconds):
        with self._lock:
            self.now += seconds
        await anyio.sleep(0)


# --- the core


def test_requests_at_once_are_limited_and_a_place_that_is_left_is_free():
    places = Places(concurrency=2)
    a, b, c = (places.join(0.0) for _ in range(3))
    assert (places.enter(a, 0.0), places.enter(b, 0.0), places.enter(c, 0.0)) == (0, 0, POLL)
    assert places.reason(0.0) == "concurrency 2"
    places.leave(a)
    assert places.enter(c, 0.1) == 0


def test_the_window_slides():
    places = Places(rpm=2)
    for now in (0.0, 30.0):
        assert places.enter(places.join(now), now) == 0
    late = places.join(59.0)
    assert places.enter(late, 59.0) == SLOW
    assert places.reason(59.0) == "rpm 2"
    assert places.enter(late, 59.98) == pytest.approx(0.02)
    assert places.enter(late, 60.0) == 0
    assert places.enter(places.join(61.0), 61.0) > 0


def test_without_limits_everyone_enters():
    places = Places()
    assert all(places.enter(places.join(0.0), 0.0) == 0 for _ in range(1000))


def test_nobody_is_overtaken():
    places = Places(concurrency=1)
    inside, first, second = (places.join(0.0) for _ in range(3))
    assert places.enter(inside, 0.0) == 0
    places.leave(inside)
    assert places.enter(second, 0.0) == POLL
    assert places.enter(first, 0.0) == 0


def test_one_that_gave_up_is_not_waited_for():
    places = Places(concurrency=1)
    first, second = places.join(0.0), places.join(0.0)
    places.leave(first)
    assert places.enter(second, 0.0) == 0


def test_one_that_stopped_asking_lets_others_go_first_and_keeps_its_turn():
    places = Places(concurrency=1)
    blocked, second, third = (places.join(0.0) for _ in range(3))
    assert places.enter(second, STALE - 0.1) == POLL
    assert places.enter(second, STALE) == 0
    assert places.enter(third, STALE) == POLL
    places.leave(second)
    assert places.enter(blocked, STALE + 1) == 0
    assert places.enter(third, STALE + 1) == POLL


Action = st.tuples(
    st.sampled_from(["join", "ask", "leave"]), st.integers(0, 7), st.floats(0.0, 25.0)
)


@given(rpm=st.integers(0, 4), most=st.integers(0, 3), actions=st.lists(Action, max_size=150))
def test_the_limits_hold_whatever_happens(rpm, most, actions):
    places, now, begun, inside, tickets = Places(rpm, most), 0.0, [], set(), []
    for what, which, passed in actions:
        now += passed
        if what == "join":
            tickets.append(places.join(now))
        elif tickets:
            ticket = tickets[which % len(tickets)]
            if what == "leave":
                places.leave(ticket)
                inside.discard(ticket)
                tickets.remove(ticket)
            elif ticket not in inside and places.enter(ticket, now) == 0:
                inside.add(ticket)
                begun.append(now)
        assert not most or len(inside) <= most
        assert not rpm or all(
            sum(start <= other < start + WINDOW for other in begun) <= rpm for start in begun
        )


@given(
    rpm=st.integers(0, 3),
    most=st.integers(0, 2),
    holds=st.lists(st.floats(0.0, 90.0), min_size=1, max_size=12),
)
def test_everyone_enters_in_order_and_as_soon_as_the_limits_allow(rpm, most, holds):
    places, now = Places(rpm, most), 0.0
    tickets = [places.join(now) for _ in holds]
    waiting, leaving, begun = list(tickets), {}, []
    while waiting:
        for ticket, until in list(leaving.items()):
            if until <= now:
                places.leave(ticket)
                del leaving[ticket]
        entered = [t for t in waiting if places.enter(t, now) == 0]
        for ticket in entered:
            waiting.remove(ticket)
            leaving[ticket] = now + holds[tickets.index(ticket)]
            begun.append((ticket, now))
        if waiting and not entered:
            free = not most or len(leaving) < most
            assert not free or sum(t > now - WINDOW for _, t in begun) == rpm > 0
        now += 0.5
    assert [t for t, _ in begun] == tickets


# --- threads and event loops


class Counted:
    """Enters a limiter and keeps the most that were inside at once, and when each entered."""

    def __init__(self, limiter):
        self.limiter, self.inside, self.most, self.entered = limiter, 0, 0, []
        self._lock = threading.Lock()
        enter = limiter.places.enter

        def watched(ticket, now):
            rest = enter(ticket, now)
            if not rest:
                self.entered.append(now)
            return rest

        limiter.places.enter = watched

    async def ask(self, clock):
        async with self.limiter.admit():
            with self._lock:
                self.inside += 1
                self.most = max(self.most, self.inside)
            await clock.sleep(0.01)
            with self._lock:
                self.inside -= 1


def test_many_threads_with_event_loops_of_their_own_keep_to_the_limits():
    clock = Clock()
    counted = Counted(Limiter("lab", Places(20, 3), clock=clock, sleep=clock.sleep))

    def cell():
        async def main():
            async with anyio.create_task_group() as group:
                for _ in range(5):
                    group.start_soon(counted.ask, clock)

        asyncio.run(main())

    threads = [threading.Thread(target=cell) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(counted.entered) == 40
    assert (counted.most <= 3, counted.inside) == (True, 0)
    assert all(
        sum(t <= other < t + WINDOW for other in counted.entered) <= 20 for t in counted.entered
    )


def test_cancelled_waits_leave_the_queue():
    clock = Clock()
    limiter = Limiter("lab", Places(concurrency=1), clock=clock, sleep=clock.sleep)

    async def hold(scope):
        with scope:
            async with limiter.admit():
                await anyio.sleep_forever()

    async def main():
        scopes = [anyio.CancelScope() for _ in range(4)]
        async with anyio.create_task_group() as group:
            for scope in scopes:
                group.start_soon(hold, scope)
            for _ in range(20):
                await anyio.sleep(0)
            assert len(limiter.places._waiting) == 3
            for scope in reversed(scopes):
                scope.cancel()
        async with limiter.admit():
            return len(limiter.places._waiting), len(limiter.places._inside)

    assert wait(main) == (0, 1)


def test_a_place_in_an_event_loop_that_is_gone_is_free_again():
    clock = Clock()
    limiter = Limiter("lab", Places(concurrency=1), clock=clock, sleep=clock.sleep)

    async def entered():
        holder = limiter.admit()
        await holder.__aenter__()
        return holder

    loop = asyncio.new_event_loop()
    holder = loop.run_until_complete(entered())
    loop.close()
    assert holder is not None
    del holder
    gc.collect()

    async def main():
        with anyio.fail_after(5):
            async with limiter.admit():
                return True

    assert wait(main)


def test_a_wait_of_more_than_a_second_is_reported_and_its_end():
    clock, words = Clock(), []
    limiter = Limiter("lab:8000", Places(rpm=1), clock=clock, sleep=clock.sleep)

    async def main():
        with reporting(words.append):
            for _ in range(2):
                async with limiter.admit():
                    assert words in ([], ["waiting for a free place at lab:8000 (rpm 1)", ""])

    wait(main)
    assert len(words) == 2
    assert clock.now >= 1060.0


# --- models


@pytest.fixture
def lab(serve, monkeypatch, tmp_path):
    """Make a loopback endpoint `lab` with these limits and answers."""

    def make(limits, *answers):
        server = serve(*answers)
        file = tmp_path / "c.toml"
        file.write_text(f'[endpoints.lab]\nbase_url = "{server.url}"\n{limits}\n')
        monkeypatch.setenv("AGENT_NB_CONFIG", str(file))
        return server

    yield make
    module._limiters.clear()


def chunk(text):
    return {"choices": [{"delta": {"content": text}, "finish_reason": "stop"}]}


def test_models_of_one_endpoint_share_its_limiter_and_others_have_none(lab):
    lab("rpm = 7\nconcurrency = 2", lambda peer: peer.stream(chunk("x"), "data: [DONE]\n\n"))
    one, other = choose.make("lab/a"), choose.make("lab/b")
    assert one._limiter is other._limiter
    assert (one._limiter.places.rpm, one._limiter.places.concurrency) == (7, 2)
    assert choose.make("openai/x")._limiter is None


@pytest.mark.parametrize("limit", ["rpm = -1", "concurrency = 1.5"])
def test_a_wrong_limit_is_named(lab, limit):
    lab(limit, lambda peer: None)
    with pytest.raises(choose.UsageError, match=limit.split()[0]):
        choose.make("lab/a")


def test_runs_in_many_event_loops_send_no_more_at_once_than_the_endpoint_takes(lab):
    inside, most, lock = 0, 0, threading.Lock()

    def answer(peer):
        nonlocal inside, most
        with lock:
            inside += 1
            most = max(most, inside)
        peer.begin()
        peer.send(f"data: {json.dumps(chunk('hi'))}\n\n")
        with lock:
            inside -= 1
        peer.send("data: [DONE]\n\n")
        peer.end()

    server = lab("concurrency = 2", answer)
    done = []

    def cell():
        done.append(wait(lambda: Agent("lab/a", secrets={})("go")).answer)

    threads = [threading.Thread(target=cell) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (done, len(server.asked), most <= 2) == (["hi"] * 8, 8, True)


def test_retries_and_sub_agents_take_their_places_too(lab, monkeypatch):
    call = {
        "choices": [
            {
                "delta": {
                    "tool_calls": [
                        {
                            "index": 0,
                            "id": "c",
                            "function": {"name": "child", "arguments": '{"prompt": "x"}'},
                        }
                    ]
                },
                "finish_reason": "tool_calls",
            }
        ]
    }

    def says(part):
        return lambda peer: peer.stream(part, "data: [DONE]\n\n")

    server = lab(
        "concurrency = 1",
        lambda peer: peer.reply(503, "{}", retry_after="0"),
        says(call),
        says(chunk("child")),
        says(chunk("done")),
    )
    entered, admit = [], Limiter.admit

    def watched(self):
        entered.append(len(self.places._inside))
        return admit(self)

    monkeypatch.setattr(Limiter, "admit", watched)
    child = Agent("lab/a", name="child", secrets={}).as_tool()
    run = wait(lambda: Agent("lab/a", [child], approve="auto", secrets={})("go"))
    assert (run.answer, len(server.asked), entered) == ("done", 4, [0, 0, 0, 0])


def test_a_stopped_run_leaves_the_queue_and_says_what_it_waited_for(lab, monkeypatch):
    lab("concurrency = 1", lambda peer: peer.stream(chunk("x"), "data: [DONE]\n\n"))
    monkeypatch.setattr(module, "VISIBLE", 0.0)
    agent = Agent("lab/a", secrets={})
    limiter = agent.model._limiter

    async def main():
        async with limiter.admit():
            stream, words = agent("go", check=False), []
            async for event in stream:
                if event.type == "delta" and event.of == "status":
                    words.append(event.text)
                    stream.stop()
            run = await stream
        return run.status, words, limiter.places._waiting

    status, words, waiting = wait(main)
    assert (status, waiting) == ("interrupted", {})
    assert words == [f"waiting for a free place at {limiter.host} (concurrency 1)"]
