"""Tools of MCP servers that a run asks for by name, before the servers run (`mcp:NAME`, …/TOOL)."""

from __future__ import annotations

import msgspec

from ...errors import UsageError
from .config_file import PREFIX
from .server import Server, quote_ascii


class Reference(msgspec.Struct, frozen=True):
    """All tools of the server named `server`, or its one named `tool`.

    `defined`: the server itself if it is defined in code; None: `.mcp.json` has it.
    """

    server: str
    tool: str = ""
    defined: Server | None = None

    @property
    def name(self) -> str:
        """The reference as it is written after `-t`."""
        return f"{PREFIX}{self.server}{f'/{self.tool}' if self.tool else ''}"

    @property
    def key(self) -> tuple[str, str]:
        """Its name, and the digest of a server that is defined in code ("": `.mcp.json` has it)."""
        return self.name, self.defined.digest if self.defined is not None else ""


def is_reference(text: str) -> bool:
    """Return whether the name of a tool is a reference."""
    return text.startswith(PREFIX)


def parse_reference(text: str) -> Reference:
    """Return the reference `mcp:NAME` or `mcp:NAME/TOOL`. Raises UsageError."""
    server, slash, tool = text.removeprefix(PREFIX).partition("/")
    if not server or (slash and not tool):
        raise UsageError(
            f"{quote_ascii(text)} names no server: write mcp:NAME for all tools of a server, or mcp:NAME/TOOL."
        )
    return Reference(server, tool)
