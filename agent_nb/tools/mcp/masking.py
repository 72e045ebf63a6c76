"""The entry of a server without what may be a secret in it, for lists that stay in a notebook.

Why apart from `described`: who allows an entry must see all of it; a list of servers is shared
with everyone who gets the notebook.

Rules
- Hidden are the values of options, headers and variables whose names speak of secrets, the user and
  the query of an address, and what the caller's secret filter finds.
- A text with such a name is hidden from its value to its end: where a value ends, only the shell
  knows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

import msgspec

from .server import SECRET, Server

HIDDEN = "***"
# after `://`: the user, host and path, and the rest
_ADDRESS = re.compile(r"(?<=://)(?:[^\s/?#]*@)?([^\s?#]*)([?#]\S*)?")
_NAMED = re.compile(r"(?<![\w.-])([\w.-]++)\s?[=:]\s*(?=\S)")


def mask_server(server: Server, clean: Callable[[str], str] = str) -> Server:
    """Return the entry with its secrets hidden; it can be shown, not started."""
    return msgspec.structs.replace(
        server,
        command=_text(server.command, clean),
        args=tuple(_arguments(server.args, clean)),
        cwd=clean(server.cwd),
        url=_text(server.url, clean),
        env=_values(server.env, clean),
        headers=_values(server.headers, clean),
    )


def _arguments(arguments: Sequence[str], clean: Callable[[str], str]) -> Iterator[str]:
    """Yield arguments; what follows an option such as `--token` is hidden whole."""
    secret = False
    for text in arguments:
        option = text.startswith("-")
        yield HIDDEN if secret and not option else _text(text, clean)
        secret = option and "=" not in text and bool(SECRET.search(text))


def _text(text: str, clean: Callable[[str], str]) -> str:
    shown = _ADDRESS.sub(lambda m: f"{m[1]}{m[2][0] + HIDDEN if m[2] else ''}", clean(text))
    named = next((m for m in _NAMED.finditer(shown) if SECRET.search(m[1])), None)
    return f"{shown[: named.end()]}{HIDDEN}" if named else shown


def _values(values: dict[str, str], clean: Callable[[str], str]) -> dict[str, str]:
    return {
        clean(name): HIDDEN if SECRET.search(name) else _text(value, clean)
        for name, value in values.items()
    }
