"""Rows of tables of calls, turns and runs."""

from agent_nb import events as ev
from agent_nb.events.rows import run_rows, turn_rows


def counts(n):
    return ev.Counts(input=n, output=1)


def log_with_sub_agent():
    """A run of two turns, whose first turn calls a sub-agent of three turns."""
    inner = [
        event
        for turn in (1, 2, 3)
        for event in (
            ev.Node(run="r", span=f"c1/llm-{turn}", name="llm", phase="enter", turn=turn),
            ev.Metric(run="r", span="c1", step=counts(10), total=counts(10 * turn), turn=turn),
        )
    ]
    return [
        ev.RunStart(run="r", model="large", tools=["helper"]),
        ev.Node(run="r", span="llm-1", name="llm", phase="enter", turn=1),
        ev.Metric(run="r", step=counts(100), total=counts(100), turn=1),
        ev.RunStart(run="r", span="c1", model="small", settings={"a": 1}),
        *inner,
        ev.End(run="r", span="c1", status="ok"),
        ev.Node(run="r", span="llm-2", name="llm", phase="enter", turn=2),
        ev.Metric(run="r", step=counts(200), total=counts(330), turn=2),
        ev.End(run="r", status="ok"),
    ]


def test_a_sub_agent_changes_neither_the_model_nor_the_turns_of_its_run():
    (row,) = run_rows(log_with_sub_agent(), {})
    assert (row.model, row.tools, row.turns, row.usage.input) == ("large", ["helper"], 2, 330)
    (row,) = run_rows(log_with_sub_agent()[:9], {})  # while the sub-agent runs
    assert (row.model, row.turns, row.usage.input) == ("large", 1, 100)


def test_the_turns_of_a_sub_agent_belong_to_the_turn_that_called_it():
    rows = turn_rows(log_with_sub_agent(), {})
    assert [(r.turn, r.usage.input, r.requests, r.model) for r in rows] == [
        (1, 130, 4, "large"),
        (2, 200, 1, "large"),
    ]


def test_turns_of_a_sub_agent_stay_where_its_run_counts_none():
    log = [
        ev.RunStart(run="r", model="large"),
        ev.RunStart(run="r", span="c1", model="small"),
        ev.Metric(run="r", span="c1", step=counts(10), total=counts(10), turn=2),
    ]
    assert [(r.turn, r.usage.input) for r in turn_rows(log, {})] == [(2, 10)]


def test_a_turn_of_many_thoughts_takes_linear_time():
    """In quadratic time it would exceed the test's time limit."""
    (row,) = turn_rows([ev.Think(run="r", turn=1, content="x" * 200)] * 20_000, {})
    assert row.thought == "x" * 4_000_000
