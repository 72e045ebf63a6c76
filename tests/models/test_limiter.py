"""The limiter of an endpoint: never more than it allows, in order, in any event loop."""

import asyncio
import gc
import json
import threading
import types

import anyio
import pytest
from helpers.waiting import wait
from hypothesis import given
from hypothesis import strategies as st

from agent_nb import Agent
from agent_nb.agent.sender import choose_retry
from agent_nb.errors import ModelError
from agent_nb.models import choose
from agent_nb.models.http import limiter as module
from agent_nb.models.http.limiter import Limiter, report_waits
from agent_nb.models.http.request_queue import (
    LONGEST_POLL,
    MEMORY,
    POLL,
    SLOW_POLL,
    STALE_AFTER,
    WINDOW,
    RequestQueue,
)
from agent_nb.models.http.retry import BUSY_DELAYS, Failures


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

    async def pause(self, bell, seconds):
        await self.sleep(seconds)


# --- the core


def list_waiting(limiter):
    """Return the tickets that wait, in order."""
    lanes = limiter.queue._lanes.values()
    return sorted(ticket for lane in lanes for ticket in lane.waiting)


def enter_and_hear(queue, now, lane=""):
    """Enter at once, and hear the answer begin."""
    ticket = queue.join(now, lane)
    assert queue.enter(ticket, now) == 0
    queue.note_answer(ticket, now)
    return ticket


def test_requests_at_once_are_limited_and_a_place_that_is_left_is_free():
    queue = RequestQueue(concurrency=2)
    a, b, c = (queue.join(0.0) for _ in range(3))
    assert (queue.enter(a, 0.0), queue.enter(b, 0.0), queue.enter(c, 0.0)) == (0, 0, POLL)
    assert queue.reason(c, 0.0) == "concurrency 2"
    queue.leave(a, 0.1)
    assert queue.enter(c, 0.1) == 0


def test_the_window_slides():
    queue = RequestQueue(rpm=2)
    for now in (0.0, 30.0):
        enter_and_hear(queue, now)
    late = queue.join(59.0)
    assert queue.enter(late, 59.0) == SLOW_POLL
    assert queue.reason(late, 59.0) == "rpm 2"
    assert queue.enter(late, 59.98) == pytest.approx(0.02)
    assert queue.enter(late, 60.0) == 0
    assert queue.enter(queue.join(61.0), 61.0) > 0


def test_without_limits_everyone_enters():
    queue = RequestQueue()
    assert all(queue.enter(queue.join(0.0), 0.0) == 0 for _ in range(1000))


def test_nobody_is_overtaken():
    queue = RequestQueue(concurrency=1)
    inside, first, second = (queue.join(0.0) for _ in range(3))
    assert queue.enter(inside, 0.0) == 0
    queue.leave(inside, 0.0)
    assert queue.enter(second, 0.0) == POLL
    assert queue.enter(first, 0.0) == 0


def test_one_that_gave_up_is_not_waited_for():
    queue = RequestQueue(concurrency=1)
    first, second = queue.join(0.0), queue.join(0.0)
    queue.leave(first, 0.0)
    assert queue.enter(second, 0.0) == 0


def test_one_that_stopped_asking_lets_others_go_first_and_keeps_its_turn():
    queue = RequestQueue(concurrency=1)
    blocked, second, third = (queue.join(0.0) for _ in range(3))
    assert queue.enter(second, STALE_AFTER - 0.1) == POLL
    assert queue.enter(second, STALE_AFTER) == 0
    assert queue.enter(third, STALE_AFTER) > 0
    queue.leave(second, STALE_AFTER)
    assert queue.enter(blocked, STALE_AFTER + 1) == 0
    assert queue.enter(third, STALE_AFTER + 1) == POLL


def test_those_behind_ask_less_than_the_first_before_they_count_as_gone():
    queue = RequestQueue(concurrency=1)
    assert queue.enter(queue.join(0.0), 0.0) == 0
    waiting = [queue.join(0.0) for _ in range(1000)]
    rests = [queue.enter(ticket, 0.0) for ticket in waiting]
    assert rests == sorted(rests)
    assert (rests[0], rests[-1]) == (POLL, LONGEST_POLL)
    assert LONGEST_POLL < STALE_AFTER


def test_a_request_counts_from_when_its_answer_begins():
    queue = RequestQueue(rpm=1)
    slow = queue.join(0.0)
    assert queue.enter(slow, 0.0) == 0
    other = queue.join(0.0)
    assert queue.enter(other, 65.0) > 0
    queue.note_answer(slow, 66.0)
    assert queue.enter(other, 66.0 + WINDOW - 0.1) == pytest.approx(0.1)
    assert queue.enter(other, 66.0 + WINDOW) == 0


def test_a_request_that_was_given_up_before_its_answer_counts_too():
    queue = RequestQueue(rpm=1)
    lost = queue.join(0.0)
    assert queue.enter(lost, 0.0) == 0
    queue.leave(lost, 5.0)
    assert queue.enter(queue.join(6.0), 6.0) > 0


# --- refusals


def inside(queue, count, now=0.0, lane=""):
    """Let so many requests of a lane enter, and return their tickets."""
    tickets = [queue.join(now, lane) for _ in range(count)]
    assert [queue.enter(ticket, now) for ticket in tickets] == [0] * count
    return tickets


def test_a_refusal_closes_the_endpoint_for_as_long_as_the_server_asks():
    queue = RequestQueue()
    (refused,) = inside(queue, 1)
    assert queue.note_refusal(refused, 1.0, 7.0) == "first"
    queue.leave(refused, 1.0)
    other = queue.join(1.0)
    assert queue.enter(other, 1.0) == SLOW_POLL
    assert queue.reason(other, 1.0) == "it refuses requests for 7 s"
    assert queue.enter(other, 7.9) == pytest.approx(0.1)
    assert queue.enter(other, 8.0) == 0


def test_other_models_of_the_endpoint_are_not_held_up():
    queue = RequestQueue()
    (refused,) = inside(queue, 1, lane="a")
    queue.note_refusal(refused, 0.0, 30.0)
    held, free = queue.join(1.0, "a"), queue.join(1.0, "b")
    assert queue.enter(held, 1.0) > 0
    assert queue.enter(free, 1.0) == 0


def test_requests_refused_together_are_one_wave():
    queue = RequestQueue()
    tickets = inside(queue, 5)
    assert [queue.note_refusal(t, 1.0, 2.0) for t in tickets] == ["first", *["shared"] * 4]
    for ticket in tickets:
        queue.leave(ticket, 1.0)
    (late,) = inside(queue, 1, 3.0)
    assert queue.note_refusal(late, 3.5, 2.0) == "first"


def test_without_a_wish_of_the_server_the_waits_grow_until_one_is_answered():
    queue, now, waits = RequestQueue(), 0.0, []
    for answered in (False, False, False, True, False):
        (ticket,) = inside(queue, 1, now)
        if answered:
            queue.note_answer(ticket, now)
        else:
            queue.note_refusal(ticket, now)
        queue.leave(ticket, now)
        other = queue.join(now)
        opens = now
        while queue.enter(other, opens):
            opens += 0.25
        queue.leave(other, opens)
        waits.append(opens - now)
        now = opens
    assert waits == [BUSY_DELAYS[0], BUSY_DELAYS[1], BUSY_DELAYS[2], 0.0, BUSY_DELAYS[0]]


def test_after_a_refusal_half_as_many_enter_and_answers_let_in_more():
    queue = RequestQueue()
    for ticket in inside(queue, 8):
        queue.note_refusal(ticket, 0.0, 1.0)
        queue.leave(ticket, 0.0)
    tickets = [queue.join(1.0) for _ in range(8)]
    entered = [t for t in tickets if not queue.enter(t, 1.0)]
    assert entered == tickets[:4]
    assert queue.reason(tickets[4], 1.0) == "it refused requests before"
    for ticket in entered:
        queue.note_answer(ticket, 2.0)
    assert [t for t in tickets[4:] if not queue.enter(t, 2.0)] == tickets[4:5]


def test_a_refusal_is_forgotten_after_a_while():
    queue = RequestQueue()
    for ticket in inside(queue, 8):
        queue.note_refusal(ticket, 0.0, 1.0)
        queue.leave(ticket, 0.0)
    assert len(inside(queue, 8, 1.0 + MEMORY)) == 8


def test_an_endpoint_that_only_refuses_is_given_up_in_the_end():
    queue, now, kinds = RequestQueue(), 0.0, []
    for _ in range(len(BUSY_DELAYS) + 2):
        (ticket,) = inside(queue, 1, now)
        kinds.append(queue.note_refusal(ticket, now, 1.0))
        queue.leave(ticket, now)
        now += 1.0
    assert kinds == ["first"] * len(BUSY_DELAYS) + ["final"] * 2


Action = st.tuples(
    st.sampled_from(["join", "ask", "hear", "refuse", "leave"]),
    st.integers(0, 7),
    st.floats(0.0, 25.0),
)


@given(rpm=st.integers(0, 4), most=st.integers(0, 3), actions=st.lists(Action, max_size=150))
def test_the_limits_hold_whatever_happens(rpm, most, actions):
    queue, now, begun, inside, tickets = RequestQueue(rpm, most), 0.0, [], set(), []
    shut = 0.0
    for what, which, passed in actions:
        now += passed
        if what == "join":
            tickets.append(queue.join(now))
        elif tickets:
            ticket = tickets[which % len(tickets)]
            if what == "leave":
                queue.leave(ticket, now)
                inside.discard(ticket)
                tickets.remove(ticket)
            elif what == "hear":
                queue.note_answer(ticket, now)
            elif what == "refuse" and ticket in inside:
                if queue.note_refusal(ticket, now, passed) != "final":
                    shut = max(shut, now + passed)
            elif ticket not in inside and queue.enter(ticket, now) == 0:
                assert now >= shut
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
    queue, now = RequestQueue(rpm, most), 0.0
    tickets = [queue.join(now) for _ in holds]
    waiting, leaving, begun = list(tickets), {}, []
    while waiting:
        for ticket, until in list(leaving.items()):
            if until <= now:
                queue.leave(ticket, now)
                del leaving[ticket]
        entered = [t for t in waiting if queue.enter(t, now) == 0]
        for ticket in entered:
            waiting.remove(ticket)
            leaving[ticket] = now + holds[tickets.index(ticket)]
            queue.note_answer(ticket, now)
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
        enter = limiter.queue.enter

        def watched(ticket, now):
            rest = enter(ticket, now)
            if not rest:
                self.entered.append(now)
            return rest

        limiter.queue.enter = watched

    async def ask(self, clock):
        async with self.limiter.admit():
            with self._lock:
                self.inside += 1
                self.most = max(self.most, self.inside)
            await clock.sleep(0.01)
            with self._lock:
                self.inside -= 1


def test_a_wait_in_an_event_loop_that_is_gone_neither_raises_nor_stays():
    limiter = Limiter("lab", RequestQueue(concurrency=1))

    async def wait_behind():
        holder = limiter.admit()
        await holder.__aenter__()
        waiting = asyncio.get_running_loop().create_task(limiter.admit().__aenter__())
        await asyncio.sleep(0)
        return holder, waiting

    loop = asyncio.new_event_loop()
    holder, waiting = loop.run_until_complete(wait_behind())
    loop.close()
    assert list_waiting(limiter) == [2]
    wait(lambda: holder.__aexit__(None, None, None))  # rings the bell of the wait that is gone
    waiting._log_destroy_pending = False
    del waiting
    gc.collect()

    async def main():
        with anyio.fail_after(1):
            async with limiter.admit():
                return list_waiting(limiter)

    assert wait(main) == []


def test_many_threads_with_event_loops_of_their_own_keep_to_the_limits():
    clock = Clock()
    counted = Counted(Limiter("lab", RequestQueue(20, 3), clock=clock, pause=clock.pause))

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
    limiter = Limiter("lab", RequestQueue(concurrency=1), clock=clock, pause=clock.pause)

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
            assert len(list_waiting(limiter)) == 3
            for scope in reversed(scopes):
                scope.cancel()
        async with limiter.admit():
            return len(list_waiting(limiter)), limiter.queue.inside

    assert wait(main) == (0, 1)


def test_a_place_in_an_event_loop_that_is_gone_is_free_again():
    clock = Clock()
    limiter = Limiter("lab", RequestQueue(concurrency=1), clock=clock, pause=clock.pause)

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
    limiter = Limiter("lab:8000", RequestQueue(rpm=1), clock=clock, pause=clock.pause)

    async def main():
        with report_waits(words.append):
            for _ in range(2):
                async with limiter.admit():
                    assert words in ([], ["waiting for a free place at lab:8000 (rpm 1)", ""])

    wait(main)
    assert len(words) == 2
    assert clock.now >= 1060.0


def test_a_place_that_becomes_free_is_taken_at_once_whatever_the_loop():
    async def never(bell, seconds):
        await bell.wait(3600)

    limiter, order = Limiter("lab", RequestQueue(concurrency=1), pause=never), []
    inside = threading.Event()

    async def ask(number):
        async with limiter.admit():
            order.append(number)
            inside.set()
            await anyio.sleep(0)

    def cell(number):
        async def main():
            with anyio.fail_after(20):
                async with anyio.create_task_group() as group:
                    for each in range(3):
                        group.start_soon(ask, (number, each))

        asyncio.run(main())

    async def hold():
        async with limiter.admit():
            for thread in threads:
                thread.start()
            while len(list_waiting(limiter)) < 12:
                await anyio.sleep(0.001)

    threads = [threading.Thread(target=cell, args=(number,)) for number in range(4)]
    wait(hold)
    for thread in threads:
        thread.join()
    assert len(order) == 12
    assert limiter.queue.inside == 0


def test_a_refusal_shared_with_others_is_no_attempt_of_the_run():
    limiter = Limiter("lab", RequestQueue())

    async def main():
        async with limiter.admit("m") as one, limiter.admit("m") as other:
            faults = [ModelError("x", status=429, retryable=True) for _ in range(2)]
            for place, fault in zip((one, other), faults, strict=True):
                place.note_refusal(fault)
            return faults

    first, second = wait(main)
    assert (first.shared, second.shared) == (False, True)
    plan = types.SimpleNamespace(retry_delay=lambda fault, attempt: 1.0, fallback_models=())
    retries = [choose_retry(fault, 3, Failures(), plan, None) for fault in (first, second)]
    assert [retry.counted for retry in retries] == [True, False]


@pytest.mark.parametrize(
    "fault",
    [
        ModelError("x", status=500, retryable=True),
        ModelError("x", status=503, retryable=True),
        ModelError("x", status=429, retryable=False, retry_after=5.0),
        ModelError("x", status=429, retryable=True, retry_after=3600.0),
    ],
)
def test_faults_that_are_of_one_request_or_too_long_close_nothing(fault):
    limiter = Limiter("lab", RequestQueue())

    async def main():
        async with limiter.admit("m") as place:
            place.note_refusal(fault)
        async with limiter.admit("m"):
            return limiter.queue.inside

    assert wait(main) == 1
    assert not fault.shared


def test_the_strictest_of_several_limits_holds_while_they_last():
    limiter = Limiter("lab", RequestQueue(rpm=100))
    queue = limiter.queue
    with limiter.tightened(rpm=200, concurrency=8):
        assert (queue.rpm, queue.concurrency) == (100, 8)
        with limiter.tightened(rpm=30):
            assert (queue.rpm, queue.concurrency) == (30, 8)
            limiter.change(20, 0)
            assert (queue.rpm, queue.concurrency) == (20, 8)
    assert (queue.rpm, queue.concurrency) == (20, 0)


def test_models_of_one_endpoint_are_tightened_once_others_by_their_name(monkeypatch):
    monkeypatch.setattr(module, "_by_name", {})

    class Foreign:
        name = "own/x"

    class Known:
        limiter = Limiter("lab", RequestQueue())

    async def ask(most):
        async with Limiter.wait_for_slot(Foreign(), print):
            most.append(module._by_name["own/x"].queue.inside)
            await anyio.sleep(0.001)

    async def main():
        most = []
        with Limiter.limit_endpoints([Known(), Known(), Foreign()], concurrency=2):
            assert Known.limiter.queue.concurrency == 2
            async with anyio.create_task_group() as group:
                for _ in range(6):
                    group.start_soon(ask, most)
        assert Known.limiter.queue.concurrency == 0
        async with Limiter.wait_for_slot(Known(), print), Limiter.wait_for_slot(Known(), print):
            return most

    assert max(wait(main)) == 2


def test_a_model_without_a_name_is_tightened_by_that_of_its_class(monkeypatch):
    monkeypatch.setattr(module, "_by_name", {})

    class Nameless:
        pass

    async def main():
        with Limiter.limit_endpoints([Nameless()], concurrency=2):
            async with Limiter.wait_for_slot(Nameless(), print):
                return module._by_name["Nameless"].queue.inside

    assert wait(main) == 1


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


def test_models_of_one_endpoint_share_its_limiter_and_others_have_another(lab):
    lab("rpm = 7\nconcurrency = 2", lambda peer: peer.stream(chunk("x"), "data: [DONE]\n\n"))
    one, other = choose.make_model("lab/a"), choose.make_model("lab/b")
    assert one.limiter is other.limiter
    assert (one.limiter.queue.rpm, one.limiter.queue.concurrency) == (7, 2)
    assert choose.make_model("openai/x").limiter is not one.limiter


@pytest.mark.parametrize("limit", ["rpm = -1", "concurrency = 1.5"])
def test_a_wrong_limit_is_named(lab, limit):
    lab(limit, lambda peer: None)
    with pytest.raises(choose.UsageError, match=limit.split()[0]):
        choose.make_model("lab/a")


def test_runs_in_many_event_loops_send_no_more_than_the_endpoint_takes(lab):
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

    def watched(self, lane):
        entered.append(self.queue.inside)
        return admit(self, lane)

    monkeypatch.setattr(Limiter, "admit", watched)
    child = Agent("lab/a", name="child", secrets={}).as_tool()
    run = wait(lambda: Agent("lab/a", [child], approve="auto", secrets={})("go"))
    assert (run.answer, len(server.asked), entered) == ("done", 4, [0, 0, 0, 0])


def test_a_stopped_run_leaves_the_queue_and_says_what_it_waited_for(lab, monkeypatch):
    lab("concurrency = 1", lambda peer: peer.stream(chunk("x"), "data: [DONE]\n\n"))
    monkeypatch.setattr(module, "REPORTED_AFTER", 0.0)
    agent = Agent("lab/a", secrets={})
    limiter = agent.model.limiter

    async def main():
        async with limiter.admit():
            stream, words = agent("go", check=False), []
            async for event in stream:
                if event.type == "delta" and event.of == "status":
                    words.append(event.text)
                    stream.stop()
            run = await stream
        return run.status, words, list_waiting(limiter)

    status, words, waiting = wait(main)
    assert (status, waiting) == ("interrupted", [])
    assert words == [f"waiting for a free place at {limiter.host} (concurrency 1)"]
