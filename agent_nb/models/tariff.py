"""The tariff of a model, and the refusal of a budget that cannot be kept.

Rules: the table `prices` of the configuration comes first, then what the model says of itself in
its optional attribute `tariff`; a model without either has no known price.
"""

from __future__ import annotations

from contextlib import suppress

import msgspec

from ..errors import AgentError, UsageError
from ..host import shorten_path
from . import config
from .base import Model
from .prices import EXTRA, Tariff, find_prices, format_dollars

WORDS = """The budget of {budget} cannot be kept: the price of {name} is unknown. Nothing was sent.
Leave the budget out, or {install}write the price in US dollars per million tokens into {file}:

    [prices]
    "{name}" = {{ input = 1.0, output = 4.0, cached = 0.1, cache_written = 1.25 }}"""


def tariff_of(model: Model) -> Tariff:
    """Return how the requests to `model` are priced."""
    own: Tariff = getattr(model, "tariff", None) or Tariff()
    with suppress(AgentError):  # a faulty configuration is reported where it chooses a model
        if (prices := find_prices(config.load_config().prices, model.name)) is not None:
            return msgspec.structs.replace(own, prices=prices)
    return own


def check_budget(model: Model, budget: float | None) -> None:
    """Raise UsageError if the price of `model` is unknown, so that a budget cannot be kept."""
    if not budget or (tariff := tariff_of(model)).known:
        return
    install = f"install the list of prices ({EXTRA}), or " if tariff.installable else ""
    raise UsageError(
        WORDS.format(
            budget=format_dollars(budget),
            name=model.name,
            install=install,
            file=shorten_path(config.config_path()),
        )
    )
