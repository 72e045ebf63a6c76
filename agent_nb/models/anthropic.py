"""`anthropic/NAME`: models behind Anthropic's Messages API.

Chat completions have no fields for signed thoughts, cache breakpoints and the blocks of server
tools. A turn that the server pauses (`pause_turn`) is continued at once and appears as one answer
with the usage of all requests; a `Continued` part precedes each further request.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from ..errors import ModelError
from .http.errors import find_evidence
from .http.remote import Remote, RemoteOptions
from .http.service import Service
from .messages import OutputSchema, Request
from .messages_api.breakpoints import with_breakpoints
from .messages_api.decoder import AnthropicDecoder
from .messages_api.request import encode
from .parts import Continued, Finish, Head, Part, Usage
from .strict_schema import ANTHROPIC, make_strict

SERVICE = Service(
    label="anthropic", official="https://api.anthropic.com", variable="ANTHROPIC_BASE_URL"
)
VERSION = "2023-06-01"  # of the API
CONTINUES = 8  # the most further requests for one paused turn
_uncached: set[str] = set()  # base URLs of servers that refused breakpoints in this process


class Anthropic(Remote):
    """A model behind the Messages API."""

    path = "/v1/messages"
    models_path = "/v1/models?limit=1000"  # the most that the API lists at once

    def __init__(self, model: str, options: RemoteOptions) -> None:
        super().__init__(model, options)
        self._adaptive = False  # send an effort in place of a thinking budget
        self._breakpoints = self.cache and self._http.base_url not in _uncached

    def auth(self, key: str) -> dict[str, str]:
        """Return the headers that carry the key."""
        return {"x-api-key": key}

    def _headers(self, key: Any) -> dict[str, str]:
        return {"anthropic-version": VERSION, **super()._headers(key)}

    def takes_output(self, output: OutputSchema) -> bool:
        """Return whether the schema of an answer may be sent; False if it has no strict form."""
        return super().takes_output(output) and make_strict(output.schema, ANTHROPIC) is not None

    async def stream(self, request: Request) -> AsyncGenerator[Sequence[Part], None]:
        """Send the request and yield the parts of the answer. Raises ModelError and UsageError."""
        # the blocks of the turn so far; the next request sends them back
        paused: list[dict[str, Any]] = []
        decoders: list[AnthropicDecoder] = []  # one for each request of the turn
        spent = Usage()  # of the requests so far
        number = first_call = 0  # of the next request, and the index of its first call

        def make_body() -> dict[str, Any]:
            body = encode(request, self.model, adaptive=self._adaptive, after=paused)
            return with_breakpoints(body) if self._breakpoints else body

        def make_decoder(status: int) -> AnthropicDecoder:
            # each request numbers its blocks from 0: a prefix keeps their ids apart in one answer
            prefix = f"{number}." if number else ""
            decoders.append(AnthropicDecoder(status, prefix=prefix, first_call=first_call))
            return decoders[-1]

        for number in range(CONTINUES + 1):
            async with aclosing(self._send(request, make_body, make_decoder)) as batches:
                async for batch in batches:
                    yield [
                        part.with_tokens_of(spent) if isinstance(part, Usage) else part
                        for part in batch
                        if not _is_seam(part, number)
                    ]
            decoder = decoders[-1]
            if decoder.stop_reason != "pause_turn":
                return
            paused += decoder.content
            spent, first_call = decoder.usage_after(spent), decoder.calls
            if number < CONTINUES:
                yield [Continued()]

    def _adapt(self, fault: ModelError) -> bool:
        """Send an effort, or no breakpoints, if the fault says so; return whether to send again."""
        message = find_evidence(fault)
        if not self._adaptive and "thinking" in message and "adaptive" in message:
            self._adaptive = True
            return True
        # with breakpoints the system text is a list of blocks; some servers take only a string
        if self._breakpoints and re.search(
            r"cache_control|ephemeral|\bsystem\b.{0,80}(str\b|string|type)", message
        ):
            self._breakpoints = False
            _uncached.add(self._http.base_url)
            return True
        return False


def _is_seam(part: Part, number: int) -> bool:
    """Return whether a part only ends a paused request, or heads a further one (`number`)."""
    if isinstance(part, Finish):
        return part.reason == "pause_turn" and number < CONTINUES
    return isinstance(part, Head) and number > 0


def provider(name: str, **options: Any) -> Anthropic:
    """Return the model `name` of Anthropic, of ANTHROPIC_BASE_URL or of `base_url`.

    `options`: see `Service.options`. Raises UsageError if the URL is invalid.
    """
    settings = SERVICE.options(**options)
    root = settings.base_url.rstrip("/").removesuffix("/messages").removesuffix("/v1")
    return Anthropic(name, replace(settings, base_url=root))
