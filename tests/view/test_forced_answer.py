"""A limit that made the model answer is named in the header of a run that ended well."""

import asyncio

import pytest
from helpers.scripts import calling

from agent_nb import Agent, Scripted, tool
from agent_nb.view.draw import text
from agent_nb.view.layout import page
from agent_nb.view.state.fold import RunView


@tool
def look() -> str:
    """Look."""
    return "nothing"


def header(count, **limits):
    model = Scripted([*[calling("look")] * (count - 1), "That is all."])
    agent = Agent(model, tools=[look], limits=limits, secrets={})
    run = asyncio.run(agent("look", record=False)._wait())
    assert run.status == "ok"
    return text.draw(page(RunView().extend(run.log)))


def test_the_turn_limit_that_forced_the_answer_is_in_the_header():
    assert "had to answer at the limit of 3 turns" in header(3, turns=3)


@pytest.mark.parametrize("limits", [{"turns": 4}, {"turns": 0}, {}])
def test_an_answer_that_no_limit_forced_names_none(limits):
    assert "had to answer" not in header(3, **limits)


def test_a_run_of_one_turn_was_not_forced():
    assert "had to answer" not in header(1, turns=1)
