"""Rows whose answer broke off, and what a row took beside the run that ended it."""

from contextlib import suppress

import anyio
import msgspec
import pytest
from helpers.scripts import calling

from agent_nb import Agent, Scripted, tool
from agent_nb.errors import RunFailed
from agent_nb.models.http import waits
from agent_nb.models.script_turn import read_turn
from agent_nb.record.inner_records import InnerRecords
from agent_nb.record.signing import UserKey, is_intact
from agent_nb.rows.map import asking
from agent_nb.rows.map.row_result import Overhead, read_overhead, recorded_result
from agent_nb.rows.store.row_store import RowStore


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(asking, "RETRY_PAUSES", (0.0, 0.0))


class Breaking(Scripted):
    """A model whose first answers to each prompt break off after a few characters."""

    def __init__(self, times, **turn):
        usage = {"input": 10, "output": 5, "cost": 0.25}
        self.cut = read_turn({"text": "half an answer", "cut": True, "usage": usage, **turn}, "cut")
        super().__init__([{"text": "whole", "usage": usage}])
        self.times, self.asked = times, {}

    def start(self):
        return self

    async def stream(self, request):
        prompt = request.messages[-1].text
        self.asked[prompt] = self.asked.get(prompt, 0) + 1
        broken = self.asked[prompt] <= self.times
        async for batch in Scripted([self.cut] if broken else self.turns).stream(request):
            yield batch


def mapped(model, store=False, **options):
    async def main():
        stream = Agent(model, secrets={}, **options).map(["a", "b"], "Say {{ text }}", store=store)
        with suppress(RunFailed):  # if no row has an answer
            await stream
        return stream

    return anyio.run(main)


def test_a_row_whose_answer_broke_off_is_asked_again():
    model = Breaking(2)
    done = mapped(model)
    assert [(r.status, r.answer, r.attempts) for r in done.results] == [("ok", "whole", 3)] * 2
    assert set(model.asked.values()) == {3}


def test_a_row_that_breaks_off_each_time_fails_with_the_last_fault():
    model = Breaking(9)
    done = mapped(model)
    assert [(r.status, r.kind, r.attempts) for r in done.results] == [("error", "cut", 3)] * 2


def test_a_row_whose_tool_has_run_is_not_asked_again():
    ran = []

    @tool
    def count(n: int) -> int:
        """Count."""
        ran.append(n)
        return n

    script = [
        calling("count", n=1),
        {"text": "half", "cut": True},
    ]
    done = mapped(Scripted(script), tools=[count])
    assert [r.status for r in done.results] == ["error"] * 2
    assert len(ran) == 2


def test_a_row_that_is_refused_is_not_asked_again():
    error = {"error": {"status": 400, "message": "no"}}
    model = Breaking(9)
    model.cut = read_turn(error, "error")
    assert [r.attempts for r in mapped(model).results] == [1, 1]


def test_what_broken_runs_cost_counts_and_is_the_same_from_the_store(tmp_path):
    path = tmp_path / "rows.sqlite"
    live = mapped(Breaking(1), path)
    again = mapped(Breaking(0), path)
    for one, other in zip(live.results, again.results, strict=True):
        assert one.input > 10
        assert (one.origin, other.origin) == ("live", "store")
        assert msgspec.structs.replace(other, origin="live") == one


def test_the_seconds_of_a_row_are_the_same_live_stored_and_recorded(tmp_path):
    path = tmp_path / "rows.sqlite"

    class Waiting(Scripted):
        """A model that makes the row wait for its turn before it answers."""

        def start(self):
            return Waiting(self.turns)

        async def stream(self, request):
            with waits.mark_wait():
                await anyio.sleep(0.05)
            async for batch in super().stream(request):
                yield batch

    live = mapped(Waiting(["yes"]), path)
    again = mapped(Waiting(["yes"]), path)
    assert {r.origin for r in again.results} == {"store"}
    seconds = [r.seconds for r in live.results]
    assert [r.seconds for r in again.results] == seconds
    known = InnerRecords.of_log(live.log)
    assert all(is_intact(record) for record in known.values())
    recorded = [recorded_result(known[row.key], row, origin="record") for row in live.rows]
    assert [r.seconds for r in recorded] == seconds
    assert all(read_overhead(known[r.key]).waited >= 0.05 for r in live.results)
    store = RowStore(path, "m", UserKey.read(), owner="reader", read_only=True)
    assert all(stored.mine for stored in store.find(list(known)).values())
    store.close()


@pytest.mark.parametrize(
    "beside", [7, [], {"waited": "x"}, {"broken": -1}, {"cost": 1e300}, {"waited": float("nan")}]
)
def test_a_strange_record_took_nothing_beside_its_run(beside):
    assert read_overhead({"beside": beside}) == Overhead()


def test_a_record_of_earlier_versions_has_no_such_field():
    assert read_overhead({}) == Overhead()
