"""The runs of the rows of a map, from its log or its store."""

import pytest

from agent_nb import RUNS, Agent, EventLog, Scripted
from agent_nb.agent.run import Run
from agent_nb.errors import UsageError
from agent_nb.events import State
from agent_nb.record.inner_records import InnerRecords
from agent_nb.rows.map import sample
from agent_nb.rows.map.known_rows import row_runs
from agent_nb.rows.recorded_runs import Runs

TEXTS = ["one", "two", "three"]


def mapped(agent, **options):
    """Run a map to its end; return the stream."""
    import asyncio

    async def main():
        stream = agent.map(TEXTS, "{{ text }}", **options)
        await stream
        return stream

    return asyncio.run(main())


@pytest.fixture
def agent():
    return Agent(Scripted(["Yes."]))


@pytest.fixture
def large(monkeypatch):
    """Make three rows too many for the log of a map."""
    monkeypatch.setattr(sample, "MOST_ROWS", 2)


def test_the_runs_of_a_small_map_come_from_its_log(agent):
    found = mapped(agent, store=False).runs
    assert [run.prompt for run in found] == TEXTS
    assert found[-1].answer == "Yes."
    assert list(found.to_frame(RUNS)["prompt"]) == TEXTS


def test_the_runs_in_a_record_come_in_the_order_in_which_they_began(agent):
    """Files sort the rows by their keys, which are hashes."""
    log = mapped(agent, store=False).log
    found = sorted(InnerRecords.of_log(log).items(), reverse=True)
    later = {
        key: {**record, "events": [{**event, "ts": 1e9 + n} for event in record["events"]]}
        for n, (key, record) in enumerate(found)
    }
    state = State(
        kind=InnerRecords.KIND, payload=InnerRecords(dict(sorted(later.items()))).to_payload()
    )
    rows = Runs([Run(EventLog.of_events([*log[:-1], state]))]).rows
    assert [run.id for run in rows] == [record["id"] for _, record in found]


def test_the_runs_of_a_large_map_come_from_its_store(agent, large, tmp_path):
    found = mapped(agent, store=tmp_path / "rows.sqlite").runs
    assert [run.prompt for run in found] == TEXTS
    assert [run.prompt for run in found[1:]] == TEXTS[1:]
    assert repr(found) == "<Runs: 3>"


def test_a_row_is_read_when_it_is_wanted(agent, large, tmp_path, monkeypatch):
    found = mapped(agent, store=tmp_path / "rows.sqlite").runs
    opened = []
    monkeypatch.setattr(row_runs, "log_of", lambda record: opened.append(record) or [])
    assert len(found) == 3
    assert not opened
    assert found[2:][0] is not None
    assert len(opened) == 1


def test_a_row_that_was_forgotten_says_so_and_the_others_are_read(agent, large, tmp_path):
    stream = mapped(agent, store=tmp_path / "rows.sqlite")
    with stream._open_store() as store:
        store.forget({stream.results[1].run})
    assert [stream.runs[n].prompt for n in (0, 2)] == ["one", "three"]
    for read in (lambda: stream.runs[1], lambda: list(stream.runs)):
        with pytest.raises(UsageError, match="has lost the run of a row"):
            read()


def test_a_large_map_without_a_store_says_that_its_runs_are_kept_nowhere(agent, large):
    found = mapped(agent, store=False).runs
    assert not found
    assert "store" in found.problems[0]


def test_a_map_that_has_not_begun_has_no_runs(agent):
    assert len(agent.map(TEXTS, "{{ text }}").runs) == 0
