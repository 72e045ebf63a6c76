"""`openai/NAME`: chat completions of OpenAI or of any compatible server.

Servers differ only in a few fields of the request. An error names the field that a server does not
take, and the request is sent again without it (`_adapt`). If it refuses `tools`, ModelError has the
code `no_tools`, and the agent loop decides whether to ask again without them.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Sequence
from functools import partial
from typing import Any

from ..errors import ModelError
from .chat.decoder import ChatDecoder
from .chat.request import encode
from .http.errors import find_evidence
from .http.remote import Remote, RemoteOptions
from .http.service import Service
from .keys import OPENAI_HOST
from .messages import Request
from .parts import Part

OFFICIAL = f"https://{OPENAI_HOST}/v1"
SERVICE = Service(label="openai", official=OFFICIAL, variable="OPENAI_BASE_URL", keyed=True)


class OpenAIChat(Remote):
    """A model behind chat completions; `model` is the server's name for the model.

    `grammar`: the server takes a grammar that constrains the answer.
    """

    path = "/chat/completions"

    def __init__(self, model: str, options: RemoteOptions, *, grammar: bool = False) -> None:
        super().__init__(model, options)
        self.grammar = grammar
        self._ask_usage = True  # ask for usage in the stream
        # the field for the setting `max_tokens`: newer models of OpenAI refuse this older name
        self._limit = "max_completion_tokens" if self._http.host == OPENAI_HOST else "max_tokens"

    def stream(self, request: Request) -> AsyncGenerator[Sequence[Part], None]:
        """Send the request and yield the parts of the answer. Raises ModelError and UsageError."""
        return self._send(request, partial(self._body, request), ChatDecoder)

    def _body(self, request: Request) -> dict[str, Any]:
        return encode(
            request,
            self.model,
            grammar=self.grammar,
            router="openrouter" in self._http.host,
            usage=self._ask_usage,
            max_tokens_field=self._limit,
        )

    def _adapt(self, fault: ModelError) -> bool:
        """Leave out or rename the field that a fault names; return whether to send again."""
        message = find_evidence(fault)
        if self._ask_usage and re.search("stream_options|include_usage", message):
            self._ask_usage = False
            return True
        # servers take one of two names, and may say only that they do not know the one sent
        other_name = {"max_tokens": "max_completion_tokens"}.get(self._limit, "max_tokens")
        if re.search(rf"\b{self._limit}\b", message) and re.search(
            "unsupported|not supported|unknown|unrecogni|extra|permitted", message, re.I
        ):
            self._limit = other_name
            return True
        return False


def provider(name: str, **options: Any) -> OpenAIChat:
    """Return the model `name` of OpenAI, of OPENAI_BASE_URL or of `base_url`.

    `options`: see `Service.options`. Raises UsageError if the URL is invalid.
    """
    return OpenAIChat(name, SERVICE.options(**options))
