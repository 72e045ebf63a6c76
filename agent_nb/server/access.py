"""Access control of the server: token, cookie, host and origin, from a request's headers.

Why so strict on loopback: any web page in the user's browser can send requests to 127.0.0.1, and a
page whose host name resolves to 127.0.0.1 can read the answers.

Rules
- A request with the token may come from any origin. With the cookie, which browsers send by
  themselves, a request that changes something must come from a page of this server or of a named
  origin.
- The cookie exists because an EventSource cannot send the token. It contains a digest of the token.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import msgspec

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_PORTS = {"http": 80, "https": 443}  # scheme -> default port
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})  # methods that change nothing


class Denied(msgspec.Struct, frozen=True):
    """A refusal: the HTTP status and what to do."""

    status: int
    message: str


@dataclass(frozen=True, kw_only=True)
class Access:
    """The access rules of one server, whose secret is `token`.

    `hosts`: the host names that the server answers to (`*`: any). `origins`: other origins whose
    pages may use the server.
    """

    token: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)
    hosts: frozenset[str] = LOOPBACK
    origins: frozenset[str] = frozenset()

    def host_allowed(self, host: str) -> bool:
        """Return whether the Host header names this server."""
        return "*" in self.hosts or host_name(host) in self.hosts

    def check(
        self, method: str, headers: Mapping[str, str], cookie: str, scheme: str = "http"
    ) -> Denied | None:
        """Return why a request is refused, or None.

        `headers` have lower-case names. `cookie`: the value of this server's cookie ("": none).
        `scheme`: the scheme of the request, http or https.
        """
        host = headers.get("host", "")
        if not self.host_allowed(host):
            return Denied(
                421,
                "This server does not answer to that host name. Add it with --host, or use 127.0.0.1.",
            )
        if self._bearer(headers.get("authorization", "")):
            return None
        if not hmac.compare_digest(cookie.encode(), self.cookie().encode()):
            return Denied(
                401,
                "A token is needed: send it as `Authorization: Bearer TOKEN`, or log in for a cookie (POST /login).",
            )
        if method not in _SAFE and not self._same_origin(
            headers.get("origin", ""), f"{scheme}://{host}"
        ):
            return Denied(
                403,
                "With the cookie, this request must come from a page of this server or of a named origin.",
            )
        return None

    def cookie(self) -> str:
        """Return the value of the cookie that replaces the token."""
        return hmac.new(self.token.encode(), b"agent-nb cookie", hashlib.sha256).hexdigest()

    def _bearer(self, header: str) -> bool:
        scheme, _, token = header.partition(" ")
        return scheme.lower() == "bearer" and hmac.compare_digest(
            token.strip().encode(), self.token.encode()
        )

    def _same_origin(self, origin: str, own: str) -> bool:
        """Return whether a page of `origin` may use the server at `own`; never for "" or `null`."""
        # `()` equals no origin, so an invalid one is refused even if `own` is invalid too
        return origin in self.origins or (_origin(origin) or ()) == _origin(own)


def cookie_name(scope: Mapping[str, Any]) -> str:
    """Return the name of the cookie of the server that received a request, by its ASGI scope.

    The name has the port, except at a Unix socket: browsers share cookies between ports, so servers
    on one host would overwrite each other's.
    """
    port = (scope.get("server") or (None, None))[1]
    return f"agent_nb_{port}" if port else "agent_nb"


def _origin(address: str) -> tuple[str, str, int] | None:
    """Return scheme, host and port of an http or https origin, None for anything else."""
    try:
        parts = urlsplit(address)
        host, port = parts.hostname, parts.port or _PORTS[parts.scheme]
    except (ValueError, KeyError):
        return None
    return (parts.scheme, host, port) if host else None


def host_name(host: str) -> str:
    """Return the name in a Host header, without port and brackets."""
    is_bare_ipv6 = host.count(":") > 1 and not host.startswith("[")  # so without a port
    name = host if host.endswith("]") or is_bare_ipv6 else host.rsplit(":", 1)[0]
    return name.strip("[]").lower().rstrip(".")
