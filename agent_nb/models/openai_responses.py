"""`openai-responses/NAME`: models behind OpenAI's Responses API, at OpenAI or a compatible server
(OPENAI_BASE_URL).

Rules: what was asked for on the user's behalf and is refused (encrypted reasoning, summaries) is
left out of the next attempt, and the model object remembers.
"""

from __future__ import annotations

import os
import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Any

from ..errors import ModelError
from .http.client import Timeouts
from .http.remote import Remote
from .keys import VARIABLES
from .messages import Request
from .openai import OFFICIAL
from .parts import Part
from .responses.decoder import ResponsesDecoder
from .responses.request import encode


class OpenAIResponses(Remote):
    """A model behind the Responses API."""

    path = "/responses"

    def __init__(self, model: str, **options: Any) -> None:
        super().__init__(model, **options)
        self._encrypted = True
        self._summary = True

    async def stream(self, request: Request) -> AsyncGenerator[Sequence[Part], None]:
        """Send the request and yield the parts of the answer. Raises ModelError, and UsageError for
        a wrong setting.
        """
        await self.named()
        for last in (False, False, True):
            body = encode(request, self.model, encrypted=self._encrypted, summary=self._summary)
            try:
                async with aclosing(self._post(body, ResponsesDecoder)) as batches:
                    async for batch in batches:
                        yield batch
                return
            except ModelError as fault:
                if last or fault.status not in (400, 403, 422) or not self._adapt(fault):
                    raise

    def _adapt(self, fault: ModelError) -> bool:
        """Leave out what the server refuses; return whether that is worth another request."""
        words = f"{fault} {fault.raw}"
        if self._encrypted and re.search(r"encrypted|\binclude\b", words, re.IGNORECASE):
            self._encrypted = False
            return True
        if self._summary and re.search("summar", words, re.IGNORECASE):
            self._summary = False
            return True
        return False


def provider(
    name: str,
    *,
    base_url: str = "",
    label: str = "openai-responses",
    variables: Sequence[str] | None = None,
    needs_key: bool | None = None,
    headers: Mapping[str, str] | None = None,
    timeouts: Timeouts | None = None,
    dialect: str = "",
    context: int = 0,
    **_: Any,
) -> OpenAIResponses:
    """Return the model `name` of OpenAI, of OPENAI_BASE_URL or of `base_url`. Raises UsageError for
    an address that is none.
    """
    url = base_url or os.environ.get("OPENAI_BASE_URL") or OFFICIAL
    key_of = "openai" if label == "openai-responses" else label
    return OpenAIResponses(
        name,
        base_url=url,
        label=label,
        key_of=key_of,
        variables=VARIABLES.get(key_of, ()) if variables is None else variables,
        needs_key="//api.openai.com" in url if needs_key is None else needs_key,
        headers=headers,
        timeouts=timeouts,
        dialect=dialect,
        context=context,
    )
