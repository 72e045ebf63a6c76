"""The hub of sessions: what the user reads if a server does not end."""

import asyncio

import pytest

from agent_nb import mcp_server
from agent_nb.errors import UsageError
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
