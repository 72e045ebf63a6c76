"""The servers that the tape stands before: the variable that names each one's address, and how it
writes an error.
"""

from __future__ import annotations

from typing import Any

import msgspec


class Provider(msgspec.Struct, frozen=True):
    """A provider; `tail` ends its base URL, and is no part of a request's path."""

    name: str
    variable: str
    key: str
    official: str
    tail: str = ""


PROVIDERS = (
    Provider("openai", "OPENAI_BASE_URL", "OPENAI_API_KEY", "https://api.openai.com/v1", "/v1"),
    Provider("anthropic", "ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY", "https://api.anthropic.com"),
    Provider(
        "google",
        "GOOGLE_GEMINI_BASE_URL",
        "GEMINI_API_KEY",
        "https://generativelanguage.googleapis.com",
    ),
)
BY_NAME = {provider.name: provider for provider in PROVIDERS}


def make_error(provider: str, status: int, message: str) -> dict[str, Any]:
    """Return an error as the provider writes it."""
    if provider == "anthropic":
        return {"type": "error", "error": {"type": "invalid_request_error", "message": message}}
    if provider == "google":
        return {"error": {"code": status, "message": message, "status": "INVALID_ARGUMENT"}}
    return {"error": {"message": message, "type": "invalid_request_error", "code": "agent_nb_tape"}}
