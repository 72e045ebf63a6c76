"""The hub of sessions: servers that are stopped, and what the user reads if one does not end."""

import asyncio
import os
import subprocess
import sys

import pytest
from helpers import mcp_hostile_server
from helpers.mcp_runs import until
from helpers.waiting import wait

from agent_nb import mcp_server
from agent_nb.errors import ToolError, UsageError
from agent_nb.tools.mcp import hub


class StuckSession:
    """A session that does not end in time."""

    async def close(self):
        await asyncio.sleep(0.5)


def test_a_server_that_does_not_end_is_an_error_for_the_user(monkeypatch):
    monkeypatch.setattr(hub, "_EXIT", 0.01)
    server = mcp_server("slow", "cat")
    own = hub.Hub()
    own._sessions[server.digest] = StuckSession()
    with pytest.raises(UsageError, match=r'"slow" did not end in 0\.01 seconds'):
        own.stop(server)


def test_a_server_that_is_stopped_while_it_is_asked_does_not_start_again():
    server = mcp_server("evil", sys.executable, [mcp_hostile_server.__file__, "list"])
    own = hub.Hub()

    async def stop():
        request = asyncio.create_task(own.list_tools(server))
        await until(lambda: own.running(server))
        await asyncio.to_thread(own.stop, server)
        with pytest.raises(ToolError, match='"evil" was stopped'):
            await request

    wait(stop)
    assert not list(own.states())


def test_stopping_a_server_during_its_start_is_an_error_that_says_so():
    server = mcp_server("mute", sys.executable, ["-c", "import time; time.sleep(60)"])
    own = hub.Hub()

    async def stop():
        request = asyncio.create_task(own.list_tools(server))
        await until(lambda: "starting" in [state for _, state in own.states()])
        await asyncio.to_thread(own.stop, server)
        with pytest.raises(ToolError) as error:
            await request
        return str(error.value)

    assert wait(stop) == 'The MCP server "mute" was stopped.'


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_has_no_session_of_its_parent():
    code = """
import os
from agent_nb import mcp_server
from agent_nb.tools.mcp.hub import HUB
HUB._get_session(mcp_server("x", "cat"))
if not (child := os.fork()):
    os._exit(len(list(HUB.states())))
assert (os.waitpid(child, 0)[1], len(list(HUB.states()))) == (0, 1)
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_a_server_whose_end_fails_leaves_no_other_open():
    ended = []

    class Session:
        def __init__(self, server):
            self.server = server

        async def close(self):
            if self.server.name == "bad":
                raise ZeroDivisionError
            for _ in range(9):
                await asyncio.sleep(0)
            ended.append(self.server.name)

    async def main():
        with pytest.raises(ZeroDivisionError):
            await own._close()
        return list(ended)

    own = hub.Hub()
    for name in ("one", "bad", "two"):
        server = mcp_server(name, "cat")
        own._sessions[server.digest] = Session(server)
    assert asyncio.run(main()) == ["one", "two"]
