"""Maps in bad weather: refusals, errors, stalls and cut streams at a fifth of the requests."""

import sqlite3
from contextlib import closing

import anyio
import pytest
from helpers.storm_server import FAULTS, Storm

from agent_nb import Agent
from agent_nb.errors import RunFailed
from agent_nb.models.http import limiter, request_queue, retry

WINDOW = 0.5  # seconds, in place of a minute


@pytest.fixture(autouse=True)
def short_waits(monkeypatch):
    """Let the waits be short, and each test have limiters of its own."""
    steps = (0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128)
    for module in (retry, request_queue):
        monkeypatch.setattr(module, "BUSY_DELAYS", steps)
    monkeypatch.setattr(retry, "AWAY_DELAYS", steps[:3])
    monkeypatch.setattr(limiter, "_limiters", {})


@pytest.fixture
def weather(tmp_path, monkeypatch):
    """Map texts in a storm; return the rows of the answer."""
    store = tmp_path / "rows.db"

    def run(storm, texts, *, limits="", **options):
        async def main():
            async with storm.serve() as url:
                file = tmp_path / "config.toml"
                patience = 1.0 if {"stall", "half"} & {*storm.faults} and storm.share else 60.0
                times = (
                    f"timeouts = {{ connect = 60.0, first_byte = {patience}, idle = {patience} }}"
                )
                file.write_text(f'[endpoints.lab]\nbase_url = "{url}"\n{times}\n{limits}\n')
                monkeypatch.setenv("AGENT_NB_CONFIG", str(file))
                agent = Agent("lab/m", secrets={})
                with anyio.fail_after(300):
                    rows = await agent.map(texts, "{{ text }}", view=None, store=store, **options)
                await agent.aclose()
                return rows

        return anyio.run(main)

    run.store = store
    return run


def stored(file):
    """Return the runs of the rows in a store."""
    with closing(sqlite3.connect(file)) as connection:
        return [run for (run,) in connection.execute("SELECT run FROM rows")]


def check(rows, texts, storm, file):
    """Check that every row ended with its own answer or its error, and is stored once."""
    assert [row["text"] for row in rows] == texts
    for row in rows:
        if row["_status"] == "ok":
            assert row["answer"] == f"so {row['text']}"
            assert storm.answered[row["text"]] >= 1
        else:
            assert row["_status"] == "error"
            assert row["_error"]
    runs = [row["_run"] for row in rows]
    assert len(set(runs)) == len(rows)
    assert sorted(stored(file)) == sorted(runs)


def storms(weather, seed, count, concurrency):
    """Map in a storm, then again with the same store until the weather is good."""
    texts = [f"visit {number}" for number in range(count)]
    storm = Storm(seed=seed, latency=0.001)
    rows = weather(storm, texts, concurrency=concurrency)
    check(rows, texts, storm, weather.store)
    assert set(storm.met) == {*FAULTS, ""}
    assert storm.asked.total() < 3 * count

    failed = [row["text"] for row in rows if row["_status"] != "ok"]
    assert len(failed) < count / 20, "rows whose streams are cut are asked again"
    calm = Storm(share=0.0)
    rows = weather(calm, texts, concurrency=concurrency)
    assert {row["_status"] for row in rows} == {"ok"}
    assert sorted(calm.asked.elements()) == sorted(failed)


@pytest.mark.long
def test_every_row_ends_ok_or_with_an_error_and_only_those_are_asked_again(weather):
    storms(weather, seed=1, count=150, concurrency=30)


@pytest.mark.long
@pytest.mark.parametrize("seed", [2, 3])
def test_larger_maps_end_too(weather, seed):
    storms(weather, seed=seed, count=1000, concurrency=100)


def test_the_server_never_sees_more_requests_a_minute_than_the_limit(weather, monkeypatch):
    monkeypatch.setattr(request_queue, "WINDOW", WINDOW)
    storm = Storm(seed=7, faults=("429", "429 and when", "500", "cut before"))
    texts = [f"visit {number}" for number in range(80)]
    rows = weather(storm, texts, concurrency=20, rpm=25)
    check(rows, texts, storm, weather.store)
    assert {row["_status"] for row in rows} == {"ok"}
    times = sorted(storm.arrived)
    assert len(times) > len(texts)
    assert all(later - first >= WINDOW for first, later in zip(times, times[25:], strict=False))


def test_the_server_never_sees_more_requests_at_once_than_it_takes(weather):
    storm = Storm(seed=8, faults=("429 and when", "500"), latency=0.002)
    texts = [f"visit {number}" for number in range(80)]
    rows = weather(storm, texts, concurrency=40, limits="concurrency = 3")
    check(rows, texts, storm, weather.store)
    assert {row["_status"] for row in rows} == {"ok"}
    assert storm.most <= 3


@pytest.mark.long
def test_a_server_that_takes_few_at_once_answers_a_map_that_asks_many(weather):
    storm = Storm(share=0.0, refuse=lambda inside: inside > 4, latency=0.005, wait=10)
    texts = [f"visit {number}" for number in range(200)]
    rows = weather(storm, texts, concurrency=100)
    check(rows, texts, storm, weather.store)
    assert {row["_status"] for row in rows} == {"ok"}, "no row used up its attempts"
    assert storm.met["429 and when"] < len(texts), "refusals are learnt from"


def test_a_server_that_refuses_everything_is_given_up_before_long(weather):
    storm = Storm(share=1.0, faults=("429",))
    texts = [f"visit {number}" for number in range(60)]
    with pytest.raises(RunFailed, match=r"rows all failed alike.*429"):
        weather(storm, texts, concurrency=30)
    assert storm.asked.total() < 6 * len(texts)
