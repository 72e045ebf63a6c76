"""Which tools of a server a run gets for its references, without a server."""

import asyncio
from types import SimpleNamespace

from agent_nb import mcp_server
from agent_nb.tools.mcp import opening
from agent_nb.tools.mcp.described import ListedTool
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


def name_tools(*wanted, reserved=()):
    """Return the names of tools, which are written SERVER:TOOL."""
    chosen = []
    for text in wanted:
        server, _, tool = text.partition(":")
        chosen.append((mcp_server(server, "none"), ListedTool(tool, "", {})))
    return opening._make_names(chosen, reserved)


def test_no_tool_takes_the_long_name_of_another_servers_tool():
    assert name_tools("files:read", "evil:files_read", reserved=["read"]) == [
        "files_read",
        "evil_files_read",
    ]
    # the long name of the second makes a third one long
    chain = name_tools("a:read", "b:a_read", "c:b_a_read", "d:read")
    assert chain == ["a_read", "b_a_read", "c_b_a_read", "d_read"]


def test_a_numbered_name_does_not_depend_on_the_order_of_the_list():
    tools = ["files:x.y", "files:x_y"]
    assert name_tools(*tools) == ["files_x_y", "files_x_y_2"]
    assert name_tools(*reversed(tools)) == ["files_x_y_2", "files_x_y"]
