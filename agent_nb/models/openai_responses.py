"""`openai-responses/NAME`: models behind the Responses API of OpenAI or a compatible server.

Why in addition to `openai`: through this API a model gets its own reasoning back, encrypted, in the
next turn.

Rule: if a server refuses encrypted reasoning, summaries of reasoning, or pictures in the results of
calls, the model object leaves them out of all later requests.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Sequence
from functools import partial
from typing import Any

from ..errors import ModelError
from .http.remote import Remote, RemoteOptions
from .http.service import Service
from .messages import Request
from .openai import OFFICIAL
from .parts import Part
from .responses.decoder import ResponsesDecoder
from .responses.request import encode

SERVICE = Service(
    label="openai-responses", official=OFFICIAL, variable="OPENAI_BASE_URL", key_of="openai"
)

# the refusal of a server that takes only text as the output of a call
_TEXT_ONLY = re.compile(r"\boutput\b.*\bstring\b|\bstring\b.*\boutput\b", re.IGNORECASE | re.DOTALL)


class OpenAIResponses(Remote):
    """A model behind the Responses API."""

    path = "/responses"
    refusals = (400, 403, 422)

    def __init__(self, model: str, options: RemoteOptions) -> None:
        super().__init__(model, options)
        # features to request; False once the server has refused one
        self._encrypted = True  # reasoning that can be sent back
        self._summary = True  # readable reasoning
        self._pictures = True  # pictures within results

    def stream(self, request: Request) -> AsyncGenerator[Sequence[Part], None]:
        """Send the request and yield the parts of the answer.

        Raises ModelError, and UsageError for a wrong setting.
        """
        return self._send(request, partial(self._body, request), ResponsesDecoder)

    def _body(self, request: Request) -> dict[str, Any]:
        return encode(
            request,
            self.model,
            encrypted=self._encrypted,
            summary=self._summary,
            pictures_in_results=self._pictures,
        )

    def _adapt(self, fault: ModelError) -> bool:
        """Stop requesting what the fault refuses; return whether to send again."""
        message = f"{fault} {fault.raw}"
        if self._encrypted and re.search(r"encrypted|\binclude\b", message, re.IGNORECASE):
            self._encrypted = False
            return True
        if self._summary and re.search("summar", message, re.IGNORECASE):
            self._summary = False
            return True
        if self._pictures and fault.code == "no_images" and _TEXT_ONLY.search(message):
            self._pictures = False
            return True
        return False


def provider(name: str, **options: Any) -> OpenAIResponses:
    """Return the model `name` of OpenAI, of OPENAI_BASE_URL or of `base_url`.

    `options`: see `Service.options`. Raises UsageError if the URL is invalid.
    """
    return OpenAIResponses(name, SERVICE.options(**options))
