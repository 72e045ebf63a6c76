"""The live line below a cell that calls models: when it is drawn, and how it ends."""

import pytest

from agent_nb.agent.run import Run
from agent_nb.events import Counts, EventLog, Metric, RunStart
from agent_nb.notebook.cell import taped_line
from agent_nb.notebook.cell.taped_line import CountedCalls, LiveLine
from agent_nb.notebook.identity import Cell


@pytest.fixture
def lines(monkeypatch):
    """What was published: (data, whether it replaced a display)."""
    published = []
    monkeypatch.setattr(
        taped_line,
        "publish_display",
        lambda data, metadata, transient, update: published.append((data, update)),
    )
    return published


def start_line(misses=(), **where):
    log = EventLog()
    log.append(RunStart(model="openai/m"))
    runs = [Run(log)]
    cell = Cell(**{"key": "a", "id": "a", "kernel": True, "stdin": True, **where})
    return LiveLine(cell, "e1", lambda: CountedCalls(runs, 0, misses))


def test_the_end_of_the_cell_empties_the_line_and_later_calls_draw_nothing(lines):
    line = start_line()
    line._draw()
    assert "1 model call · m · 1 running" in lines[0][0]["text/plain"]
    line.end()
    assert [update for _, update in lines] == [False, True]
    assert lines[-1] == ({}, True)
    line.redraw_soon()
    line._draw()
    assert line._timer is None
    assert len(lines) == 2


def test_an_opened_line_stays_open_until_it_says_something_else(lines):
    misses = []
    line = start_line(misses)
    line._draw()
    line._draw()
    assert len(lines) == 1
    misses.append("the prompt differs")
    line._draw()
    assert [update for _, update in lines] == [False, True]


def test_a_cell_that_ends_at_once_shows_no_line(lines, monkeypatch):
    monkeypatch.setattr(taped_line, "_PAUSE", 60)  # s; this thread may pause, too
    line = start_line()
    line.redraw_soon()
    timer = line._timer
    line.end()
    timer.join(10)
    assert lines == []


@pytest.mark.parametrize(
    "where",
    [
        {"kernel": False},
        {"id": "", "stdin": False},
        {"runner_options": {"unshown": True}},
        {"runner_options": {"headless": True}},
    ],
    ids=["terminal", "nbclient", "test", "run"],
)
def test_where_nobody_watches_a_line_is_never_drawn(lines, where):
    line = start_line(**where)
    line.redraw_soon()
    assert line._timer is None
    line._draw()
    line.end()
    assert lines == []


def test_a_sum_without_the_price_of_one_call_says_at_least():
    def priced(cost):
        log = EventLog()
        log.append(RunStart(model="openai/m"))
        counts = Counts(input=10, output=5, cost=cost)
        log.append(Metric(step=counts, total=counts))
        return Run(log)

    assert "· $0.30" in CountedCalls([priced(0.1), priced(0.2)], 0, ()).describe()
    assert "· at least $0.10" in CountedCalls([priced(0.1), priced(None)], 0, ()).describe()
    assert "$" not in CountedCalls([priced(None)], 0, ()).describe()
