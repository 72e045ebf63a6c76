"""A map that is stopped at any step: nothing is lost, nothing is left behind, the rest is asked.

The schedule is fixed: a stepped loop without real time, rows that meet a wait of each kind (the
queue of the endpoint, a pause before a retry, an answer in pieces, a failure, the store).
"""

import asyncio
import threading
from collections import Counter

import anyio
import pytest
from helpers.stepped_loop import run_stepped

from agent_nb import Agent
from agent_nb.agent.recorded_turns import RecordedTurns
from agent_nb.errors import ModelError
from agent_nb.events import End
from agent_nb.models.http.limiter import Limiter
from agent_nb.models.http.request_queue import RequestQueue
from agent_nb.models.parts import Finish, Head, Text, Usage
from agent_nb.models.tariff import Tariff
from agent_nb.record.inner_records import InnerRecords
from agent_nb.record.record import run_record
from agent_nb.record.signing import UserKey
from agent_nb.record.verify import check_record
from agent_nb.rows.store.row_store import RowStore

ROWS = ["plain", "busy", "slow", "bad", "last"]
STEPS = 100  # more than the map takes


class Endpoint:
    """A model with two places, whose rows answer in pieces, after a refusal, late, or never."""

    name, dialect, grammar, shots, context = "endpoint", "xml", False, False, 0
    tariff = Tariff(reports=True)

    def __init__(self):
        self.asked, self.open, self.most, self.mended = Counter(), 0, 0, False
        self.limiter = Limiter("endpoint", RequestQueue(0, 2), clock=anyio.current_time)

    async def stream(self, request):
        """Answer after the ways of the row."""
        said = request.messages[-1].text.removeprefix("say ")
        async with self.limiter.admit() as place:
            self.open += 1
            self.most = max(self.most, self.open)
            try:
                self.asked[said] += 1
                await anyio.sleep(0.1)
                if said == "busy" and self.asked[said] == 1:
                    raise ModelError("busy", retryable=True, status=500, retry_after=0.5)
                if said == "bad" and not self.mended:
                    raise ModelError("bad request", status=400)
                place.note_answer(200)
                yield [Head(status=200, model="m"), Usage(input=7, output=3, cost=0.1), Text("it")]
                for _ in range(3 if said == "slow" else 1):
                    await anyio.sleep(0.1)
                    yield [Text(" is")]
                yield [Finish("stop")]
            finally:
                self.open -= 1

    async def aclose(self):
        """Do nothing."""


class Attempt:
    """One execution of the map over the store at `path`."""

    def __init__(self, model, path, **options):
        self.model = model
        self.agent = Agent(model, secrets={})
        self.stream = self.agent.map(
            ROWS, "say {{ text }}", concurrency=3, store=path, view=None, **options
        )
        self.main = None

    async def run(self):
        """Await the map as a script does."""
        self.main = asyncio.current_task()
        return await self.stream

    def stop(self, way):
        """Stop it in one of the `WAYS`."""
        WAYS[way](self)


def shut_down(attempt):
    for task in asyncio.all_tasks(attempt.main.get_loop()) if attempt.main else ():
        task.cancel()


def cancel_waiting(attempt):
    if attempt.main is not None:
        attempt.main.cancel()


def cancel_driving(attempt):
    if attempt.stream._task is not None:
        attempt.stream._task.cancel()


WAYS = {
    "stop": lambda attempt: attempt.stream.cancel(),
    "cancel the code that awaits it": cancel_waiting,
    "cancel its task": cancel_driving,
    "shut the loop down": shut_down,
}


def execute(path, model, at=0, way="stop", *, again=0, queued=False):
    """Run the map; stop it at the step `at`, and once more `again` steps later.

    Return the attempt, what it raised or returned, and how many steps it took.
    """
    attempt = Attempt(model, path)

    def step(number):
        if at and number in (at, *([at + again] if again else [])):
            attempt.stop(way)

    outcome, steps = run_stepped(attempt.run, step, queued=queued)
    return attempt, outcome, steps


def check_ended(attempt, path):
    """Check that nothing of an ended map is lost or left behind."""
    stream, model = attempt.stream, attempt.model
    results, log = list(stream.results), stream.log
    began = bool(log)
    if began:
        assert isinstance(log[-1], End)
        assert [e.type for e in log].count("end") == 1
        record = UserKey.read().sign(run_record(log))
        assert (check_record(record), UserKey.read().signed_hash(record)) == ([], True)
        counts = [e.payload for e in log.of("state") if e.kind == "map"]
        done = [r for r in results if r.status != "pending"]
        assert [(c["done"], c["asking"]) for c in counts] == [(len(done), 0)]
    store = RowStore(path, "m", UserKey.read(), owner="reader")
    try:
        found = store.find([r.key for r in results])
        assert {k for k, s in found.items() if s.final} == {
            r.key for r in results if r.status == "ok"
        }
        assert all(s.mine for s in found.values())
        free = [r.key for r in results if r.status != "ok"]
        assert store.claim(free, 0.0) == set(free)
        store.release(free)
    finally:
        store.close()
    assert model.open == 0
    assert model.limiter.queue.whose_turn(0.0) is None
    for thread in threading.enumerate():
        if thread.name.startswith("agent_nb map"):
            thread.join(10)  # it is about to end
            assert not thread.is_alive()
    return began


def check_replays(attempt):
    """Check that the record of a stopped map gives the same rows."""
    stream = attempt.stream
    log = stream.log
    again = Attempt(Endpoint(), False).stream
    again.play(RecordedTurns.of(UserKey.read().sign(run_record(log)), key=UserKey.read()), None)

    async def play():
        again.start()
        await asyncio.wait([again._task])

    asyncio.run(play())
    kept = InnerRecords.of_log(log)
    assert {r.key: (r.status, r.answer) for r in again.results if r.status != "pending"} == {
        r.key: (r.status, r.answer) for r in stream.results if r.key in kept
    }
    assert {r.key for r in stream.results if r.status in ("ok", "error")} <= {*kept}


def check_resumes(attempt, path):
    """Check that another execution asks the rows that are not stored, and no others."""
    kept = {r.key for r in attempt.stream.results if r.status == "ok"}
    model = attempt.model
    model.mended = True
    before = Counter(model.asked)
    later, outcome, _ = execute(path, model)
    assert not isinstance(outcome, BaseException), outcome
    assert {r.status for r in later.stream.results} == {"ok"}
    assert {r.key for r in later.stream.results if r.origin == "store"} == kept
    places = {row.key: ROWS[row.position] for row in attempt.stream.rows}
    assert {said for said in ROWS if model.asked[said] > before[said]} == {
        places[key] for key in places if key not in kept
    }


def stop_and_resume(folder, at, way, **options):
    """Stop a map at a step, check what is left, play its record, and run it again."""
    path = folder / f"{at}.sqlite"
    attempt, outcome, _ = execute(path, Endpoint(), at, way, **options)
    raised = isinstance(outcome, BaseException)
    assert not raised or (way != "stop" and isinstance(outcome, asyncio.CancelledError)), outcome
    if check_ended(attempt, path):
        check_replays(attempt)
    check_resumes(attempt, path)


def test_the_schedule_meets_every_wait_and_is_shorter_than_the_tests_think(tmp_path):
    attempt, _, steps = execute(tmp_path / "rows.sqlite", Endpoint())
    assert [r.status for r in attempt.stream.results] == ["ok", "ok", "ok", "error", "ok"]
    assert attempt.model.asked == {**dict.fromkeys(ROWS, 1), "busy": 2}
    assert attempt.model.most == 2
    assert 50 < steps < STEPS


@pytest.mark.few(6)
@pytest.mark.parametrize("at", range(4, STEPS, 13))
@pytest.mark.parametrize("way", WAYS)
def test_a_map_that_is_stopped_loses_nothing_and_goes_on_where_it_was(tmp_path, at, way):
    stop_and_resume(tmp_path, at, way, queued=bool(at % 2))


@pytest.mark.long
@pytest.mark.parametrize("queued", [False, True])
@pytest.mark.parametrize("again", [0, 1])
@pytest.mark.parametrize("way", WAYS)
def test_whatever_the_step_and_however_often_it_is_stopped(tmp_path, way, again, queued):
    for at in range(1, STEPS, 3 if again else 1):
        stop_and_resume(tmp_path, at, way, again=again, queued=queued)
