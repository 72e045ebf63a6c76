"""`ollama/NAME`: a model of a running Ollama server, through its OpenAI-compatible API.

Ollama's address is in the variable OLLAMA_HOST, in forms that only Ollama uses.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from ..errors import UsageError
from .http.service import Service
from .openai import OpenAIChat
from .prices import FREE

PORT = 11434
_CLOUD = "ollama.com"
SERVICE = Service(label="ollama", official=f"http://127.0.0.1:{PORT}/v1", variable="")


def read_base_url(host: str) -> str:
    """Return the base URL for a value of OLLAMA_HOST ("" is the default).

    Takes the forms that Ollama takes: `host`, `host:port`, `:port`, a URL, an IPv6 address with or
    without brackets. Raises UsageError for any other value, also for an impossible port, where
    Ollama warns and takes its default.
    """
    try:
        return _read_host(host)
    except ValueError as error:
        raise UsageError(f"OLLAMA_HOST is {host!r}, which is no address: {error}.") from None


def _read_host(host: str) -> str:
    host = host.strip().strip("\"'")
    if host == _CLOUD:
        host = f"https://{_CLOUD}"
    scheme, _, rest = host.rpartition("://")
    address, slash, path = rest.partition("/")
    if address.count(":") > 1 and "[" not in address:  # an IPv6 address without port
        address = f"[{address}]"
    url = urlsplit(f"{scheme or 'http'}://{address}{slash}{path}")
    # like Ollama: an address with a scheme has the scheme's default port, another has Ollama's
    default = {"http": 80, "https": 443}.get(scheme.lower(), PORT)
    name = url.hostname or "127.0.0.1"
    # a server listens on these addresses, but a client cannot call them
    name = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(name, name)  # noqa: S104  (replaced, not bound)
    return f"{url.scheme}://{f'[{name}]' if ':' in name else name}:{url.port or default}{url.path.rstrip('/')}/v1"


def provider(name: str, **options: Any) -> OpenAIChat:
    """Return the model `name` of Ollama. Raises UsageError for an invalid OLLAMA_HOST.

    Models that Ollama runs itself cost nothing; those of its cloud have no known price. `options`:
    see `Service.options`; a `base_url` among them is ignored, as OLLAMA_HOST decides.
    """
    url = read_base_url(os.environ.get("OLLAMA_HOST", ""))
    in_cloud = name.endswith("cloud") or urlsplit(url).hostname == _CLOUD
    settings = SERVICE.options(**{"needs_key": False, **options, "base_url": url})
    prices = settings.prices or ({} if in_cloud else {"*": FREE})
    return OpenAIChat(name, replace(settings, prices=prices))
