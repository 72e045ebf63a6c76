"""Flat prices of tokens in US dollars, as the configuration states them.

Providers report tokens, users think in dollars, and a budget needs prices in advance. Prices by
tier or time of day are left to the package `genai-prices` (`tariff`). A cost is recorded with the
usage of its request, so that no replay computes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from fnmatch import fnmatchcase
from math import isfinite

import msgspec

from ..events import COST_PLACES, Counts

MILLION = 1_000_000


def format_dollars(dollars: float) -> str:
    """Return dollars for a message: `$0.10`, `$0.005`, `$0.00001`."""
    return f"${dollars:.2f}" if dollars >= 0.1 else f"${Decimal(f'{dollars:g}'):f}"


class Prices(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Flat prices in US dollars per million tokens.

    `cached`: the price of input read from the provider's cache, `cache_written`: of input written
    to the cache. None stands for the price `input`.
    """

    input: float
    output: float
    cached: float | None = None
    cache_written: float | None = None

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            price = getattr(self, name)
            if price is not None and not (isfinite(price) and price >= 0):
                raise ValueError(f"the price `{name}` is a number of at least 0, not {price}")

    def cost(self, used: Counts) -> float:
        """Return the cost of `used` in US dollars."""
        cached_price = self.input if self.cached is None else self.cached
        written_price = self.input if self.cache_written is None else self.cache_written
        # `used.input` counts all input tokens, those of the cache too
        uncached = max(used.input - used.cached - used.cache_written, 0)
        dollars = (
            uncached * self.input + used.cached * cached_price + used.cache_written * written_price
        )
        return round((dollars + used.output * self.output) / MILLION, COST_PLACES)


FREE = Prices(input=0.0, output=0.0)


def by_model(prices: Mapping[str, float | Prices]) -> dict[str, Prices]:
    """Return an endpoint's `prices` as a table: pattern of model names -> prices.

    The configuration holds either such a table, or the fields of one `Prices`, which then holds for
    every model (`*`). Raises ValueError if it mixes both, or a price is missing.
    """
    tables = {pattern: price for pattern, price in prices.items() if isinstance(price, Prices)}
    if len(tables) == len(prices):
        return tables
    if tables:
        raise ValueError("`prices` holds either prices or one table for each model, not both")
    try:
        return {"*": msgspec.convert(dict(prices), Prices)}
    except msgspec.ValidationError as fault:
        raise ValueError(f"in `prices`: {fault}") from None


def find_prices(table: Mapping[str, Prices], model: str) -> Prices | None:
    """Return the prices of a model, None if the table has none.

    A key equal to the model's name comes first, then the first pattern that fits the name.
    """
    if model in table:
        return table[model]
    return next((prices for pattern, prices in table.items() if fnmatchcase(model, pattern)), None)
