"""What the tokens of other libraries' model calls cost: the models of requests, and their prices.

Why apart from `spending`: calls that were recorded have a price too, and no budget.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, cast
from urllib.parse import urlsplit

import msgspec

from ..errors import AgentError, UsageError
from ..events import Counts
from ..models import Config, Http, Model, Tariff, resolve_all
from .exchange import Request

_PREFIXES = {"google": "gemini"}  # of models, by the names of providers that differ


class PricedModel(msgspec.Struct, frozen=True):
    """The name of a model that a request asks, and how it is priced."""

    name: str
    tariff: Tariff


def find_model(request: Request) -> PricedModel:
    """Return the model that a request asks; one that cannot be resolved has unknown prices."""
    with suppress(UsageError):
        if request.model:
            return _resolve_model(request.provider, request.model)
    name = f"{request.provider}/{request.model or request.path.strip('/')}"
    return PricedModel(name, Tariff())


def _resolve_model(provider: str, model: str) -> PricedModel:
    """Return a model of a provider, which is a name or an address. Raises UsageError."""
    chosen: Any
    if "://" not in provider:
        label = _PREFIXES.get(provider, provider)
    else:
        addresses = Config.load().list_addresses().items()
        label = {Http(url).address: name for url, name in addresses}.get(provider, "")
    if label:
        chosen = resolve_all(f"{label}/{model}")[0][0]
    else:
        host = urlsplit(provider).netloc  # of a server that the configuration does not name
        chosen = PricedModel(f"{host}/{model}", Tariff.at(provider, host, model, {}))
    return PricedModel(chosen.name, Tariff.of(cast("Model", chosen)))


class Prices:
    """The prices of models, each looked up once: for the calls of one cell."""

    def __init__(self) -> None:
        self._tariffs: dict[tuple[str, str], Tariff] = {}  # by provider and model

    def price_tokens(self, request: Request, counts: Counts) -> float | None:
        """Return what tokens of a request's model cost in US dollars, None if that is unknown."""
        key = (request.provider, request.model)
        if key not in self._tariffs:
            self._tariffs[key] = Tariff()
            with suppress(AgentError):
                self._tariffs[key] = _resolve_model(*key).tariff
        return self._tariffs[key].cost(counts)
