"""The time limit of a row stands still while the row waits for its turn."""

import anyio

from agent_nb import Agent, Scripted
from agent_nb.models.http.bell import Bell
from agent_nb.models.http.limiter import Limiter
from agent_nb.models.http.request_queue import RequestQueue
from agent_nb.models.http.waits import mark_wait, watch_waits
from agent_nb.rows.map.row_clock import RowClock


class Scope:
    deadline = 10.0


def test_the_deadline_moves_by_what_was_waited():
    times, scope = iter([3.0, 8.0]), Scope()
    clock = RowClock(scope, lambda: next(times))
    clock(True)
    assert scope.deadline == float("inf")
    clock(False)
    assert (scope.deadline, clock.waited) == (15.0, 5.0)


def test_overlapping_waits_count_once():
    times, scope = iter([1.0, 2.0, 4.0, 6.0]), Scope()
    clock = RowClock(scope, lambda: next(times))
    for begins in (True, True, False, False):
        clock(begins)
    assert (scope.deadline, clock.waited) == (15.0, 5.0)


def test_waiting_for_a_place_and_before_a_retry_stops_the_clock():
    said = []

    async def main():
        gate = anyio.Event()

        async def pause(bell, seconds):
            gate.set()
            await Bell.wait(bell, seconds)

        limiter = Limiter("host", RequestQueue(concurrency=1), pause=pause)

        async def second():
            with watch_waits(said.append):
                async with limiter.admit():
                    said.append("inside")
                await Limiter.wait_before_retry(0)

        async with anyio.create_task_group() as group, limiter.admit():
            group.start_soon(second)
            await gate.wait()
            assert said == [True]

    anyio.run(main)
    assert said == [True, False, "inside", True, False]


def test_a_run_outside_a_map_has_no_such_clock():
    async def main():
        await Limiter.wait_before_retry(0)

    anyio.run(main)


class Watching(Scripted):
    """Notes the deadline of the run that asks it, and that of its waits."""

    def __init__(self):
        super().__init__(["said"])
        self.seen = []

    def start(self):
        return self

    async def stream(self, request):
        self.seen.append(anyio.current_effective_deadline())
        with mark_wait():
            self.seen.append(anyio.current_effective_deadline())
        async for parts in super().stream(request):
            yield parts


def test_the_time_limit_of_a_row_stands_still_while_it_waits():
    model = Watching()

    async def main():
        await Agent(model, limits={"seconds": 50}, secrets={}).map(["a"], "{{ text }}")

    anyio.run(main)
    assert model.seen[0] < float("inf") == model.seen[1]
