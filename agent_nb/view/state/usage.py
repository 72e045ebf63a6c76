"""The part of the fold that keeps what a run used: tokens, times and cost (see `fold`).

Why: header and footer must mark a figure that is an estimate or a lower bound.

Rules
- The total of the newest metric counts; the fold adds nothing up itself.
- A total that includes one estimate stays an estimate.
- A total that lacks the cost of a request, also of a sub-agent's, is a lower bound.
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
        self.unpriced = False  # the total lacks the cost of a request
        self.streamed = 0

    def take_metric(self, event: Metric) -> None:
        """Take the metric of a request of this run."""
        self.total = event.total
        self.estimated = self.estimated or event.estimated
        self.streamed = 0
        self.note_price(event)

    def note_price(self, event: Metric) -> None:
        """Note a request without a cost, of this run or of a span inside it."""
        tokens = event.step.input or event.step.output
        self.unpriced = self.unpriced or bool(tokens and event.step.cost is None)
