"""What model calls of other libraries cost."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, cast
from urllib.parse import urlsplit

import msgspec

from ..errors import AgentError
from ..events import Counts
from ..models import Config, Model, Tariff, resolve_all

_PREFIXES = {"google": "gemini"}  # of models, by the names of providers that differ


class _ServerModel(msgspec.Struct, frozen=True):
    """A model of a server that no endpoint of the configuration names."""

    name: str
    tariff: Tariff


def find_tariff(provider: str, model: str) -> tuple[str, Tariff]:
    """Return the name of a model, and how requests to it are priced; `provider` is a name or an
    address. Raises UsageError.
    """
    chosen: Any
    if "://" not in provider:
        label = _PREFIXES.get(provider, provider)
    else:
        label = Config.load().list_addresses().get(provider, "")
    if label:
        chosen = resolve_all(f"{label}/{model}")[0][0]
    else:
        host = urlsplit(provider).netloc
        chosen = _ServerModel(f"{host}/{model}", Tariff.at(provider, host, model, {}))
    return chosen.name, Tariff.of(cast("Model", chosen))


def price_tokens(provider: str, model: str, counts: Counts) -> float | None:
    """Return what tokens of a model cost in US dollars, None if that is unknown."""
    with suppress(AgentError):
        return find_tariff(provider, model)[1].cost(counts)
    return None
