"""Maps whose agent has tools of MCP servers: the servers are opened once, and judged at once."""

import sys

import anyio
import pytest
from helpers import mcp_light_server
from helpers.mcp_runs import says

from agent_nb import Agent, mcp_server
from agent_nb.errors import RunFailed
from agent_nb.tools.mcp import opening
from agent_nb.tools.mcp.hub import HUB

pytestmark = pytest.mark.slow


@pytest.fixture
def small():
    """A small server, made in code."""
    yield mcp_server("small", sys.executable, [mcp_light_server.__file__])
    HUB.close()


@pytest.fixture
def times(monkeypatch):
    """How often servers were opened."""
    seen = []
    opened = opening.open_references

    async def counted(*given):
        seen.append(1)
        return await opened(*given)

    monkeypatch.setattr(opening, "open_references", counted)
    return seen


def mapped(small, *, approve):
    """Return a map of two rows that has ended."""
    stream = Agent(says([("echo", {"text": "hi"})]), [small], approve=approve, secrets={}).map(
        ["one", "two"], "{{ text }}", store=False
    )

    async def main():
        await stream

    try:
        anyio.run(main)
    except RunFailed:
        assert stream.run.status == "error"
    return stream


def test_servers_open_once_for_all_rows_and_stand_in_each_record(small, times):
    done = mapped(small, approve="auto")
    assert len(times) == 1
    for run in done.runs:
        assert [e.kind for e in run.log.of("state")] == ["mcp"]
        assert [e.status for e in run.log.of("result")] == ["ok"]


def test_tools_of_servers_that_need_approval_are_an_error_beforehand(small):
    done = mapped(small, approve="ask")
    assert "--approve" in done.run.error
    assert [r.status for r in done.results] == ["pending", "pending"]
