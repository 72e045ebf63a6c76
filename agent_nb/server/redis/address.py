"""The address of a hub's Redis: parse it, check it, and show it without its secrets.

    redis://127.0.0.1:6379/0?prefix=team      unix:///run/redis.sock      rediss://USER:…@host/0

Why our own parser: that of the package `redis` accepts options that switch checks off; here only
`OPTIONS` are accepted. Another machine needs `rediss://` (TLS, certificates checked), because runs
hold prompts and results. User and password appear neither in `repr` nor in an error.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from ...errors import UsageError
from ...models import hide_secret, is_loopback

VARIABLE = "AGENT_NB_HUB"
OPTIONS = ("prefix", "ssl_ca_certs", "ssl_certfile", "ssl_keyfile")
PORT = 6379
PREFIX = "agent_nb"
_SCHEMES = ("redis", "rediss", "unix")


@dataclass(frozen=True, kw_only=True)
class RedisAddress:
    """A database of one Redis. `path`: of the Unix socket. `files`: option -> a file for TLS.

    `prefix`: the start of the names of all keys.
    """

    scheme: str
    host: str = ""
    port: int = PORT
    path: str = ""
    db: int = 0
    user: str = ""
    password: str = ""
    prefix: str = PREFIX
    files: dict[str, str] = field(default_factory=dict)

    @property
    def shown(self) -> str:
        """The address for people, without user, password and options."""
        if self.scheme == "unix":
            return f"unix://{self.path}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}/{self.db}"

    def __repr__(self) -> str:
        return f"RedisAddress({self.shown})"

    def scrub(self, text: str) -> str:
        """Return a text, such as an error's, without user and password."""
        # `default` is the user of every Redis, and a word of many texts; the longest goes first,
        # because it may contain the other
        secrets = {self.password, self.user} - {"", "default"}
        secrets |= {quote(secret, safe="") for secret in secrets}  # as an address writes them
        for secret in sorted(secrets, key=len, reverse=True):
            text = text.replace(secret, "…")
        return text

    def key(self, *parts: str) -> str:
        """Return the name of a key in Redis."""
        return ":".join((self.prefix, *parts))


def parse_address(url: str) -> RedisAddress:
    """Return where `url` points. Raises UsageError, without the secrets of the URL."""
    try:
        parts = urlsplit(url)
        port = PORT if parts.port is None else parts.port
        # behind the host an `@` comes from a password with `/`, `?` or `#`, which ended the host
        is_cut = parts.netloc and "@" in f"{parts.path}{parts.query}{parts.fragment}"
    except ValueError:
        port, is_cut = 0, False
    if is_cut or not port:
        raise UsageError(
            "The address of Redis is malformed. Write redis://HOST:PORT/0, and / ? # @ in a password as %2F %3F %23 %40."
        )
    scheme, host = parts.scheme, parts.hostname or ""
    # a Unix socket has a path and no host (unix://run/x would lose its folder), others have a host
    is_complete = bool(parts.path and not host) if scheme == "unix" else bool(host)
    if scheme not in _SCHEMES or not is_complete:
        raise UsageError(
            "That is not an address of Redis. Write redis://HOST:PORT/0, rediss://… for TLS, or unix:///PATH."
        )
    if scheme == "redis" and not is_loopback(host):
        raise UsageError(
            f"{host} is another machine: runs and answers would cross the network in the clear. Use rediss://, which needs TLS at the server."
        )
    options = _options(parts.query)
    database = "0" if scheme == "unix" else parts.path.strip("/") or "0"
    if not (database.isascii() and database.isdecimal() and len(database) < 6):
        raise UsageError("The database of Redis is a number: redis://HOST:PORT/0.")
    password = unquote(parts.password or "")
    if password:
        hide_secret(password)
    return RedisAddress(
        scheme=scheme,
        host=host,
        port=port,
        path=unquote(parts.path) if scheme == "unix" else "",
        db=int(database),
        user=unquote(parts.username or ""),
        password=password,
        prefix=options.pop("prefix", PREFIX),
        files=options,
    )


def _options(query: str) -> dict[str, str]:
    options = dict(parse_qsl(query))
    if unknown := sorted(options.keys() - set(OPTIONS)):
        raise UsageError(
            f"The address of Redis has an unknown option {unknown[0][:40]!r}. Known: {', '.join(OPTIONS)}."
        )
    return options


def configured_address(store: str | None) -> str:
    """Return `store` unless it is None, else the address in AGENT_NB_HUB; "": no address."""
    return store if store is not None else os.environ.get(VARIABLE, "")
