"""Small MCP servers for the tests."""

import sys
from pathlib import Path

import pytest
from helpers import mcp_light_server, mcp_servers
from helpers.mcp_runs import says

from agent_nb import Agent, mcp_server
from agent_nb.tools.mcp.hub import HUB

PROGRAM = str(Path(mcp_servers.__file__))


@pytest.fixture(autouse=True)
def own_state(tmp_path, monkeypatch, program):
    """Keep permissions of other tests and of the user out, and leave no server but `small`."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("AGENT_NB_TRUST_MCP", raising=False)
    yield
    shared = mcp_server("small", program[0], program[1:])
    for server, _ in HUB.states():
        if server != shared:
            HUB.stop(server)


@pytest.fixture(autouse=True, scope="module")
def tidy():
    """Leave no server behind; the tests of a module share `small`."""
    yield
    HUB.close()


@pytest.fixture(scope="session")
def program():
    """The command of the small server."""
    return [sys.executable, PROGRAM]


@pytest.fixture(scope="session")
def light():
    """The command of a server that starts at once."""
    return [sys.executable, mcp_light_server.__file__]


@pytest.fixture
def small(program):
    """The small server, made in code."""
    return mcp_server("small", program[0], program[1:])


@pytest.fixture
def ask():
    """Run one batch of calls and return the run."""

    def run(tools, *calls, approve="auto", **options):
        agent = Agent(says(calls), tools=tools, approve=approve, **options)
        return agent.run_sync("go", check=False)

    return run


@pytest.fixture
def one(ask):
    """Run one call and return its result."""

    def run(tools, name, args=None, **options):
        found = ask(tools, (name, args or {}), **options)
        return found.log.of("result")[0]

    return run
