"""The decoder of an answer, chosen by the path of its request.

A tape records requests that other libraries send. Only the URL of such a request shows which
provider's format its answer has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .base import Decoder


def make_decoder(path: str, status: int = 200) -> Decoder | None:
    """Return a decoder for an answer with this HTTP status, None if `path` is not a model call."""
    if path.endswith("/chat/completions"):
        from .chat.decoder import ChatDecoder

        return ChatDecoder(status)
    if path.endswith("/messages"):
        from .messages_api.decoder import AnthropicDecoder

        return AnthropicDecoder(status)
    if path.endswith("/responses"):
        from .responses.decoder import ResponsesDecoder

        return ResponsesDecoder(status)
    if path.endswith((":generateContent", ":streamGenerateContent")):
        from .gemini_api.decoder import GeminiDecoder

        return GeminiDecoder(status)
    return None
