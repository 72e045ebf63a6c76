"""What the requests to one model cost, on top of what the meter of the run has counted.

Rules: the cost that the provider reports wins; else the model's tariff is asked. While a request is
under way it is asked only if the run has a budget.
"""

from __future__ import annotations

import msgspec

from ..events import Counts
from ..models.base import Model
from ..models.tariff import tariff_of
from .limits import Meter


class Bill:
    """Prices one request to `model`; `meter` is that of the run."""

    def __init__(self, meter: Meter, model: Model) -> None:
        self._meter = meter
        self._tariff = tariff_of(model)

    def hit(self, so_far: Counts, turns: int = 0) -> str:
        """Return the first limit that the turn in progress uses up, in words, or ""."""
        cost = so_far.cost
        if cost is None and self._meter.limits.cost:
            cost = self._tariff.cost(so_far)
        return self._meter.hit(so_far.input + so_far.output, turns, cost or 0.0)

    def priced(self, spent: Counts, served: str) -> Counts:
        """Return `spent` with its cost if that is known; `served`: the model that answered."""
        if spent.cost is not None:
            return spent
        return msgspec.structs.replace(spent, cost=self._tariff.cost(spent, served))
