"""The providers that the tape stands before: the variables of their addresses, the form of errors.

Why: libraries find the tape by these environment variables, and must be able to read its errors. A
server that the notebook gives itself (`tape.url`) has its address for its name.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote, urlsplit

import msgspec

from ..errors import UsageError
from ..models import Config, Http


class Provider(msgspec.Struct, frozen=True):
    """A provider. `variable` and `key`: the environment variables of its address and API key.

    `official`: its base URL. `tail`: the path at the end of the base URL, which `Request.path` does
    not have. `aliases`: further variables for the address, which some libraries read first.
    """

    name: str
    variable: str
    key: str
    official: str
    tail: str = ""
    aliases: tuple[str, ...] = ()

    @classmethod
    def at(cls, address: str) -> Provider:
        """Return the server at an address. Raises UsageError if that is not a base URL."""
        server = Http(address)
        parts = urlsplit(server.base_url)
        if parts.query or parts.fragment:
            raise UsageError(f"{server.address} is followed by a query, which no base URL has.")
        tail = quote(parts.path, safe="/%:@;=")  # clients send a path as ASCII
        return cls(server.address, "", "", server.base_url, tail)


PROVIDERS = (
    Provider(
        "openai",
        "OPENAI_BASE_URL",
        "OPENAI_API_KEY",
        "https://api.openai.com/v1",
        "/v1",
        aliases=("OPENAI_API_BASE",),  # LangChain, LiteLLM
    ),
    Provider(
        "anthropic",
        "ANTHROPIC_BASE_URL",
        "ANTHROPIC_API_KEY",
        "https://api.anthropic.com",
        aliases=("ANTHROPIC_API_URL", "ANTHROPIC_API_BASE"),  # LangChain; LiteLLM
    ),
    Provider(
        "google",
        "GOOGLE_GEMINI_BASE_URL",
        "GEMINI_API_KEY",
        "https://generativelanguage.googleapis.com",
    ),
)
# hosts of clouds, which serve models under another host name for each customer or region
_of_cloud = re.compile(
    r"(?:^|\.)(?:openai\.azure\.com|bedrock-runtime\.[\w-]+\.amazonaws\.com|(?:[\w-]+-)?aiplatform\.googleapis\.com)$"
).search
BY_NAME = {provider.name: provider for provider in PROVIDERS}

# types of errors by their status, as OpenAI, Anthropic and Google name them
_INVALID = ("invalid_request_error", "invalid_request_error", "INVALID_ARGUMENT")
_ERROR_TYPES = {
    413: ("invalid_request_error", "request_too_large", "INVALID_ARGUMENT"),
    429: ("insufficient_quota", "rate_limit_error", "RESOURCE_EXHAUSTED"),
    502: ("server_error", "api_error", "UNAVAILABLE"),
}


def list_addresses() -> list[str]:
    """Return the base URLs of the known servers of models, and of those that the user named."""
    return [p.official for p in PROVIDERS] + list(Config.load(lenient=True).list_addresses())


def is_model_host(host: str) -> bool:
    """Return whether a host is known to serve models."""
    hosts = (urlsplit(address).hostname for address in list_addresses())
    return host in hosts or bool(_of_cloud(host))


def make_error(provider: str, path: str, status: int, message: str) -> dict[str, Any]:
    """Return an error in the form of the provider or of the API of `path`; of OpenAI for others."""
    of_openai, of_anthropic, of_google = _ERROR_TYPES.get(status, _INVALID)
    if provider == "anthropic" or "/messages" in path:
        return {"type": "error", "error": {"type": of_anthropic, "message": message}}
    # `generateContent` or `streamGenerateContent`
    if provider == "google" or "enerateContent" in path:
        return {"error": {"code": status, "message": message, "status": of_google}}
    return {"error": {"message": message, "type": of_openai, "code": "agent_nb_tape"}}
