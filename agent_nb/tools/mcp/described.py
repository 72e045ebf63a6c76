"""Turn a tool that an MCP server lists into a Tool of this package.

Why: the runner, the policy and approval then treat it like any other tool.

Rule: the effect of the tool is `outside`, whatever the server says: the server's hints can only
make approval stricter. One that it calls destructive needs an approval of its own, not one of the
whole run. Text of the server for the model is bounded and loses characters that people cannot see.
"""

from __future__ import annotations

import asyncio
import math
from contextlib import suppress
from typing import Any

import msgspec

from ...errors import Cancelled
from ...models import ToolSpec
from ...wire import cut_end, dumps, strip_hidden
from ..base import Tool, ToolContext
from .elicitation import Keyboard
from .hub import HUB
from .input_schema import clean_schema
from .server import Server, quote_ascii
from .session import Progress

LONGEST_DESCRIPTION = 4_000  # characters of a description
_LONGEST_PROGRESS = 200  # characters that a server may say of its progress
LARGEST_SCHEMA = 50_000  # characters of a schema
_CONTEXT = "agent_nb:context"  # the colon keeps it apart from real names of arguments


class ListedTool(msgspec.Struct, frozen=True):
    """One tool as its server lists it: the name there, bounded texts, and the server's hints."""

    name: str
    description: str
    parameters: dict[str, Any]
    destructive: bool = False
    reads: bool = False


def read_listed_tool(tool: Any) -> ListedTool | None:
    """Read a tool that a server lists; return None if its schema is too large."""
    hints = tool.annotations
    schema = clean_schema(tool.input_schema)
    if len(dumps(schema)) > LARGEST_SCHEMA:
        return None
    title = tool.title or (hints.title if hints is not None else "") or ""
    return ListedTool(
        tool.name,
        cut_end(strip_hidden(tool.description or title).strip(), LONGEST_DESCRIPTION),
        schema,
        destructive=hints is not None and hints.destructive_hint is True,
        reads=hints is not None and hints.read_only_hint is True,
    )


def make_tool(server: Server, listed: ListedTool, name: str) -> Tool:
    """Return the Tool for a tool that `server` lists; models call it by `name`."""

    async def call(**values: Any) -> Any:
        context: ToolContext = values.pop(_CONTEXT)
        host = context.host
        keyboard = Keyboard(asyncio.get_running_loop(), host) if host is not None else None
        return await HUB.call(server, listed.name, values, _make_report(context), keyboard)

    return Tool(
        spec=ToolSpec(name, listed.description, listed.parameters),
        invoke=call,
        validate=dict,
        context_parameter=_CONTEXT,
        effect="outside",
        timeout=server.timeout,
        thread="loop",
        preview=lambda _, __: _describe_call(server, listed),
        each=listed.destructive,
        origin=dumps([server.origin, listed.name]),
    )


def _describe_call(server: Server, listed: ListedTool) -> str:
    """Return the text shown next to a question about a call."""
    lines = [f"The tool {quote_ascii(listed.name)} of the MCP server {quote_ascii(server.name)}."]
    if listed.destructive:
        lines.append("The server says that it may change or delete things for good.")
    elif listed.reads:
        lines.append("The server says that it only reads.")
    return " ".join(lines)


def _make_report(context: ToolContext) -> Progress:
    """Return a function that passes a server's progress messages to the call's context."""

    async def report(done: float, total: float | None, message: str | None) -> None:
        text = cut_end(strip_hidden(message or "").strip(), _LONGEST_PROGRESS)
        with suppress(Cancelled):  # the call is being cancelled
            if total is not None and total > 0 and math.isfinite(done) and math.isfinite(total):
                context.progress({"done": _whole(done), "total": _whole(total)}, message=text)
            elif text:
                context.progress({"message": text})

    return report


def _whole(number: float) -> float:
    """Return a number without a fraction as an integer, so that people read 3 and not 3.0."""
    return int(number) if number == int(number) else number
