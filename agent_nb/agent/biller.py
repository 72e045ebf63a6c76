"""Prices the requests to one model, and adds their usage to the meter of the run.

A fallback model has another tariff, so each model gets a biller of its own; they share the meter.

Rule: the cost that the provider reports counts, else the model's tariff. Providers report it at the
end of an answer; until then the tariff is needed only for a budget, which may stop the run.
"""

from __future__ import annotations

import msgspec

from ..events import Counts, Metric
from ..models import Tariff
from .limits import Clock, Meter
from .run_spec import Plan
from .turn import Turn


class Biller:
    """Prices the requests to the model of `plan`; `meter` counts for the whole run."""

    def __init__(self, meter: Meter, plan: Plan) -> None:
        self._meter = meter
        self._tariff = plan.tariffs.get(plan.model.name) or Tariff.of(plan.model)

    def reached_limit(self, usage: Counts, turns: int = 0) -> str:
        """Return the first limit that the turn in progress uses up, in words; "" if none.

        `usage`: what the turn has used so far. `turns`: its requests beyond the first.
        """
        cost = self._find_cost(usage) if self._meter.limits.cost else usage.cost
        return self._meter.reached_limit(usage.input + usage.output, turns, cost or 0.0)

    def charge_request(
        self, turn: Turn, clock: Clock, sent: int, written: int, *, complete: bool
    ) -> Metric:
        """Add the usage and cost of a request to the meter; return the event about it.

        `sent`, `written`, `complete`: as in `Turn.count_usage`.
        """
        usage, estimated = turn.count_usage(sent, written, complete=complete)
        cost = self._find_cost(usage, turn.head.model)
        step = msgspec.structs.replace(usage, duration=clock.duration, ttft=clock.ttft, cost=cost)
        self._meter.add(step)
        return Metric(step=step, total=self._meter.total, estimated=estimated, turn=turn.number)

    def _find_cost(self, usage: Counts, served: str = "") -> float | None:
        """Return the cost of `usage` in dollars; `served`: the name of the model that answered."""
        return self._tariff.cost(usage, served) if usage.cost is None else usage.cost
