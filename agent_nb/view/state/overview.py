"""What the header and the footer show of a run (see `fold`): its facts, and what it used.

Rule: a reader must know which figures are estimates or lower bounds. One estimate makes the total
an estimate; one request without a cost, also a sub-agent's, makes it a lower bound.
"""

from __future__ import annotations

from typing import Any

from ...events import Counts, Event, Metric, Node, RunStart, State
from ...wire import as_dict


class Usage:
    """What one view's run used so far: the total of its newest metric.

    `estimated`: a metric was an estimate. `unpriced`: the total lacks the cost of a request.
    `streamed`: characters from the model since the last metric, while it streams.
    """

    def __init__(self) -> None:
        self.total = Counts()
        self.estimated = False
        self.unpriced = False
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


class RunOverview:
    """The model, times, use and remarks of a run, or of a span inside it.

    Times are epoch seconds (0: unknown), remarks are in words ("": none).
    """

    def __init__(self, *, badge: str = "", recorded: bool = False) -> None:
        self.badge = badge  # a remark that is not an event, such as "replayed from 21 Nov"
        self.recorded = recorded  # the run is past
        self.run = ""  # its id
        self.model = ""
        self.instead_of = ""  # the model that this one replaces: unreachable or overloaded
        self.settings: dict[str, Any] = {}
        self.status = ""  # "": not begun; then "running", at last that of `End`
        self.turn = 0
        self.started = 0.0
        self.ended = 0.0
        self.first: float | None = None  # time of the first event
        self.previous = 0.0  # time of the event before the latest
        self.last = 0.0  # time of the latest event
        self.usage = Usage()
        self.limit = ""  # the limit that ended the run
        self.forced = ""  # the limit for which the model was asked to finish
        self.left_out = ""  # the part of the conversation that was left out
        self.changed = ""  # inputs that changed, so that the record was not played
        self.foreign = ""  # turns of the conversation that come from foreign records
        self.doing = ""  # live only: work before anything streams, such as loading a model

    @property
    def running(self) -> bool:
        """Whether the run has not ended, as far as the events so far say."""
        return self.status in {"", "running"}

    def note_stored(self, event: Event) -> None:
        """Note the time of a stored event, and that the run has begun."""
        self.doing = ""
        self.first = event.ts if self.first is None else self.first
        self.previous, self.last = self.last or event.ts, max(self.last, event.ts)
        self.started = self.started or event.ts
        self.run = self.run or event.run
        self.status = self.status or "running"

    def note_start(self, event: RunStart) -> None:
        """Note the model and the settings of the run."""
        self.model, self.settings, self.started = event.model, dict(event.settings), event.ts

    def note_request(self, event: Node) -> None:
        """Note the limit for which a request asks the model to finish."""
        if isinstance(event.data, dict) and isinstance(limit := event.data.get("last"), str):
            self.forced = limit

    def note_state(self, event: State) -> None:
        """Note what the header shows of a state; `Notes` decides whether it has a card, too."""
        fields = as_dict(event.payload)
        if event.kind == "foreign_turns" and fields:
            self.foreign = str(fields.get("note") or "")
        elif event.kind == "window" and fields:
            self.left_out = str(fields.get("note") or "")
        elif event.kind == "context" and isinstance(fields.get("text"), str):
            changed = fields.get("changed")
            self.changed = ", ".join(map(str, changed)) if isinstance(changed, list) else ""
        elif event.kind == "model" and isinstance(fields.get("model"), str):
            self.model, self.instead_of = fields["model"], str(fields.get("instead_of") or "")
