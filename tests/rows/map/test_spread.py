"""Rows asked by the workers of an executor: threads, processes, pools that break."""

import asyncio
import os
import pickle
import signal
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context

import pytest
from helpers.counting_server import CountingServer, stopped_under_way
from helpers.lacking import needed

from agent_nb import Agent
from agent_nb.errors import UsageError
from agent_nb.models import keys
from agent_nb.record.record import events_of
from agent_nb.rows.map.spread import work, worker

WORDS = [f"word {n}" for n in range(12)]
SECRET = "correct-horse-battery"
TIMES = ("_run", "_seconds")


@dataclass
class Label:
    """A type that this module has."""

    word: str
    size: int = 0


@pytest.fixture
def server(monkeypatch):
    with CountingServer.open() as made:
        monkeypatch.setenv("OPENAI_BASE_URL", made.url)
        yield made


@pytest.fixture(autouse=True)
def no_seat_left():
    """Forget the maps of executors in this process that are not known to be in it."""
    yield
    for name in list(worker.place()._seats):
        worker.forget(name)


@pytest.fixture
def threads():
    with ThreadPoolExecutor(4) as pool:
        yield pool


@pytest.fixture
def processes():
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        yield pool


class Recorder(Executor):
    """Runs what it is given at once, in a thread, and keeps it pickled."""

    def __init__(self, change=lambda message: message):
        self.sent = []
        self._pool = ThreadPoolExecutor(2)
        self._change = change

    def submit(self, function, /, *args):
        self.sent.append(pickle.dumps((function, args)))
        function, args = pickle.loads(self.sent[-1])
        return self._pool.submit(function, *map(self._change, args))

    def close(self):
        self._pool.shutdown()


def agent(**options):
    options.setdefault("dialect", "native")
    return Agent("openai/m", **options)


def untimed(frame):
    return [{name: value for name, value in row.items() if name not in TIMES} for row in frame]


def mapped(pool, data=WORDS, prompt="{{ text }}", *, by=None, **options):
    """Return the stream of a map that has ended."""

    async def main():
        stream = (by or agent()).map(data, prompt, client=pool, store=False, **options)
        await stream
        return stream

    return asyncio.run(main())


def test_threads_give_the_frame_that_no_executor_gives(server, threads):
    here = agent().map_sync(WORDS, "{{ text }}", store=False)
    assert untimed(agent().map_sync(WORDS, "{{ text }}", store=False, client=threads)) == untimed(
        here
    )
    assert set(server.counts.values()) == {2}


@pytest.mark.slow
def test_processes_give_the_same_frame_too_and_a_pool_serves_many_maps(server, processes):
    here = untimed(agent().map_sync(WORDS, "{{ text }}", store=False))
    for _ in range(2):
        assert untimed(agent().map_sync(WORDS, "{{ text }}", store=False, client=processes)) == here
    assert set(server.counts.values()) == {3}


def test_the_plan_of_a_map_says_where_its_rows_are_asked(server, threads):
    plans = [e for e in mapped(threads).log if getattr(e, "kind", "") == "map.plan"]
    assert plans[0].payload["where"] == "executor"


def test_no_more_rows_are_asked_at_once_than_wanted(server, threads):
    server.open_.clear()

    async def main():
        stream = agent().map(WORDS, "{{ text }}", store=False, client=threads, concurrency=3)
        stream.start()
        await asyncio.to_thread(server.wait_for, 3)
        await asyncio.sleep(0.2)
        assert server.total == 3
        server.open_.set()
        await stream

    asyncio.run(main())
    assert server.total == len(WORDS)


def test_each_row_leaves_the_record_of_its_run(server, threads):
    from agent_nb.record.inner_records import read_inner_records

    found = read_inner_records(mapped(threads).log)
    answers = {e.content for r in found.values() for e in events_of(r) if e.type == "respond"}
    assert answers == {word.upper() for word in WORDS}


def test_stop_ends_the_requests_under_way(server, threads):
    def make():
        return agent(limits={"seconds": 60}).map(WORDS, "{{ text }}", store=False, client=threads)

    stream = stopped_under_way(server, make, 4)
    assert stream.run.status == "interrupted"
    assert server.total == 4


@pytest.mark.slow
def test_stop_ends_the_requests_of_processes_too(server, processes):
    def make():
        return agent().map(WORDS, "{{ text }}", store=False, client=processes)

    assert stopped_under_way(server, make, 2).run.status == "interrupted"


@pytest.mark.slow
def test_a_pool_that_breaks_ends_its_rows_and_the_next_one_asks_them(server):
    server.open_.clear()

    async def main(pool):
        stream = agent().map(WORDS, "{{ text }}", store=False, client=pool)
        stream.start()
        await asyncio.to_thread(server.wait_for, 2)
        os.kill(next(iter(pool._processes)), signal.SIGKILL)
        await asyncio.wait([stream._task], timeout=60)
        return stream

    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        stream = asyncio.run(main(pool))
    server.open_.set()
    results = list(stream.results)
    assert {r.kind for r in results if r.status == "error"} == {"worker_lost"}
    assert "ok" not in {r.status for r in results}
    assert "Make a new executor and run the map again" in stream.run.reason
    assert sum(r.attempts for r in results) >= server.total
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        again = agent().map_sync(WORDS, "{{ text }}", store=False, client=pool)
    assert {row["_status"] for row in again} == {"ok"}


@pytest.mark.extra
def test_no_agent_and_no_secret_is_sent(server, monkeypatch, tmp_path):
    cloudpickle = needed("cloudpickle")

    path = tmp_path / "config.toml"
    path.write_text(
        f'[endpoints.lab]\nbase_url = "{server.url}"\nkey = "LAB_KEY"\nheaders = {{ x-team = "t{SECRET}" }}\n'
    )
    monkeypatch.setenv("AGENT_NB_CONFIG", str(path))
    monkeypatch.setenv("LAB_KEY", "l" + SECRET)
    monkeypatch.setenv("SOME_TOKEN", "s" + SECRET)
    keys.remember("openai", "o" + SECRET)
    server.say = lambda prompt: '{"word": "a"}'
    pool = Recorder()
    monkeypatch.setattr(pickle, "dumps", cloudpickle.dumps)
    try:
        one = Agent("lab/m", dialect="native", system=f"Never say s{SECRET}.", output=Label)
        one.map_sync(WORDS, "Hide o{{ text }}, l" + SECRET, client=pool)
        given = Agent("lab/m", dialect="native", secrets={"MINE": "m" + SECRET})
        given.map_sync(["m" + SECRET], "Hide {{ text }}", client=pool)
    finally:
        keys.forget("openai")
        pool.close()
    assert len(pool.sent) == len(WORDS) + 1
    for sent in pool.sent:
        assert SECRET.encode() not in sent
        assert not any(word in sent for word in (b"Agent\x94", b"Redaction", b"Configuration"))
    assert set(server.keys) == {f"Bearer l{SECRET}"}


def test_what_a_worker_returns_is_redacted_with_the_secrets_of_the_client(server, threads):
    server.say = lambda prompt: f"It is {SECRET}."
    by = agent(secrets={"MINE": SECRET})
    stream = mapped(threads, ["one"], by=by)
    (result,) = stream.results
    assert result.answer == "It is [redacted MINE]."
    assert SECRET not in stream.log.to_ndjson()


def test_a_typed_answer_becomes_a_value_of_the_type_of_this_side(server, threads):
    @dataclass
    class Near:
        word: str
        size: int = 7

    server.say = lambda prompt: '{"word": "a"}'
    here = agent().map_sync(["one"], "{{ text }}", store=False, output=Near)
    there = agent().map_sync(["one"], "{{ text }}", store=False, output=Near, client=threads)
    assert untimed(there) == untimed(here)
    assert there[0]["size"] == 7


def test_an_answer_that_the_type_itself_refuses_is_an_error_of_its_row(server, threads):
    from pydantic import BaseModel, field_validator

    class Even(BaseModel):
        number: int

        @field_validator("number")
        @classmethod
        def even(cls, value):
            if value % 2:
                raise ValueError("odd")
            return value

    server.say = lambda prompt: '{"number": 3}'
    (row,) = agent().map_sync(["one"], "{{ text }}", store=False, output=Even, client=threads)
    assert row["_status"] == "error"
    assert "odd" in row["_error"]
    assert "Define the type in a module" in row["_error"]


@pytest.mark.slow
def test_a_key_that_only_this_process_has_is_missing_there(server, monkeypatch, tmp_path):
    path = tmp_path / "config.toml"
    path.write_text(f'[endpoints.lab]\nbase_url = "{server.url}"\nkey = "LAB_KEY"\n')
    monkeypatch.setenv("AGENT_NB_CONFIG", str(path))
    keys.remember("lab", SECRET)
    try:
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            (row,) = Agent("lab/m").map_sync(["one"], "{{ text }}", store=False, client=pool)
    finally:
        keys.forget("lab")
    assert row["_status"] == "error"
    assert "Workers read keys from their own environment" in row["_error"]
    assert server.total == 0


def test_another_version_on_the_other_side_is_a_clear_error(server):
    older = f'"version":"{work.__version__}"'.encode()
    pool = Recorder(lambda message: message.replace(older, b'"version":"0.0.9"'))
    (row,) = agent().map_sync(["one"], "{{ text }}", store=False, client=pool)
    pool.close()
    assert "comes from 0.0.9. Install the same version" in row["_error"]
    assert server.total == 0


class Silent(Executor):
    """An executor whose workers lack this package, or return nonsense."""

    def __init__(self, outcome):
        self._outcome = outcome

    def submit(self, function, /, *args):
        future = Future()
        if isinstance(self._outcome, Exception):
            future.set_exception(self._outcome)
        else:
            future.set_result(self._outcome)
        return future


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        (ModuleNotFoundError("No module named 'agent_nb'"), "Install jupyter-agent-nb on every"),
        (b"nonsense", "did not return a result"),
        (b'{"version":"9.9"}', r"jupyter-agent-nb 9.9; here it is"),
    ],
)
def test_a_worker_that_cannot_ask_gives_an_error_that_says_what_to_do(server, outcome, words):
    (row,) = agent().map_sync(["one"], "{{ text }}", store=False, client=Silent(outcome))
    assert row["_status"] == "error"
    assert words in row["_error"].replace(r"\.", ".")


def test_an_executor_that_was_shut_down_is_named(server):
    pool = ThreadPoolExecutor(1)
    pool.shutdown()
    (row,) = agent().map_sync(["one"], "{{ text }}", store=False, client=pool)
    assert "The executor takes no rows" in row["_error"]


def test_what_is_no_client_is_refused_before_the_first_request(server):
    with pytest.raises(UsageError, match="client= is a str"):
        agent().map(WORDS, "{{ text }}", store=False, client="tcp://scheduler:8786")


def test_a_limit_per_minute_that_cannot_be_split_is_refused(server, processes):
    with pytest.raises(UsageError, match=r"rpm=1 cannot be split over 2 processes"):
        agent().map(WORDS, "{{ text }}", store=False, client=processes, rpm=1)
    with pytest.raises(UsageError, match="how many processes a Recorder has"):
        agent().map(WORDS, "{{ text }}", store=False, client=Recorder(), rpm=5)


def test_the_loop_of_a_worker_ends_with_its_last_map(server, threads):
    mapped(threads)
    place = worker.place()
    assert place._loop is None
    assert not place._seats
