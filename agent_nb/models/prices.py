"""What tokens cost: prices of the configuration, else of the package `genai-prices`, else unknown.

Why: providers report tokens, users think in dollars, and a budget needs a price before it is spent.

Rules
- A cost is computed once, when the usage of a request is known, and recorded; a replay computes
  none. A cost that the provider reports itself is taken instead.
- `genai-prices` (extra `prices`) is asked about official hosts only, by its id of the provider; the
  same model may cost something else elsewhere. It is imported when first needed. Only the data of
  the installed version counts: nothing is downloaded here.
- Tiers, times of day and the like are the library's business; the configuration has flat prices.
- An unknown price is None, never 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from math import isfinite
from typing import Any, Protocol

import msgspec

from ..events import COST_PLACES
from ..host import find_library, import_library

MILLION = 1_000_000
EXTRA = "pip install 'jupyter-agent-nb[prices]'"
# official hosts and what genai-prices calls their providers
LISTED = {
    "api.openai.com": "openai",
    "api.anthropic.com": "anthropic",
    "api.groq.com": "groq",
    "openrouter.ai": "openrouter",
    "api.deepseek.com": "deepseek",
    "api.mistral.ai": "mistral",
    "api.x.ai": "x-ai",
    "generativelanguage.googleapis.com": "google",
    "api.cerebras.ai": "cerebras",
    "api.together.xyz": "together",
    "api.fireworks.ai": "fireworks",
    "api.cohere.ai": "cohere",
    "api.perplexity.ai": "perplexity",
    "api.moonshot.ai": "moonshotai",
}
REPORTING = frozenset({"openrouter.ai"})  # hosts that report the cost of every answer


def format_dollars(limit: float) -> str:
    """Return a budget as people write it: `$0.10`, `$0.005`."""
    return f"${limit:.2f}" if limit >= 0.1 else f"${limit:g}"


class Used(Protocol):
    """Tokens of one or more requests, as `events.usage` counts them."""

    @property
    def input(self) -> int:
        """All tokens sent."""

    @property
    def output(self) -> int:
        """All tokens of the answer."""

    @property
    def cached(self) -> int:
        """Those of the input that were read from a cache."""

    @property
    def cache_written(self) -> int:
        """Those of the input that were written to a cache."""


class Prices(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Flat prices in US dollars per million tokens; those of a cache are the input's by default."""

    input: float
    output: float
    cached: float | None = None
    cache_written: float | None = None

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            price = getattr(self, name)
            if price is not None and not (isfinite(price) and price >= 0):
                raise ValueError(f"the price `{name}` is a number of at least 0, not {price}")

    def cost(self, used: Used) -> float:
        """Return the cost of `used` in US dollars."""
        read = self.input if self.cached is None else self.cached
        wrote = self.input if self.cache_written is None else self.cache_written
        fresh = max(used.input - used.cached - used.cache_written, 0)
        dollars = fresh * self.input + used.cached * read + used.cache_written * wrote
        return round((dollars + used.output * self.output) / MILLION, COST_PLACES)


FREE = Prices(input=0.0, output=0.0)


def by_model(prices: Mapping[str, float | Prices]) -> dict[str, Prices]:
    """Return prices by pattern of model names; plain numbers are the prices of every model.

    Raises ValueError if numbers and tables are mixed, or a price is missing.
    """
    tables = {pattern: one for pattern, one in prices.items() if isinstance(one, Prices)}
    if len(tables) == len(prices):
        return tables
    if tables:
        raise ValueError("`prices` holds either prices or one table for each model, not both")
    try:
        return {"*": msgspec.convert(dict(prices), Prices)}
    except msgspec.ValidationError as fault:
        raise ValueError(f"in `prices`: {fault}") from None


def find_prices(table: Mapping[str, Prices], model: str) -> Prices | None:
    """Return the prices of a model: those under its name, else of the first pattern that fits."""
    if model in table:
        return table[model]
    return next((prices for pattern, prices in table.items() if fnmatchcase(model, pattern)), None)


class Tariff(msgspec.Struct, frozen=True, kw_only=True):
    """How the requests to one model are priced.

    `prices`: those of the configuration. `provider`: what genai-prices calls the provider ("" for
    hosts that are not official), `model` the provider's name of the model. `reports`: the provider
    reports the cost of every answer.
    """

    model: str = ""
    prices: Prices | None = None
    provider: str = ""
    reports: bool = False

    @property
    def known(self) -> bool:
        """Whether the cost of a request will be known."""
        return self.reports or self.cost(_ONE) is not None

    @property
    def installable(self) -> bool:
        """Whether the missing package `genai-prices` may know the price."""
        return bool(self.provider) and find_library("genai_prices") is None

    def cost(self, used: Used, served: str = "") -> float | None:
        """Return the cost of `used` in US dollars, None if the price is unknown.

        `served`: the model that answered, asked about if the name of the requested one is unknown.
        """
        if self.prices is not None:
            return self.prices.cost(used)
        names = dict.fromkeys(name for name in (self.model, served) if name)
        costs = (_listed(self.provider, name, used) for name in names if self.provider)
        return next((cost for cost in costs if cost is not None), None)


class _One(msgspec.Struct, frozen=True):
    """One token each way."""

    input: int = 1
    output: int = 1
    cached: int = 0
    cache_written: int = 0


_ONE = _One()


def tariff_at(base_url: str, host: str, model: str, table: Mapping[str, Prices]) -> Tariff:
    """Return the tariff of a model behind a base URL; `table` has the endpoint's own prices."""
    official = host if base_url.startswith("https://") else ""
    return Tariff(
        model=model,
        prices=find_prices(table, model),
        provider=LISTED.get(official, ""),
        reports=official in REPORTING,
    )


def _listed(provider: str, model: str, used: Used) -> float | None:
    """Return the cost by genai-prices, None without the package or for an unknown model."""
    package: Any = import_library("genai_prices")
    if package is None:
        return None
    usage = package.Usage(
        input_tokens=used.input,
        output_tokens=used.output,
        cache_read_tokens=used.cached,
        cache_write_tokens=used.cache_written,
    )
    try:
        price = package.calc_price(usage, model, provider_id=provider)
    except Exception:  # an unknown model, or a fault there, which must not cost the answer
        return None
    return round(float(price.total_price), COST_PLACES)
