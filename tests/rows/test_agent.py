"""The public `Agent` stands above the agent that answers prompts, and is one."""

import copy
import inspect
import pickle

import pytest

from agent_nb import Agent, Scripted
from agent_nb.agent.agent import PromptAgent
from agent_nb.errors import UsageError


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
