"""A small MCP server as a program, for tests: `python tests/helpers/mcp_servers.py [http PORT]`.

It is run with the SDK's own server and has a tool for each thing that a client must handle.
"""

import asyncio
import base64
import os
import sys
import time
from pathlib import Path
from typing import Annotated

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAIAAAACCAIAAAD91JpzAAAAEUlEQVR4nGP4z8AARAwQCgAf7gP9i18U1AAAAABJRU5ErkJggg=="
)


def made():
    """Return the server."""
    from mcp.server.mcpserver import MCPServer

    server = MCPServer("small", version="1.2")
    add_values(server)
    add_deeds(server)
    add_context(server)
    return server


def add_values(server):
    """Add tools that return values."""
    from mcp.server.mcpserver import Image
    from mcp_types import ToolAnnotations
    from pydantic import BaseModel

    class Sum(BaseModel):
        total: int
        of: list[int]

    @server.tool(annotations=ToolAnnotations(read_only_hint=True))
    def echo(text: str) -> str:
        """Return the text."""
        return text

    @server.tool()
    def add(numbers: list[int]) -> Sum:
        """Add numbers."""
        return Sum(total=sum(numbers), of=numbers)

    @server.tool()
    def environment() -> dict[str, str]:
        """Return the environment of this server."""
        return dict(os.environ)

    @server.tool()
    def picture() -> list[str | Image]:
        """Return a picture."""
        return ["two by two", Image(data=PNG, format="png")]

    @server.tool()
    def process() -> int:
        """Return the id of this server's process."""
        return os.getpid()

    @server.tool(name="read")
    def like_ours() -> str:
        """Have the name of a built-in tool."""
        return "not the built-in one"


def add_deeds(server):
    """Add tools that do something."""
    from mcp.server.mcpserver.exceptions import ToolError
    from mcp_types import ToolAnnotations

    @server.tool(annotations=ToolAnnotations(destructive_hint=True))
    def wipe(name: str) -> str:
        """Delete something for good."""
        return f"{name} is gone"

    @server.tool()
    def fail(why: str) -> str:
        """Fail."""
        raise ToolError(why)

    @server.tool()
    def die(said: str = "") -> str:
        """End the server during the call."""
        sys.stderr.write(f"dying of {said or 'boredom'}\n")
        sys.stderr.flush()
        os._exit(3)


def add_context(server):
    """Add tools that talk to the client during the call."""
    from mcp.server.mcpserver import Context, Elicit, Resolve
    from mcp.server.mcpserver.resolve import ElicitationResult
    from pydantic import BaseModel

    class Trip(BaseModel):
        where: str
        days: int = 3

    def trip(label: str) -> Elicit[Trip]:
        return Elicit(f"Where to, {label}?", Trip)

    @server.tool()
    async def travel(label: str, found: Annotated[ElicitationResult[Trip], Resolve(trip)]) -> str:
        """Ask the user where to go."""
        if found.action != "accept":
            return found.action
        return f"{label}: {found.data.where}, {found.data.days} days"

    @server.tool()
    async def steps(count: int, context: Context) -> str:
        """Report progress."""
        for n in range(count):
            await context.report_progress(n + 1, count, f"step {n + 1}")
        return "done"

    @server.tool()
    async def wait(folder: str) -> str:
        """Wait until the call is cancelled, and note it."""
        Path(folder, "began").touch()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            Path(folder, "cancelled").touch()
            raise
        return "not cancelled"

    @server.tool()
    async def more() -> str:
        """Add a tool named `later`."""
        server.add_tool(lambda: "here", name="later", description="Was added.")
        return "added"


if __name__ == "__main__":
    if (slow := os.environ.get("SLOW")) is not None:
        time.sleep(float(slow))
    if sys.argv[1:2] == ["http"]:
        made().run(transport="streamable-http", host="127.0.0.1", port=int(sys.argv[2]))
    else:
        made().run()
