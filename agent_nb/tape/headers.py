"""Headers of requests and answers: which ones pass the relay, and where a redirect leads.

Why redirects: a client would resolve a relative location against the relay's address, and would
leave the tape by following a location on the server itself. So a redirect inside the server's base
URL leads back to the relay, any other one to its own target.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from urllib.parse import SplitResult, urljoin, urlsplit

_HOP_HEADERS = frozenset({
    "connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection",
    "te", "trailer", "transfer-encoding", "upgrade",
})  # fmt: skip
# the relay sends its own
_OWN_HEADERS = _HOP_HEADERS | {"host", "content-length", "expect", "accept-encoding"}
_PORTS = {"http": 80, "https": 443}

Pairs = Iterable[tuple[bytes, bytes]]


def join_headers(pairs: Pairs) -> dict[str, str]:
    """Return headers by their names in lower case; values of one name are joined."""
    joined: dict[str, str] = {}
    for raw, value in pairs:
        name, text = raw.decode("latin-1").lower(), value.decode("latin-1")
        comma = "; " if name == "cookie" else ", "
        joined[name] = f"{joined[name]}{comma}{text}" if name in joined else text
    return joined


def select_sent(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers to send to the server, which is asked for an uncompressed answer."""
    ours = _OWN_HEADERS | list_options(headers)
    passed = {name: value for name, value in headers.items() if name not in ours}
    return {**passed, "accept-encoding": "identity"}


def select_answered(pairs: Pairs, location: str) -> list[tuple[bytes, bytes]]:
    """Return the headers to send to the client; `location` replaces the target of a redirect."""
    raw = list(pairs)
    ended = _HOP_HEADERS | list_options(join_headers(raw))
    return [
        (name, location.encode("latin-1") if name.lower() == b"location" else value)
        for name, value in raw
        if name.decode("latin-1").lower() not in ended
    ]


def list_options(headers: Mapping[str, str]) -> set[str]:
    """Return what the header `connection` lists: `close`, and names of hop-by-hop headers."""
    return {name.strip().lower() for name in headers.get("connection", "").split(",")}


class Redirect:
    """The redirect to `location` in the answer to a request for `path` of the server at `base`.

    `target`: the absolute URL. `path`: path and query below `base`, "" if it leads elsewhere.
    """

    def __init__(self, base: str, path: str, location: str) -> None:
        self.target, self.path = location, ""
        try:
            if location:
                self.target = urljoin(f"{base}{path}", location)
                self.path = _find_path(urlsplit(base), urlsplit(self.target))
        except ValueError:
            pass

    def lead(self, address: str) -> str:
        """Return the location for a client whose base URL is `address`."""
        return f"{address}{self.path}" if self.path else self.target


def _find_path(base: SplitResult, target: SplitResult) -> str:
    """Return path and query of `target` below `base`, "" if it is elsewhere."""
    if _read_origin(base) != _read_origin(target) or not target.path.startswith(f"{base.path}/"):
        return ""
    below = target.path.removeprefix(base.path)
    query = f"?{target.query}" if target.query else ""
    return "" if "/../" in f"{below}/" else f"{below}{query}"


def _read_origin(url: SplitResult) -> tuple[str, str | None, int | None]:
    return url.scheme, url.hostname, url.port or _PORTS.get(url.scheme)
