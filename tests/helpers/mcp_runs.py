"""Runs that call tools of MCP servers, and their processes."""

import asyncio
import json
import os
import time

from agent_nb import Scripted


def says(*batches, answer="done"):
    """A script that calls tools, one batch per turn: each call is (name, args)."""
    return Scripted(
        [
            "<execute>"
            + json.dumps([{"name": name, "args": args} for name, args in batch])
            + "</execute>"
            for batch in batches
        ]
        + [answer]
    )


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def until(true, seconds=20):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        await asyncio.sleep(0.02)


def written(folder, name, command):
    entry = {"command": command[0], "args": command[1:]}
    (folder / ".mcp.json").write_text(json.dumps({"mcpServers": {name: entry}}))
