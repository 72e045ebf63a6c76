"""What holds keys is never pickled; copies stay possible."""

import copy
import multiprocessing.reduction
import pickle

import pytest
from helpers.lacking import needed

from agent_nb import Agent
from agent_nb.agent.configuration import Configuration
from agent_nb.agent.run import Run
from agent_nb.errors import UsageError
from agent_nb.events.log import EventLog
from agent_nb.models.http.remote import RemoteOptions
from agent_nb.models.keys import Key
from agent_nb.models.openai import OpenAIChat
from agent_nb.models.scripted import Scripted
from agent_nb.wire.redact import Redaction, Redactor

HELD = "sk-proj-abcdefghijklmnop"


def _model():
    return OpenAIChat(
        "m", RemoteOptions(base_url="http://localhost:1", label="x", headers={"x-key": HELD})
    )


OBJECTS = {
    "agent": lambda: Agent(Scripted(["Hello."]), secrets={"KEY": HELD}),
    "configuration": lambda: Configuration(Scripted(["Hello."])),
    "stream": lambda: Agent(Scripted(["Hello."]))("Hi."),
    "run": lambda: Run(EventLog()),
    "redaction": lambda: Redaction({"KEY": HELD}),
    "redactor": lambda: Redactor({"KEY": HELD}),
    "key": lambda: Key(HELD, "the environment"),
    "model": _model,
}
WAYS = {
    **{f"protocol {n}": lambda value, n=n: pickle.dumps(value, n) for n in range(6)},
    "in a list": lambda value: pickle.dumps([{"held": value}]),
    "multiprocessing": multiprocessing.reduction.ForkingPickler.dumps,
}


@pytest.mark.few(22)
@pytest.mark.parametrize("made", OBJECTS.values(), ids=OBJECTS)
@pytest.mark.parametrize("dumps", WAYS.values(), ids=WAYS)
def test_what_holds_keys_is_not_pickled(made, dumps):
    with pytest.raises(UsageError, match="cannot be pickled: it may hold keys") as caught:
        dumps(made())
    assert HELD not in str(caught.value)


@pytest.mark.extra
@pytest.mark.parametrize("made", OBJECTS.values(), ids=OBJECTS)
def test_nor_with_cloudpickle_behind_a_function(made):
    cloudpickle = needed("cloudpickle")

    value = made()
    with pytest.raises(UsageError, match="cannot be pickled"):
        cloudpickle.dumps(lambda: value)


def test_the_error_says_what_to_send():
    with pytest.raises(UsageError, match=r"run\.save\(path\)"):
        pickle.dumps(Run(EventLog()))
    with pytest.raises(UsageError, match="Make the agent where it is used"):
        pickle.dumps(Agent(Scripted(["Hello."])))


def test_an_agent_is_copied_as_before():
    agent = Agent(Scripted(["Hello."]), system="Be brief.", settings={"seed": 1})
    again = copy.copy(agent)
    assert type(again) is Agent
    assert again.choice is agent.choice
    again.system = "Be long."
    assert agent.system == "Be brief."
    assert again.run_sync("Hi.").answer == "Hello."


def test_a_deep_copy_shares_nothing_that_changes():
    agent = Agent(Scripted(["Hello."]), settings={"stop": ["a"]})
    again = copy.deepcopy([agent, agent])
    assert again[0] is again[1]
    again[0].settings["stop"].append("b")
    assert agent.settings == {"stop": ["a"]}
