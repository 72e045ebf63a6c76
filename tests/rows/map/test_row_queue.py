"""The rows of a map and their store: found, claimed, kept before they count, left to be resumed."""

import asyncio
from functools import partial

import pytest
from helpers.examples import count_examples
from helpers.maps import BAD, OK, Map, until
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_nb.errors import Cancelled, UsageError
from agent_nb.record.signing import UserKey
from agent_nb.rows.map.known_rows.row_queue import LEASE, RENEW
from agent_nb.rows.store.row_store import RowStore

KEY = UserKey(b"secret")


def opener(folder, owner="one"):
    return partial(RowStore, folder / "rows.sqlite", "m", KEY, owner=owner)


def run(main):
    asyncio.run(asyncio.wait_for(main, 30))


def test_a_second_map_takes_every_row_from_the_store(tmp_path):
    async def main():
        for owner, asked in (("one", [0, 1, 2]), ("two", [])):
            m = Map(3, store=opener(tmp_path, owner))
            await m.begin()
            await m.end()
            assert (sorted(m.asker.asked), m.statuses) == (asked, ["ok"] * 3)
        assert [(r.origin, r.answer, r.run) for r in m.results] == [
            ("store", "yes", f"r{n}") for n in range(3)
        ]
        counts = m.log.of("state")[1].payload
        assert (m.log.of("state")[0].payload["found"], counts["found"], counts["done"]) == (3, 3, 3)

    run(main())


def test_rows_that_are_missing_or_failed_are_asked_again_and_no_others(tmp_path):
    async def main():
        m = Map(3, store=opener(tmp_path), concurrency=3)
        await m.begin()
        await until(lambda: len(m.asker.open) == 3)
        await m.finish(1, BAD)
        await m.end()
        again = Map(4, store=opener(tmp_path, "two"), concurrency=1)
        await again.begin()
        await again.end()
        assert again.asker.asked == [1, 3]
        assert [r.attempts for r in again.results] == [1, 2, 1, 1]

    run(main())


def test_a_row_counts_when_it_is_stored_and_not_before(tmp_path):
    async def main():
        m = Map(2, store=opener(tmp_path), concurrency=1)
        other = opener(tmp_path, "reader")()
        stored = []

        async def read():
            async for result in m.results.finished():
                stored.append((result.position, set(other.find([result.key]))))

        reader = asyncio.create_task(read())
        await m.begin()
        await m.end()
        await reader
        assert stored == [(0, {"k0"}), (1, {"k1"})]
        other.close()

    run(main())


def test_a_stopped_map_keeps_what_is_done_and_frees_the_rest_at_once(tmp_path):
    async def main():
        m = Map(5, store=opener(tmp_path), concurrency=2)
        await m.begin()
        await until(lambda: len(m.asker.open) == 2)
        await m.finish(0)
        await until(lambda: m.asker.asked == [0, 1, 2])
        m.driver.cancel(Cancelled("user"))
        await m.task
        assert m.statuses == ["ok", "interrupted", "interrupted", "pending", "pending"]
        other = opener(tmp_path, "two")()
        keys = [f"k{n}" for n in range(5)]
        assert set(other.find(keys)) == {"k0"}
        assert other.claim(keys, LEASE) == set(keys[1:])
        other.close()

    run(main())


def test_an_event_loop_that_is_shut_down_keeps_what_is_done(tmp_path):
    async def main():
        m = Map(4, store=opener(tmp_path), concurrency=2)
        await m.begin()
        await until(lambda: len(m.asker.open) == 2)
        m.asker.open[1].set_result(OK)
        await asyncio.sleep(0)
        return m

    m = asyncio.run(main())
    assert m.results[1].status == "ok"
    assert m.log[-1].type == "end"
    assert set(opener(tmp_path, "two")().find(["k0", "k1"])) == {"k1"}


def test_rows_of_another_kernel_are_waited_for_and_taken_from_the_store(tmp_path):
    async def main():
        other = Map(2, store=opener(tmp_path, "other"))
        await other.begin()
        await until(lambda: len(other.asker.open) == 2)
        m = Map(3, store=opener(tmp_path))
        await m.begin()
        await until(lambda: m.asker.open)
        said = []
        m.log.subscribe(lambda e: said.append(e.text) if e.type == "delta" else None)
        await m.finish(2)
        m.ticks.set()
        await until(lambda: any("waiting for 2 rows" in words for words in said))
        assert (m.asker.asked, m.task.done()) == ([2], False)
        await other.end()
        await ticking(m)
        assert m.asker.asked == [2]
        assert [r.origin for r in m.results] == ["store", "store", "live"]

    run(main())


def test_rows_that_another_kernel_gave_up_are_asked_here(tmp_path):
    async def main():
        other = opener(tmp_path, "other")()
        other.claim(["k0"], LEASE)
        m = Map(1, store=opener(tmp_path))
        await m.begin()
        m.ticks.set()
        await asyncio.sleep(0.01)
        assert m.asker.asked == []
        other.release(["k0"])
        other.close()
        await ticking(m)
        assert (m.asker.asked, m.statuses) == ([0], ["ok"])

    run(main())


def test_the_claims_of_a_slow_row_are_renewed(tmp_path):
    async def main():
        renewed = []
        store = opener(tmp_path)()
        renew, store.renew = store.renew, lambda lease: (renewed.append(lease), renew(lease))
        m = Map(1, store=lambda: store)
        await m.begin()
        await until(lambda: m.asker.open)
        for _ in range(round(RENEW)):
            m.ticks.set()
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        await until(lambda: renewed == [LEASE])
        await m.end()

    run(main())


def test_if_the_store_fails_the_map_ends_and_shows_what_is_done(tmp_path):
    async def main():
        store = opener(tmp_path)()

        def put(rows):
            raise UsageError("The disk is full. Make room.")

        store.put = put
        m = Map(3, store=lambda: store, concurrency=1)
        await m.begin()
        await m.end()
        assert m.statuses == ["ok", "pending", "pending"]
        assert m.log[-1].status == "error"
        assert "disk is full" in m.log.of("error")[0].message

    run(main())


@pytest.mark.parametrize("failing", ["renew", "find"])
def test_a_store_that_fails_while_the_map_waits_ends_it(tmp_path, failing):
    async def main():
        other = opener(tmp_path, "two")()
        assert other.claim(["k0"], LEASE) == {"k0"}
        store = opener(tmp_path)()
        m = Map(1, store=lambda: store)
        await m.begin()
        await until(lambda: store._transactions)

        def fail(*_):
            raise UsageError("The disk is broken. Take another.")

        setattr(store, failing, fail)
        await ticking(m)
        other.close()
        assert m.log[-1].status == "error"
        assert "disk is broken" in m.log.of("error")[0].message

    run(main())


def test_a_store_that_cannot_be_opened_is_an_error_before_any_request():
    async def main():
        def store():
            raise UsageError("The store is newer. Update.")

        m = Map(3, store=store)
        await m.begin()
        await m.task
        assert (m.asker.asked, m.log[-1].status) == ([], "error")

    run(main())


async def ticking(m):
    """Let the clock of a map go on until it has ended."""
    while not m.task.done():
        m.ticks.set()
        if m.asker.open:
            await m.finish(next(iter(m.asker.open)))
        await asyncio.sleep(0.001)


@settings(max_examples=count_examples(25), deadline=None)
@given(
    count=st.integers(0, 6),
    concurrency=st.integers(1, 3),
    turns=st.lists(st.integers(0, 5), max_size=8),
    stop=st.booleans(),
)
def test_two_kernels_ask_each_row_once_whatever_the_order(
    tmp_path_factory, count, concurrency, turns, stop
):
    folder = tmp_path_factory.mktemp("rows")

    async def main():
        both = [
            Map(count, store=opener(folder, owner), concurrency=concurrency)
            for owner in ("one", "two")
        ]
        for m in both:
            await m.begin()
        for turn in turns:
            m = both[turn % 2]
            await asyncio.sleep(0.001)
            if m.asker.open:
                await m.finish(sorted(m.asker.open)[turn % len(m.asker.open)])
        if stop:
            both[0].driver.cancel(Cancelled("user"))
        await asyncio.gather(*map(ticking, both))
        first, second = both
        finished = [r.position for r in first.results if r.origin == "live" and r.status == "ok"]
        finished += [r.position for r in second.results if r.origin == "live" and r.status == "ok"]
        assert sorted(finished) == sorted(set(finished))
        assert second.statuses == ["ok"] * count
        assert stop or sorted([*first.asker.asked, *second.asker.asked]) == list(range(count))

    run(main())


@pytest.mark.parametrize("on_error", ["keep", "raise"])
def test_a_failed_row_is_in_the_store_with_its_error(tmp_path, on_error):
    async def main():
        m = Map(1, store=opener(tmp_path), on_error=on_error)
        await m.begin()
        await until(lambda: m.asker.open)
        await m.finish(0, BAD)
        await m.task
        assert m.statuses == ["error"]
        found = opener(tmp_path, "two")().find(["k0"])["k0"]
        assert (found.final, found.record["status"], found.attempts) == (False, "error", 1)

    run(main())
