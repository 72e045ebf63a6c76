"""`openai-responses/NAME`: models behind OpenAI's Responses API, at OpenAI or a compatible server
(OPENAI_BASE_URL).

Rules: if a server refuses fields that the user did not ask for (encrypted reasoning, summaries,
pictures in results), the request is repeated without them, and the model object remembers.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any

from ..errors import ModelError
from .http.remote import Remote
from .http.service import Service
from .messages import Request
from .openai import OFFICIAL
from .parts import Part
from .responses.decoder import ResponsesDecoder
from .responses.request import encode

SERVICE = Service(
    label="openai-responses",
    official=OFFICIAL,
    variable="OPENAI_BASE_URL",
    key_of="openai",
)


# a server whose results are texts
_TEXT_ONLY = re.compile(r"\boutput\b.*\bstring\b|\bstring\b.*\boutput\b", re.IGNORECASE | re.DOTALL)


class OpenAIResponses(Remote):
    """A model behind the Responses API."""

    path = "/responses"

    def __init__(self, model: str, **options: Any) -> None:
        super().__init__(model, **options)
        self._encrypted = True
        self._summary = True
        self._pictured = True

    async def stream(self, request: Request) -> AsyncGenerator[Sequence[Part], None]:
        """Send the request and yield the parts of the answer.

        Raises ModelError, and UsageError for a wrong setting.
        """
        await self.named()
        for last in (False, False, True):
            body = encode(
                request,
                self.model,
                encrypted=self._encrypted,
                summary=self._summary,
                pictured=self._pictured,
            )
            try:
                async with aclosing(self._post(body, ResponsesDecoder)) as batches:
                    async for batch in batches:
                        yield batch
                return
            except ModelError as fault:
                if last or fault.status not in (400, 403, 422) or not self._adapt(fault):
                    raise self._explained(fault, request) from None

    def _adapt(self, fault: ModelError) -> bool:
        """Drop the refused field; return whether to repeat the request."""
        words = f"{fault} {fault.raw}"
        if self._encrypted and re.search(r"encrypted|\binclude\b", words, re.IGNORECASE):
            self._encrypted = False
            return True
        if self._summary and re.search("summar", words, re.IGNORECASE):
            self._summary = False
            return True
        if self._pictured and fault.code == "no_images" and _TEXT_ONLY.search(words):
            self._pictured = False
            return True
        return False


def provider(name: str, **options: Any) -> OpenAIResponses:
    """Return the model `name` of OpenAI, of OPENAI_BASE_URL or of `base_url`.

    The options are those of `Service.options`. Raises UsageError if the URL is invalid.
    """
    return OpenAIResponses(name, **SERVICE.options(**options))
