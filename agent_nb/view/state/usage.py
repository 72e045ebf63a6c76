"""The part of the fold that adds up what a run used: tokens, times and cost (see `fold`).

Rules
- The newest total counts; the fold adds nothing up itself.
- A total that has an estimate in it is an estimate from then on.
- A total without the cost of some request, a sub-agent's included, is less than was spent.
"""

from __future__ import annotations

from ...events import Counts, Metric


class Usage:
    """What one view's run used so far.

    `streamed`: characters from the model since the last metric, while it streams.
    """

    def __init__(self) -> None:
        self.total = Counts()
        self.estimated = False
        self.unpriced = False  # the cost of some request is unknown
        self.streamed = 0

    def metric(self, event: Metric) -> None:
        """Take the usage of a request of this run, or a new total."""
        self.total = event.total
        self.estimated = self.estimated or event.estimated
        self.streamed = 0
        self.nested(event)

    def nested(self, event: Metric) -> None:
        """Note whether the cost of a request is unknown, of this run or of a span inside it."""
        used = event.step.input or event.step.output
        self.unpriced = self.unpriced or bool(used and event.step.cost is None)
