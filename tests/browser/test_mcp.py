"""MCP servers in JupyterLab: allowed at the keyboard, started in sight, asked about, in cards."""

import json
import sys
from pathlib import Path

import pytest
from helpers import mcp_servers

pytestmark = [pytest.mark.browser, pytest.mark.slow]

SETUP = """%load_ext agent_nb
import json
from agent_nb import Scripted
def script(*calls):
    batch = json.dumps([{"name": name, "args": args} for name, args in calls])
    return Scripted([f"<execute>{batch}</execute>", {"chunk": 4, "delay": 0.01, "text": "All three calls are done."}])
m = script(("steps", {"count": 3}), ("picture", {}), ("wipe", {"name": "table"}))"""


def test_a_server_is_allowed_started_asked_about_and_shown(opened, server):
    notebook = opened()
    entry = {
        "command": sys.executable,
        "args": [str(Path(mcp_servers.__file__))],
        "env": {"SLOW": "3", "GREETING": "hello"},
    }
    (server.root / ".mcp.json").write_text(json.dumps({"mcpServers": {"small": entry}}))
    notebook.run(SETUP)
    index = notebook.run("%%agent -m m -t mcp:small\nDo it.")
    notebook.sees(index, "is not allowed to start")
    notebook.shot("mcp-not-allowed")

    index = notebook.begin("%agent mcp allow small")
    field = notebook.output(index).locator("input.jp-Stdin-input")
    field.wait_for()
    notebook.sees(index, '"GREETING"="hello"')
    notebook.shot("mcp-allow")
    field.fill("y")
    field.press("Enter")
    notebook.wait(index)
    notebook.sees(index, "allowed: the MCP server small")

    index = notebook.begin("%%agent -m m -t mcp:small --live\nDo it.")
    notebook.sees(index, "starting the MCP server small")
    notebook.shot("mcp-starting")
    for name in ("steps", "picture", "wipe"):
        notebook.sees(index, f'The tool "{name}" of the MCP server "small".')
        if name == "wipe":
            notebook.sees(index, "it may change or delete things for good")
            notebook.shot("mcp-asked")
        notebook.button(index, "Approve").click()
    notebook.wait(index)
    notebook.sees(index, "All three calls are done.")
    notebook.sees(index, "wipe · small")
    notebook.shot("mcp-done")
    listed = notebook.run("%agent mcp")
    notebook.sees(listed, "running")
    notebook.shot("mcp-listed")
