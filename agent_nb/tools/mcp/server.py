"""A server as its entry describes it: a command, or the address of an HTTP server.

Why: a permission, a session and a reference must all mean exactly the same entry. So the entry is a
value: nothing here starts a server, and only `expand` fills in variables.

Rules
- The digest covers everything that decides what runs and what it receives. A permission covers
  exactly one entry, since its command may be a stranger's; the program behind it may change.
- People read an entry as exact quoted text, in which everything but printable ASCII is escaped:
  control characters, look-alike letters, marks that reorder a line.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from ...errors import NotAllowed, UsageError
from ...host import Offer, shorten_path
from ...wire import encode_canonical, replace_surrogates
from . import masking

# `${NAME}` or `${NAME:-default}`: the name is group 1, the default group 2
VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_. -]{0,63}")
_SHORTEST_SECRET = 6  # characters; hiding a shorter value would blot out ordinary text


class Server(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The entry of one server. It has a `command` (stdio) or a `url` (streamable HTTP).

    `cwd` is relative to the folder of `file`, the `.mcp.json` it stands in ("": made in code).
    `timeout`: seconds for one call (None: as for every tool; `math.inf`: no limit).
    """

    name: str
    command: str = ""
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    cwd: str = ""
    url: str = ""
    headers: dict[str, str] = {}
    timeout: float | None = None
    file: str = ""

    def __repr__(self) -> str:  # without arguments, variables, headers and address: they hold keys
        return f"Server({self.name!r}, {self.command!r}, file={self.file!r})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:  # the same for rich, which asks a struct
        return [("name", self.name), ("command", self.command), ("file", self.file)]

    @property
    def digest(self) -> str:
        """The SHA-256 of the entry and its place."""
        entry = msgspec.to_builtins(self)
        if self.timeout == math.inf:
            entry["timeout"] = "inf"  # JSON has no infinity
        return hashlib.sha256(encode_canonical(entry).encode()).hexdigest()

    @property
    def origin(self) -> str:
        """What a permission for its tools depends on, as text; no values of `env` and `headers`."""
        where = [self.url] if self.url else [self.command, *self.args, self.cwd]
        return encode_canonical(
            [self.name, where, sorted(self.env), sorted(self.headers), self.file]
        )

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of the variables of this process that the entry asks for, sorted."""
        return tuple(sorted({m[1] for text in self._texts() for m in VARIABLE.finditer(text)}))

    @property
    def secrets(self) -> dict[str, str]:
        """Values of secret variables, headers and arguments, by name; no short ones.

        Of a value with several words also the last: the key in `Bearer KEY`.
        """
        values = {k: v for k, v in {**self.env, **self.headers}.items() if masking.SECRET.search(k)}
        ends = {f"{k} (end)": v.split()[-1] for k, v in values.items() if v.strip()}
        found = enumerate(masking.find_secrets(self.args), 1)
        arguments = {f"argument {number}": value for number, value in found}
        every = {**values, **ends, **arguments}
        return {name: value for name, value in every.items() if len(value) >= _SHORTEST_SECRET}

    @property
    def offer(self) -> Offer:
        """The permission to start it, which the user gives to exactly this entry of its file."""
        return Offer(
            "server",
            str(Path(self.file)),
            f"starts the MCP server {quote_ascii(self.name)}: {'; '.join(self.describe())}",
            self.digest,
            self.name,
        )

    @property
    def allowed(self) -> bool:
        """Whether it may start: it was made in code, or the user has allowed its entry."""
        return not self.file or self.offer.is_allowed()

    def require_permission(self) -> None:
        """Raise NotAllowed if it may not start."""
        if not self.allowed:
            raise NotAllowed(
                f"The MCP server {quote_ascii(self.name)} of {shorten_path(Path(self.file))} is not allowed to start. See what it would run, and allow it: %agent mcp allow {self.name}, in a terminal: jupyter agent-nb mcp allow {self.name}. For one run without a person: --trust-mcp or {Offer.TRUST_SERVERS}=1.",
                self.offer,
            )

    def mask(self, clean: Callable[[str], str] = str) -> Server:
        """Return the entry for a list that the notebook keeps; it can be shown, not started.

        Possible secrets (`masking`) are hidden, and so is what the secret filter `clean` replaces.
        """
        return msgspec.structs.replace(
            self,
            command=masking.mask_text(self.command, clean),
            args=tuple(masking.mask_arguments(self.args, clean)),
            cwd=clean(self.cwd),
            url=masking.mask_text(self.url, clean),
            env=masking.mask_values(self.env, clean),
            headers=masking.mask_values(self.headers, clean),
        )

    def describe(self) -> list[str]:
        """Return what would run and what it would receive, exactly as the entry says it, as lines.

        Literal values come from the author of the entry; the user's own secrets are behind `${…}`,
        which is not filled in here.
        """
        command = " ".join(map(quote_ascii, (self.command, *self.args)))
        lines = [f"address: {quote_ascii(self.url)}" if self.url else f"command: {command}"]
        if self.cwd:
            lines.append(f"folder: {quote_ascii(self.cwd)}")
        for verb, values in (("sets", self.env), ("sends the headers", self.headers)):
            if values:
                shown = [f"{quote_ascii(key)}={quote_ascii(text)}" for key, text in values.items()]
                lines.append(f"{verb}: {', '.join(shown)}")
        if self.variables:
            lines.append(f"reads your variables: {', '.join(self.variables)}")
        return lines

    def expand(self, environment: Mapping[str, str]) -> Server:
        """Return the entry with `${NAME}` and `${NAME:-default}` replaced from `environment`.

        Raises UsageError for a variable that is not set or empty, and has no default.
        """

        def fill(text: str) -> str:
            return VARIABLE.sub(lambda m: self._look_up(m, environment), text)

        return msgspec.structs.replace(
            self,
            command=fill(self.command),
            args=tuple(map(fill, self.args)),
            env={name: fill(value) for name, value in self.env.items()},
            cwd=fill(self.cwd),
            url=fill(self.url),
            headers={name: fill(value) for name, value in self.headers.items()},
        )

    def _look_up(self, variable: re.Match[str], environment: Mapping[str, str]) -> str:
        value = environment.get(variable[1]) or variable[2]
        if value is None:
            raise UsageError(
                f"The MCP server {self.name!r} needs the variable {variable[1]}, which is not set. Set it before the kernel starts, or give a default: ${{{variable[1]}:-…}}."
            )
        return value

    def _texts(self) -> Iterator[str]:
        yield from (self.command, *self.args, self.cwd, self.url)
        yield from (*self.env.values(), *self.headers.values())


def mcp_server(
    name: str,
    command: str = "",
    args: Sequence[str] = (),
    *,
    env: Mapping[str, str] | None = None,
    cwd: str = "",
    url: str = "",
    headers: Mapping[str, str] | None = None,
    timeout: float | None = None,
) -> Server:
    """Return an MCP server for `Agent(tools=[…])`, or for `-t` by the name of its variable.

    `command` and `args` start it (stdio) in the folder `cwd`; `env` adds to the few variables that
    every server gets. Or `url` is its address (streamable HTTP); `headers` are sent with each
    request. `timeout`: seconds for one call. Raises UsageError for wrong values.
    """
    fields = {
        "name": name,
        "command": command,
        "args": args if isinstance(args, str) else list(args),  # a text is refused, not split
        "env": dict(env or {}),
        "cwd": cwd,
        "url": url,
        "headers": dict(headers or {}),
        "timeout": timeout,
    }
    try:
        server = msgspec.convert(fields, Server)
    except msgspec.ValidationError as fault:
        raise UsageError(f"The MCP server {name!r} cannot be used: {fault}.") from None
    return check_server(server)


def check_server(server: Server) -> Server:
    """Return the server if it can be used. Raises UsageError."""
    if problem := _find_problem(server):
        raise UsageError(f"The MCP server {quote_ascii(server.name)} cannot be used: {problem}.")
    return server


def quote_ascii(text: str) -> str:
    """Return a text in double quotes, with everything but printable ASCII escaped."""
    return json.dumps(text)


def _find_problem(server: Server) -> str:
    """Return why a server cannot be used, "" if it can."""
    text = "".join((*server._texts(), *server.env, *server.headers))  # noqa: SLF001  (the texts of the value that is checked)
    headers = "".join((*server.headers, *server.headers.values()))
    # the first problem that the server has is named
    problems = {
        "its name may have 64 letters, digits, spaces and the characters _ - . at most": (
            not _NAME.fullmatch(server.name)
        ),
        "it needs either a command or a url": bool(server.command) == bool(server.url),
        "a text in it contains a null character": "\0" in text,
        "a text in it contains half a character": replace_surrogates(text) != text,
        "its url must begin with http:// or https:// and name a host": (
            server.url != "" and not _is_address(server.url)
        ),
        "a name in env is empty or contains =": any("=" in n or not n for n in server.env),
        "a header contains a line break": "\n" in headers or "\r" in headers,
        "its timeout must be a number of seconds": (
            server.timeout is not None and not server.timeout > -math.inf  # false for nan
        ),
    }
    return next((problem for problem, is_found in problems.items() if is_found), "")


def _is_address(url: str) -> bool:
    """Return whether `url` is an address of a web server, with its host."""
    try:
        url_parts = urlsplit(url)
    except ValueError:
        return False
    return url_parts.scheme in ("http", "https") and bool(url_parts.hostname)
