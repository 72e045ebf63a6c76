"""The driver of a map: workers, results, stops and limits, whatever order the rows finish in."""

import asyncio

import msgspec
import pytest
from helpers.examples import count_examples
from helpers.maps import BAD, OK, Map, settled
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_nb.errors import Cancelled
from agent_nb.rows.map.asking import RowAnswer
from agent_nb.rows.map.budget import FIRST_ROWS, Budget
from agent_nb.rows.map.map_log import TICK
from agent_nb.rows.map.repeated_failure import ALIKE
from agent_nb.rows.map.row import RowResult


def test_as_many_rows_as_allowed_are_asked_at_once_and_no_more():
    async def main():
        m = Map(7, concurrency=3)
        await m.begin()
        assert m.asker.asked == [0, 1, 2]
        await m.finish(1)
        assert m.asker.asked == [0, 1, 2, 3]
        await m.end()
        assert (m.asker.most, m.asker.asked, m.asker.closed) == (3, list(range(7)), True)

    asyncio.run(main())


def test_a_row_whose_asker_raises_has_the_error_and_the_others_go_on():
    async def main():
        m = Map(2, concurrency=1)
        await m.begin()
        await m.finish(0, RuntimeError("lost"))
        await m.end()
        assert m.statuses == ["error", "ok"]
        assert (m.results[0].kind, m.results[0].error) == ("internal", "RuntimeError: lost")

    asyncio.run(main())


def test_a_stop_ends_rows_under_way_as_interrupted_others_stay_pending():
    async def main():
        m = Map(4, concurrency=2)
        await m.begin()
        await m.finish(0)
        m.driver.cancel(Cancelled("user", "enough"))
        await m.task
        assert m.statuses == ["ok", "interrupted", "interrupted", "pending"]
        assert [e.kind for e in m.log.of("state")] == ["map.plan", "map", "map.rows"]
        assert [e.type for e in m.log][-2:] == ["interrupt", "end"]
        assert (m.log[-2].detail, m.log[-1].status) == ("enough", "interrupted")

    asyncio.run(main())


def test_a_stop_before_the_first_row_asks_nothing():
    async def main():
        m = Map(4)
        m.driver.cancel(Cancelled("user"))
        await m.driver.run()
        assert (m.statuses, m.asker.asked) == (["pending"] * 4, [])
        assert m.log[-1].status == "interrupted"

    asyncio.run(main())


def test_an_event_loop_that_is_shut_down_leaves_a_whole_log():
    async def main():
        m = Map(4, concurrency=2)
        await m.begin()
        await m.finish(1)
        return m  # asyncio.run cancels what is left

    m = asyncio.run(main())
    assert m.statuses == ["interrupted", "ok", "interrupted", "pending"]
    assert m.log[-1].status == "interrupted"
    assert m.asker.asked == [0, 1, 2]


def test_an_asker_that_returns_a_cancelled_tasks_row_gets_no_further_row():
    async def main():
        m = Map(3, concurrency=1)

        async def ask(row):
            m.asker.asked.append(row.position)
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cut = RowResult(
                    position=row.position, key=row.key, status="interrupted", input=5, run="r"
                )
                return RowAnswer(cut, {"id": "r", "status": "interrupted"})

        m.asker.ask = ask
        await m.begin()
        m.driver.cancel(Cancelled("user"))
        await m.task
        assert (m.asker.asked, m.results[0].input, m.results[0].run) == ([0], 5, "")
        assert [e.kind for e in m.log.of("state")] == ["map.plan", "map"]
        assert m.statuses == ["interrupted", "pending", "pending"]

    asyncio.run(main())


def test_a_limit_over_all_rows_stops_the_rows_under_way():
    async def main():
        m = Map(5, concurrency=3, budget=Budget(cost=1.0))
        await m.begin()
        await m.finish(1, {**OK, "cost": 1.1})
        await m.task
        assert m.statuses == ["limit", "ok", "limit", "pending", "pending"]
        assert m.log[-1].status == "limit"
        assert m.log[-2].reason == "limit"

    asyncio.run(main())


def test_rows_wait_while_those_under_way_may_use_up_the_budget():
    async def main():
        budget = Budget(cost=1.2)
        budget.expect(10, 0.5)
        m = Map(5, concurrency=4, budget=budget)
        await m.begin()
        assert m.asker.asked == [0, 1]
        await m.finish(0, {**OK, "cost": 0.1})
        assert m.asker.asked == [0, 1, 2, 3, 4]  # cheaper than expected
        await m.end()
        assert m.statuses.count("ok") == 4

    asyncio.run(main())


def test_a_limit_that_the_last_row_uses_up_ends_nothing():
    async def main():
        m = Map(3, concurrency=1, budget=Budget(cost=1.5))
        await m.begin()
        await m.end()
        assert m.statuses == ["ok"] * 3
        assert m.log[-1].status == "ok"
        assert m.log.of("interrupt") == []

    asyncio.run(main())


def test_a_wrong_estimate_keeps_few_rows_more_under_way_than_are_over():
    async def main():
        budget = Budget(cost=1000.0)
        budget.expect(1, 0.001)
        m = Map(200, concurrency=100, budget=budget)
        await m.begin()
        assert len(m.asker.open) == FIRST_ROWS
        await m.finish(0, {**BAD, "cost": 0.0, "input": 0})  # a refusal shows nothing
        assert len(m.asker.open) == FIRST_ROWS
        await m.finish(1)
        assert len(m.asker.open) == FIRST_ROWS + 1
        for over in range(2, 200):
            assert len(m.asker.open) <= FIRST_ROWS + over
            await m.finish(next(iter(m.asker.open)))
        await m.task
        assert m.asker.most == 100

    asyncio.run(main())


def test_rows_that_used_nothing_do_not_make_the_others_look_cheap():
    async def main():
        m = Map(60, concurrency=20, budget=Budget(cost=3.0))
        await m.begin()
        for place in range(ALIKE - 1):
            await m.finish(place, {**BAD, "cost": 0.0, "input": 0})
        await m.finish(ALIKE - 1)
        assert len(m.asker.open) == FIRST_ROWS - 1  # none began after the one that was dear
        await m.end()

    asyncio.run(main())


def test_a_map_whose_first_rows_all_fail_alike_ends_with_their_error():
    async def main():
        m = Map(40, concurrency=4)
        await m.begin()
        for place in range(ALIKE):
            await m.finish(place, BAD)
        await m.task
        assert len(m.asker.asked) == ALIKE + 3
        assert m.log[-1].status == "error"
        assert m.log.of("error")[0].message.endswith("no more are asked: no")

    asyncio.run(main())


@pytest.mark.parametrize("first", [OK, {**BAD, "error": "another"}])
def test_one_other_row_lets_a_map_of_failures_go_on(first):
    async def main():
        m = Map(ALIKE + 5, concurrency=1)
        await m.begin()
        await m.finish(0, first)
        while m.asker.open:
            await m.finish(next(iter(m.asker.open)), BAD)
        await m.task
        assert m.statuses.count("error") == len(m.results) - (first is OK)
        assert m.log[-1].status == ("ok" if first is OK else "error")

    asyncio.run(main())


@pytest.mark.parametrize(
    ("outcomes", "message"),
    [
        ([BAD], "The only row failed: no"),
        ([BAD] * (ALIKE - 1), "All 9 rows failed alike: no"),
        ([BAD, {**BAD, "error": "another"}], "All 2 rows failed: no"),
        ([BAD, {**BAD, "error": "another"}] * ALIKE, "All 20 rows failed: no"),
        ([BAD, OK], ""),
        ([BAD, {**BAD, "error": "another"}] * ALIKE + [OK], ""),
        ([BAD, {"status": "limit", "kind": "turns"}], ""),
        ([], ""),
    ],
)
def test_a_map_whose_rows_all_failed_is_an_error(outcomes, message):
    async def main():
        m = Map(len(outcomes), concurrency=1)
        await m.begin()
        for place, outcome in enumerate(outcomes):
            await m.finish(place, outcome)
        await m.task
        assert m.log[-1].status == ("error" if message else "ok")
        errors = [(e.code, e.message) for e in m.log.of("error")]
        assert errors == ([("provider", message)] if message else [])

    asyncio.run(main())


def test_on_error_raise_ends_the_map_with_the_error_of_the_row():
    async def main():
        m = Map(4, concurrency=2, on_error="raise")
        await m.begin()
        await m.finish(1, BAD)
        await m.task
        assert m.statuses == ["interrupted", "error", "pending", "pending"]
        error = m.log.of("error")[0]
        assert (error.code, error.message) == ("provider", "Row 1: no")
        assert m.log[-1].status == "error"

    asyncio.run(main())


def test_snapshots_come_with_the_clock_and_only_with_news():
    async def main():
        m = Map(3, concurrency=1)
        said = []
        m.log.subscribe(lambda e: said.append(e) if e.type == "delta" else None)
        await m.begin()
        await m.finish(0)
        assert not said
        m.ticks.set()
        await settled()
        m.ticks.set()
        await settled()
        assert [(e.of, msgspec.json.decode(e.text)["done"]) for e in said] == [("map", 1)]
        for _ in range(round(1 / TICK)):
            m.ticks.set()
            await settled()
        assert len(said) == 2  # nothing new for a second
        await m.end()
        assert m.log.of("state")[1].payload["done"] == 3

    asyncio.run(main())


@pytest.mark.parametrize("small", [True, False])
def test_only_a_small_map_keeps_the_records_of_its_rows(small):
    async def main():
        m = Map(1 if small else 1001, concurrency=1)

        async def ask(row):
            return RowAnswer(
                RowResult(position=row.position, key=row.key, run="r", **OK), {"id": "r"}
            )

        m.asker.ask = ask
        await m.driver.run()
        kinds = [e.kind for e in m.log.of("state")]
        assert kinds == ["map.plan", "map", *(["map.rows"] if small else [])]

    asyncio.run(main())


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("finish"), st.integers(0, 5), st.sampled_from([OK, BAD])),
        st.tuples(st.just("raise"), st.integers(0, 5), st.just(OK)),
        st.tuples(st.just("cancel"), st.just(0), st.just(OK)),
        st.tuples(st.just("tick"), st.just(0), st.just(OK)),
    ),
    max_size=20,
)


@settings(max_examples=count_examples(150), deadline=None)
@given(
    count=st.integers(0, 8),
    concurrency=st.integers(1, 4),
    on_error=st.sampled_from(["keep", "raise"]),
    tokens=st.sampled_from([0, 25]),
    steps=STEPS,
)
def test_whatever_happens_every_row_has_one_result_and_the_counts_agree(
    count, concurrency, on_error, tokens, steps
):
    async def main():
        m = Map(count, concurrency=concurrency, on_error=on_error, budget=Budget(tokens=tokens))
        came = []

        async def read():
            async for result in m.results.finished():
                came.append((result.position, result.status))

        reader = asyncio.create_task(read())
        await m.begin()
        for step, at, said in steps:
            opened = list(m.asker.open)
            if step == "cancel":
                m.driver.cancel(Cancelled("user"))
            elif step == "tick":
                m.ticks.set()
            elif opened:
                place = opened[at % len(opened)]
                await m.finish(place, RuntimeError("x") if step == "raise" else said)
            await settled()
        await m.end()
        await reader
        over = [r for r in m.results if r.status != "pending"]
        counts = next(e.payload for e in m.log.of("state") if e.kind == "map")
        assert [r.position for r in m.results] == list(range(count))
        assert sorted(came) == [(r.position, r.status) for r in over]
        assert counts["done"] == len(over) == len(m.asker.asked)
        assert counts["ok"] + sum(counts["failures"].values()) == counts["done"]
        assert counts["asking"] == 0
        assert m.asker.most <= concurrency
        assert len(set(m.asker.asked)) == len(m.asker.asked)
        assert [e.type for e in m.log].count("end") == 1
        assert m.log[-1].type == "end"
        assert (m.log[-1].status == "ok") == (
            len(over) == count and not m.log.of("error", "interrupt")
        )

    asyncio.run(main())
