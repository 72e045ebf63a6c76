"""Which tools of a server a run gets for its references, without a server."""

import asyncio
from types import SimpleNamespace

from agent_nb import mcp_server
from agent_nb.tools.mcp import opening
from agent_nb.tools.mcp.hub import ServerTools
from agent_nb.tools.mcp.references import Reference


def test_a_tool_under_two_names_is_offered_once(monkeypatch):
    listed = SimpleNamespace(
        name="a.b", title="", description="does", input_schema={}, annotations=None
    )

    async def answer(server):
        return ServerTools([listed])

    monkeypatch.setattr(opening.HUB, "list_tools", answer)
    server = mcp_server("small", "program")
    references = [Reference("small", name, server) for name in ("a.b", "a_b", "a.b")]
    tools, lists = asyncio.run(opening.open_references(references, (), ".", lambda line: None))
    assert [tool.name for tool in tools] == ["a_b"]
    assert [entry["name"] for entry in lists[0]["tools"]] == ["a_b"]
