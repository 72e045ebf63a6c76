"""Rows asked by the workers of a Dask cluster: two processes on this machine."""

import asyncio
import os
import pickle
import signal
import sys
import time
from contextlib import contextmanager

import pytest
from helpers.counting_server import CountingServer, stopped_under_way
from helpers.lacking import needed

from agent_nb import Agent
from agent_nb.errors import RunFailed
from agent_nb.events import State

pytestmark = [
    pytest.mark.extra,
    pytest.mark.slow,
    # Dask's own: a process that a nanny starts again, and comms of one that was killed, are closed
    # by the garbage collector
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
]
WORDS = [f"word {n}" for n in range(40)]
TIMES = ("_run", "_seconds")


@pytest.fixture(autouse=True)
def dask():
    needed("distributed")


@pytest.fixture
def server(monkeypatch):
    with CountingServer.open() as made:
        monkeypatch.setenv("OPENAI_BASE_URL", made.url)
        yield made


@contextmanager
def cluster(**options):
    """Yield the client of a cluster of two processes with one thread each."""
    from distributed import Client, LocalCluster

    given = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0", **options}
    with LocalCluster(**given) as made, Client(made) as client:
        yield client


@pytest.fixture
def client(server):
    with cluster() as made:
        yield made


def agent(**options):
    return Agent("openai/m", dialect="native", **options)


def untimed(frame):
    return [{name: value for name, value in row.items() if name not in TIMES} for row in frame]


def pids(client):
    """Return the process of each worker by its address."""
    return client.run(os.getpid)


def give_key():
    """Give this process a key of its own; it shows in its requests."""
    os.environ["OPENAI_API_KEY"] = f"key-of-{os.getpid()}"


def kill_one(client):
    """Kill the worker that asks most, wait for the one in its place; return how many it asked."""
    before, asking = pids(client), client.processing()
    address = max(asking, key=lambda each: len(asking[each]))
    os.kill(before[address], signal.SIGKILL)
    for _ in range(600):
        now = client.nthreads()
        if address not in now and len(now) == len(before):
            return len(asking[address])
        time.sleep(0.1)
    raise AssertionError("no worker came in place of the one that was killed")


def test_a_cluster_gives_the_same_frame_and_asks_each_row_once(server, client):
    here = agent().map_sync(WORDS, "{{ text }}", store=False)
    there = agent().map_sync(WORDS, "{{ text }}", store=False, client=client, concurrency=20)
    assert untimed(there) == untimed(here)
    assert set(server.counts.values()) == {2}


def test_two_workers_with_a_thread_each_ask_twenty_rows_at_once_half_each(server, client):
    server.open_.clear()
    client.run(give_key)

    async def main():
        stream = agent().map(WORDS, "{{ text }}", store=False, client=client, concurrency=20)
        stream.start()
        await asyncio.to_thread(server.wait_for, 20)
        await asyncio.sleep(0.5)
        assert server.total == 20
        expected = {f"Bearer key-of-{pid}": 10 for pid in pids(client).values()}
        assert server.keys == expected
        server.open_.set()
        await stream
        return stream

    stream = asyncio.run(main())
    (plan,) = [e for e in stream.log if isinstance(e, State) and e.kind == "map.plan"]
    assert plan.payload["where"] == "dask"
    assert len({server.total, len(WORDS), sum(r.attempts for r in stream.results)}) == 1


@pytest.mark.long
def test_killed_workers_lose_no_row_and_every_row_asked_twice_is_counted(server, client):
    here = untimed(agent().map_sync(WORDS, "{{ text }}", store=False))
    server.counts.clear()
    server.open_.clear()

    async def main():
        stream = agent().map(WORDS, "{{ text }}", client=client, concurrency=10)
        stream.start()
        asked = 10
        for _ in range(2):
            await asyncio.to_thread(server.wait_for, asked)
            asked += await asyncio.to_thread(kill_one, client)
        await asyncio.to_thread(server.wait_for, asked)
        server.open_.set()
        return asked - 10, stream, await stream

    again, stream, frame = asyncio.run(main())
    assert untimed(frame) == here
    assert sum(r.attempts for r in stream.results) == server.total
    asked = {f"word {r.position}": r.attempts for r in stream.results}
    assert asked == dict(server.counts)
    assert again >= 10
    assert server.total == len(WORDS) + again
    assert untimed(agent().map_sync(WORDS, "{{ text }}", client=client)) == here
    assert server.total == len(WORDS) + again  # every row was stored


def test_workers_that_are_threads_of_this_process_ask_too(server):
    with cluster(processes=False, protocol="tcp") as client:
        frame = agent().map_sync(WORDS, "{{ text }}", store=False, client=client)
    assert {row["_status"] for row in frame} == {"ok"}


def test_all_workers_together_keep_the_limit_per_minute(server, client):
    async def main():
        stream = agent().map(WORDS, "{{ text }}", store=False, client=client, rpm=7)
        stream.start()
        await asyncio.to_thread(server.wait_for, 7)
        await asyncio.sleep(2)
        stream.cancel()
        await asyncio.wait([stream._task], timeout=30)

    asyncio.run(main())
    assert server.total == 7


def test_a_cluster_that_adapts_starts_a_worker_for_a_map(server):
    with cluster(n_workers=0) as client:
        adapting = client.cluster.adapt(minimum=0, maximum=1, interval="100 ms")
        frame = agent().map_sync(WORDS, "{{ text }}", store=False, client=client)
        adapting.stop()
    assert {row["_status"] for row in frame} == {"ok"}


def test_stop_ends_the_requests_in_the_workers(server, client):
    def make():
        return agent().map(WORDS, "{{ text }}", store=False, client=client, concurrency=6)

    stream = stopped_under_way(server, make, 6, seconds=30)
    assert stream.run.status == "interrupted"
    assert server.total == 6
    assert sum(r.attempts for r in stream.results) == 6


def test_nothing_is_left_in_the_cluster(server, client):
    agent().map_sync(WORDS, "{{ text }}", store=False, client=client)
    for _ in range(100):
        tasks = client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks))
        if not tasks:
            break
        time.sleep(0.05)
    assert not tasks
    assert set(client.run(_open_agents).values()) == {0}


def _open_agents():
    from agent_nb.rows.map.cluster import worker

    return len(worker.process_worker().maps)


def test_an_asynchronous_client_works_in_the_loop_of_the_map(server):
    from distributed import Client, LocalCluster

    async def main():
        options = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": ":0"}
        async with (
            LocalCluster(asynchronous=True, **options) as made,
            Client(made, asynchronous=True) as client,
        ):
            return await agent().map(WORDS, "{{ text }}", store=False, client=client)

    assert {row["_status"] for row in asyncio.run(main())} == {"ok"}


def test_a_worker_that_joins_takes_its_share(server):
    with cluster(n_workers=1) as client:
        server.open_.clear()

        async def main():
            stream = agent().map(WORDS, "{{ text }}", store=False, client=client, concurrency=4)
            stream.start()
            await asyncio.to_thread(server.wait_for, 4)
            await asyncio.to_thread(client.run, give_key)
            await asyncio.to_thread(client.cluster.scale, 2)
            await asyncio.to_thread(client.wait_for_workers, 2)
            await asyncio.sleep(1.2)  # the map looks for workers each half second
            server.open_.set()
            return await stream

        assert {row["_status"] for row in asyncio.run(main())} == {"ok"}
        assert len(server.keys) == 2  # the key of the first one, and none


def test_a_cluster_that_goes_away_ends_the_rows_with_an_error(server):
    server.open_.clear()
    with cluster() as client:

        async def main():
            stream = agent().map(WORDS, "{{ text }}", store=False, client=client, concurrency=4)
            stream.start()
            await asyncio.to_thread(server.wait_for, 4)
            await asyncio.to_thread(client.close)
            await asyncio.wait([stream._task], timeout=60)
            return stream

        stream = asyncio.run(main())
    assert {r.status for r in stream.results} == {"error"}
    assert {r.kind for r in stream.results} == {"worker_lost"}
    assert "Run the map again with another client" in next(iter(stream.results)).error


def hide_package():
    """Make this process one that lacks the package."""
    sys.modules["agent_nb"] = None


def age_package():
    """Make this process one that has an older version of the package."""
    import agent_nb

    agent_nb.__version__ = "0.0.9"
    sys.modules["agent_nb.rows"] = None  # which that version did not have


@pytest.mark.parametrize(
    ("change", "words"), [(hide_package, "lacks it"), (age_package, "has 0.0.9")]
)
def test_workers_that_cannot_ask_stay_unharmed_and_the_error_advises(server, client, change, words):
    client.run(change)
    with pytest.raises(RunFailed, match=f"{words}.*Install it on every worker"):
        agent().map_sync(["one"], "{{ text }}", store=False, client=client)
    assert server.total == 0
    assert client.submit(sum, [1, 2]).result(timeout=30) == 3


def test_the_rows_go_to_the_workers_that_can_ask_them(server, client):
    first, *_ = client.nthreads()
    client.run(hide_package, workers=[first])
    frame = agent().map_sync(WORDS, "{{ text }}", store=False, client=client)
    assert {row["_status"] for row in frame} == {"ok"}


def test_neither_agent_nor_secret_is_in_the_graph(server, client, monkeypatch):
    import cloudpickle

    secret = "correct-horse-battery"
    monkeypatch.setenv("SOME_API_KEY", secret)
    graphs = []
    submit = client.submit

    def recording(*args, **options):
        graphs.append(cloudpickle.dumps((args, options)))
        return submit(*args, **options)

    monkeypatch.setattr(client, "submit", recording)
    mine = "only-this-agent-knows"
    one = agent(system=f"Not {mine}", secrets={"MINE": mine, "SOME_API_KEY": secret})
    one.map_sync([secret, mine], "Say {{ text }}", client=client)
    assert len(graphs) == 2
    for graph in graphs:
        assert secret.encode() not in graph
        assert mine.encode() not in graph
        pickle.loads(graph)  # holds nothing that must stay here
    assert set(server.counts) == {"Say [redacted MINE]", "Say [redacted SOME_API_KEY]"}
