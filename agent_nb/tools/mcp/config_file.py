"""Read the servers of a `.mcp.json`.

    {"mcpServers": {"NAME": {"command": "npx", "args": ["…"], "env": {"TOKEN": "${TOKEN}"}},
                    "OTHER": {"type": "http", "url": "https://…", "headers": {…}}}}

Why: other programs read the same file, so that the user describes a server once. But it may be a
stranger's: reading it starts nothing, and a key of another program, such as a list of allowed
tools, is ignored.

Rule: a fault of one entry is kept in `faults`, so that the other entries can be used. A key that
stands twice, also inside an entry, is a fault of the whole file.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from ...errors import UsageError, did_you_mean
from ...host import find_nearest, shorten_path
from ...wire import replace_surrogates
from .server import Server, check_server, quote_ascii

MCP_FILE = ".mcp.json"
PREFIX = "mcp:"  # of a reference to a server (`references`)
_ADVICE = (
    'Write one, such as {"mcpServers": {"NAME": {"command": "npx", "args": [...]}}}, '
    "or make the server in Python with mcp_server(...) and name its variable after -t."
)
_LARGEST_FILE = 1 << 20  # bytes
_MOST_SERVERS = 100  # servers of one file
_MOST_ITEMS = 256  # arguments, variables or headers of one server
_LONGEST_TEXT = 8192  # characters of one text
# values of `type` that mean streamable HTTP
_HTTP = ("http", "streamable-http", "streamableHttp", "streamable_http")


class ConfigFile(msgspec.Struct, frozen=True):
    """The servers of one file by name, and the error messages (`faults`) of its unusable entries.

    `path`: None if no file was found.
    """

    path: Path | None = None
    servers: dict[str, Server] = {}
    faults: dict[str, str] = {}

    @property
    def heading(self) -> str:
        """The line above a list of the servers; without a file, how to write one."""
        if self.path is None:
            return f"There is no {MCP_FILE}. {_ADVICE}"
        return f"Servers of {shorten_path(self.path)}"

    @property
    def references(self) -> list[str]:
        """The names by which a run asks for the servers: `mcp:NAME`."""
        return [f"{PREFIX}{name}" for name in self.servers]

    def server(self, name: str) -> Server:
        """Return the server `name`. Raises UsageError."""
        if name in self.faults:
            raise UsageError(self.faults[name])
        if name in self.servers:
            return self.servers[name]
        if self.path is None:
            raise UsageError(
                f"There is no MCP server {quote_ascii(name)}: neither this folder nor one above it has a file {MCP_FILE}. {_ADVICE}"
            )
        hint = did_you_mean(name, self.servers)
        known = ", ".join(self.servers) or "none"
        raise UsageError(
            f"There is no MCP server {quote_ascii(name)} in {shorten_path(self.path)}.{hint} Servers: {known}."
        )


def read_servers(folder: str | os.PathLike[str] = ".") -> ConfigFile:
    """Return the servers of the nearest `.mcp.json`, in a folder or above it. Raises UsageError."""
    path = find_nearest(MCP_FILE, Path(folder))
    if path is None:
        return ConfigFile()
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST_FILE + 1)
    except OSError as error:
        raise UsageError(f"{shorten_path(path)} cannot be read: {error.strerror}.") from None
    return parse(content, path)


def parse(content: bytes, path: Path) -> ConfigFile:
    """Return the servers that the content of the file at `path` describes. Raises UsageError."""
    entries = _read_entries(content, shorten_path(path))
    servers: dict[str, Server] = {}
    faults: dict[str, str] = {}
    for name, entry in entries.items():
        try:
            if not (isinstance(entry, dict) and entry.get("disabled") is True):
                servers[name] = _read_server(name, entry, path)
        except UsageError as fault:
            faults[name] = f"{fault} It stands in {shorten_path(path)}."
    return ConfigFile(path, servers, faults)


def _read_entries(content: bytes, shown: str) -> dict[str, Any]:
    """Return the entries of a file by name; `shown`: its path in messages. Raises UsageError."""
    if len(content) > _LARGEST_FILE:
        raise UsageError(f"{shown} is larger than 1 MB.")
    try:
        top = json.loads(content.decode("utf-8-sig"), object_pairs_hook=_make_object)
    except _DuplicateKeyError as fault:
        raise UsageError(f"{shown}: the key {quote_ascii(str(fault))} stands twice.") from None
    except (ValueError, RecursionError) as fault:
        where = f", line {fault.lineno}" if isinstance(fault, json.JSONDecodeError) else ""
        raise UsageError(f"{shown}{where} is not JSON in UTF-8. Correct or remove it.") from None
    entries = top.get("mcpServers", {}) if isinstance(top, dict) else None
    if not isinstance(entries, dict):
        raise UsageError(
            f'{shown} must be an object with the key "mcpServers", an object of servers by name.'
        )
    if len(entries) > _MOST_SERVERS:
        raise UsageError(f"{shown} has {len(entries):,} servers; {_MOST_SERVERS} are the most.")
    return entries


class _DuplicateKeyError(ValueError):
    """A key stands twice in one object; `json` would silently take the last value."""


def _make_object(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Return the JSON object of (key, value) pairs. Raises _DuplicateKeyError."""
    members: dict[str, Any] = {}
    for key, value in pairs:
        if key in members:
            raise _DuplicateKeyError(key[:80])
        members[key] = value
    return members


def _read_server(name: str, entry: Any, path: Path) -> Server:
    """Return the server of one entry. Raises UsageError."""
    fields = _Fields(name, entry)
    kind = fields.read_text("type")
    if kind == "sse":
        raise fields.make_fault("the transport sse is no longer supported; give its http address")
    if kind not in ("", "stdio", *_HTTP):
        raise fields.make_fault(f"its type {quote_ascii(kind[:40])} is not stdio or http")
    server = Server(
        name=name,
        command=fields.read_text("command"),
        args=fields.read_texts("args"),
        env=fields.read_pairs("env"),
        cwd=fields.read_text("cwd"),
        url=fields.read_text("url"),
        headers=fields.read_pairs("headers"),
        file=str(path.absolute()),
    )
    if kind and bool(server.url) != (kind in _HTTP):
        raise fields.make_fault(
            f"its type {kind} does not fit its {'url' if server.url else 'command'}"
        )
    return check_server(server)


class _Fields:
    """The values of one entry. Each method raises UsageError for a wrong type or size.

    `make_fault` returns this error. A missing key is an empty value.
    """

    def __init__(self, name: str, entry: Any) -> None:
        self._name = name
        if not isinstance(entry, dict):
            raise self.make_fault("its entry must be an object")
        self._entry = entry

    def make_fault(self, problem: str) -> UsageError:
        name = quote_ascii(self._name[:80])
        return UsageError(f"The MCP server {name} cannot be used: {problem}.")

    def read_text(self, key: str) -> str:
        return self._check_text(key, self._entry.get(key, ""))

    def read_texts(self, key: str) -> tuple[str, ...]:
        items = self._entry.get(key, [])
        if not isinstance(items, list) or len(items) > _MOST_ITEMS:
            raise self.make_fault(f"{key} must be a list of {_MOST_ITEMS} texts at most")
        return tuple(self._check_text(f"each of {key}", value) for value in items)

    def read_pairs(self, key: str) -> dict[str, str]:
        items = self._entry.get(key, {})
        if not isinstance(items, dict) or len(items) > _MOST_ITEMS:
            raise self.make_fault(f"{key} must be an object of {_MOST_ITEMS} texts at most")
        names = [self._check_text(f"a name in {key}", name) for name in items]
        values = [self._check_text(f"each value of {key}", value) for value in items.values()]
        return dict(zip(names, values, strict=True))

    def _check_text(self, what: str, value: Any) -> str:
        if (
            isinstance(value, str)
            and len(value) <= _LONGEST_TEXT
            and value == replace_surrogates(value)  # UTF-8 cannot hold half of a character
        ):
            return value
        raise self.make_fault(f"{what} must be a text of {_LONGEST_TEXT:,} characters at most")
