"""`openai-responses/NAME`: models behind the Responses API of OpenAI or a compatible server.

Unlike with `openai`, through this API a model gets its own reasoning back, encrypted, in the next
turn.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Sequence
from functools import partial
from typing import Any

from ..errors import ModelError
from .http.errors import find_evidence
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

# the name of a feature or its parameter; a bare word counts only between punctuation, where no verb
# and no quotation of the prompt stands
_PARAMETER = r"|[^\w\s]\s?{0}(?=[^\w\s]|$)|\b{0} (is|are|was|param|field|arg|option)"
_ENCRYPTED = r"(?i)encrypted[_ ](content|reasoning)" + _PARAMETER.format("include")
_SUMMARY = r"(?i)reasoning[._ ]summar(y|ies)" + _PARAMETER.format("summar(y|ies)")
# how servers word that they refuse it
_REFUSED = (
    r"(?i)unsupported|(not?|n.t) support|not (be )?(allowed|enabled|available|permitted)|should be"
    r"|unknown|unrecogni[sz]|unexpected|extra|verif|decrypt|invalid (value|param|arg)"
)
# the refusal of a server that takes only text as the output of a call
_TEXT_ONLY = re.compile(r"\boutput\b.*\bstring\b|\bstring\b.*\boutput\b", re.IGNORECASE | re.DOTALL)


class OpenAIResponses(Remote):
    """A model behind the Responses API.

    If a server refuses encrypted reasoning, summaries of reasoning, or pictures in the results of
    calls, the object leaves them out of all later requests.
    """

    path = "/responses"
    refusals = (400, 403, 422)

    def __init__(self, model: str, options: RemoteOptions) -> None:
        super().__init__(model, options)
        # features to request, as `encode` names them; False once the server has refused one
        self._features = dict.fromkeys(("encrypted", "summary", "pictures_in_results"), True)

    def stream(self, request: Request) -> AsyncGenerator[Sequence[Part], None]:
        """Send the request and yield the parts of the answer. Raises ModelError and UsageError."""
        return self._send(request, partial(self._body, request), ResponsesDecoder)

    def _body(self, request: Request) -> dict[str, Any]:
        return encode(request, self.model, **self._features)

    def _adapt(self, fault: ModelError) -> bool:
        """Stop requesting what the fault refuses; return whether to send again."""
        message = find_evidence(fault)
        refuses = re.search(_REFUSED, message) is not None
        refused = {
            "encrypted": refuses and re.search(_ENCRYPTED, message),
            "summary": refuses and re.search(_SUMMARY, message),
            "pictures_in_results": fault.code == "no_images" and _TEXT_ONLY.search(message),
        }
        feature = next((name for name in refused if refused[name] and self._features[name]), None)
        if feature is not None:
            self._features[feature] = False
        return feature is not None


def provider(name: str, **options: Any) -> OpenAIResponses:
    """Return the model `name` of OpenAI, of OPENAI_BASE_URL or of `base_url`.

    `options`: see `Service.options`. Raises UsageError if the URL is invalid.
    """
    return OpenAIResponses(name, SERVICE.options(**options))
