"""The public `Agent` stands above the agent that answers prompts, and is one."""

import copy
import inspect
import pickle

import pytest
from helpers import import_graph
from helpers.paths import CHECKOUT

from agent_nb import Agent, Scripted
from agent_nb.agent.agent import PromptAgent
from agent_nb.errors import UsageError

LARGEST = 240  # modules that one prompt may need, doors not counted


def needed_by(module: str) -> set[str]:
    """Return the modules that importing and using `module` may load.

    A door loads the files of the names that are imported from it, which `links` has, and no other.
    """
    links = import_graph.graph(CHECKOUT)
    for name, path in import_graph.modules(CHECKOUT).items():
        if import_graph.is_door(path) and import_graph.is_lazy(path):
            links[name] = {"agent_nb.host.door"}
    seen: set[str] = set()
    left = [module]
    while left:
        new = links[left.pop()] - seen
        seen |= new
        left += new
    return seen


def test_one_prompt_needs_nothing_of_tables():
    needed = needed_by("agent_nb.agent.agent")
    assert not [name for name in needed if import_graph.room(name) == "rows"]
    assert len(needed - lazy_doors()) <= LARGEST


def lazy_doors() -> set[str]:
    """Return the rooms whose `__init__` only passes names on."""
    known = import_graph.modules(CHECKOUT).items()
    return {n for n, path in known if import_graph.is_door(path) and import_graph.is_lazy(path)}


@pytest.mark.parametrize(
    "copied",
    [
        copy.copy,
        lambda agent: agent.with_host(host=None, ask=None),
        lambda agent: agent.with_tools(agent.tools),
        lambda agent: agent.with_output(None),
    ],
)
def test_a_copy_of_an_agent_maps_too(copied):
    agent = copied(Agent(Scripted(["yes"])))
    assert type(agent) is Agent
    assert isinstance(agent, PromptAgent)
    rows = agent.map_sync(["a", "b"], "Is it? {{ text }}", concurrency=1, store=False)
    assert [row["answer"] for row in rows] == ["yes", "yes"]


def test_the_class_says_what_each_value_is():
    words = inspect.getdoc(Agent)
    values = inspect.signature(Agent).parameters.keys() - {"self"}
    plain = {"system", "dialect", "name", "host", "ask", "trace_id"}
    assert not [name for name in values - plain if f"`{name}`" not in words]


def test_an_agent_cannot_be_pickled_and_says_what_to_do():
    with pytest.raises(UsageError, match="Make the agent where it is used"):
        pickle.dumps(Agent(Scripted(["yes"])))
