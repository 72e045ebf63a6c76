"""How requests to one model are priced; a budget limits a run only if their cost will be known.

Rule: the package `genai-prices` (extra `prices`) is asked only about official hosts, because the
same model may have another price elsewhere. Nothing is downloaded. An unknown price is None.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ..errors import UsageError
from ..events import COST_PLACES, Counts
from ..host import find_library, import_library, shorten_path
from .base import Model
from .config import Config
from .prices import Prices, find_prices, format_dollars

_EXTRA = "pip install 'jupyter-agent-nb[prices]'"
_UNKNOWN_PRICE = """The budget of {budget} cannot be kept: the price of {name} is unknown. Nothing was sent.
Leave the budget out, or {install}write the price in US dollars per million tokens into {file}:

    [prices]
    "{name}" = {{ input = 1.0, output = 4.0, cached = 0.1, cache_written = 1.25 }}"""
# official hosts -> the ids of their providers in genai-prices
_PROVIDER_IDS = {
    "api.openai.com": "openai", "api.anthropic.com": "anthropic", "api.groq.com": "groq",
    "openrouter.ai": "openrouter", "api.deepseek.com": "deepseek", "api.mistral.ai": "mistral",
    "api.x.ai": "x-ai", "generativelanguage.googleapis.com": "google",
    "api.cerebras.ai": "cerebras", "api.together.xyz": "together", "api.fireworks.ai": "fireworks",
    "api.cohere.ai": "cohere", "api.perplexity.ai": "perplexity", "api.moonshot.ai": "moonshotai",
}  # fmt: skip
_REPORTING_HOSTS = frozenset({"openrouter.ai"})  # they report the cost of every answer


class Tariff(msgspec.Struct, frozen=True, kw_only=True):
    """How the requests to one model are priced.

    `prices`: those of the configuration, or `FREE` for a model on this machine; None without
    either. `provider`: the provider's id in genai-prices, "" for hosts that are not official.
    `model`: the provider's name for the model. `reports`: the provider reports the cost of each
    answer.
    """

    model: str = ""
    prices: Prices | None = None
    provider: str = ""
    reports: bool = False

    @classmethod
    def of(cls, model: Model) -> Tariff:
        """Return the tariff of a model of any provider.

        The table `prices` of the configuration comes before the prices of the model's own tariff.
        """
        own: Tariff = getattr(model, "tariff", None) or cls()
        # lenient: a faulty configuration is reported where it chooses a model
        prices = find_prices(Config.load(lenient=True).prices, model.name)
        return own if prices is None else msgspec.structs.replace(own, prices=prices)

    @classmethod
    def at(cls, base_url: str, host: str, model: str, table: Mapping[str, Prices]) -> Tariff:
        """Return the tariff of a model behind a base URL; `table` has the endpoint's own prices."""
        # plain http under an official name is a stand-in, whose prices are unknown
        official = host if base_url.startswith("https://") else ""
        return cls(
            model=model,
            prices=find_prices(table, model),
            provider=_PROVIDER_IDS.get(official, ""),
            reports=official in _REPORTING_HOSTS,
        )

    @property
    def known(self) -> bool:
        """Whether the cost of a request will be known."""
        return self.reports or self.cost(Counts(input=1, output=1)) is not None

    @property
    def installable(self) -> bool:
        """Whether the missing package `genai-prices` may know the price."""
        return bool(self.provider) and find_library("genai_prices") is None

    def cost(self, used: Counts, served: str = "") -> float | None:
        """Return the cost of `used` in US dollars, None if the price is unknown.

        `served`: the name of the model that answered; its price counts if genai-prices does not
        know the requested model.
        """
        if self.prices is not None:
            return self.prices.cost(used)
        names = dict.fromkeys(name for name in (self.model, served) if name)
        costs = (_look_up_cost(self.provider, name, used) for name in names if self.provider)
        return next((cost for cost in costs if cost is not None), None)

    def check_budget(self, name: str, budget: float | None) -> None:
        """Raise UsageError if the price is unknown, so that a budget in US dollars cannot be kept.

        `name`: the name of the model as the user writes it. `budget`: in US dollars; None and 0
        stand for no budget, which always passes.
        """
        if not budget or self.known:
            return
        raise UsageError(
            _UNKNOWN_PRICE.format(
                budget=format_dollars(budget),
                name=name,
                install=f"install the list of prices ({_EXTRA}), or " if self.installable else "",
                file=shorten_path(Config.path()),
            )
        )


def _look_up_cost(provider: str, model: str, used: Counts) -> float | None:
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
