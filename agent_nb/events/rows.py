"""The rows of the tables of calls, turns and runs; each is made of several events.

Columns read the attributes of a row (see `columns`). The events of several runs may be mixed, but
those of one run come in their order. A log that is cut off yields the rows that it has, with what
is known of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from . import types as e
from .text import Answer, content_text


class Place(NamedTuple):
    """Where a run was recorded: the id of the cell and the file of the notebook, "" if unknown."""

    cell: str = ""
    notebook: str = ""


Places = Mapping[str, Place]  # by run id
NOWHERE = Place()


def count_seconds(start: float, end: float) -> float | None:
    """Return the seconds from one epoch time to another, None if one is unknown (0)."""
    return round(end - start, 3) if start and end else None


class _Models:
    """The models of runs and of their sub-agents."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], str] = {}  # by run id and span

    def add(self, event: e.Event) -> None:
        """Note the model named at the start of a run, or the one that took its place."""
        if isinstance(event, e.RunStart):
            self._known[event.run, event.span] = event.model
        elif isinstance(event, e.State) and event.kind == "model":
            payload = event.payload if isinstance(event.payload, dict) else {}
            self._known[event.run, event.span] = str(payload.get("model") or "")

    def of(self, event: e.Event) -> str:
        """Return the model of the event's span, else of its run, else ""."""
        return self._known.get((event.run, event.span)) or self._known.get((event.run, ""), "")


class _SubAgents:
    """Assigns the events of sub-agents, by their spans, to the turns that began these."""

    def __init__(self) -> None:
        self._turns: dict[tuple[str, str], int] = {}  # run and span -> the turn that began it
        self._newest: dict[str, int] = {}  # run -> its own newest turn

    def turn_of(self, event: e.Event) -> int:
        """Return the run's own turn to which an event belongs; a sub-agent counts its own turns."""
        key = event.run, event.span.partition("/")[0]  # spans inside a sub-agent begin with its own
        if isinstance(event, e.RunStart) and event.span:
            self._turns.setdefault(key, self._newest.get(event.run, 0))
        if event.span and key in self._turns:
            return self._turns[key] or event.turn  # a foreign run may not count its own turns
        self._newest[event.run] = max(self._newest.get(event.run, 0), event.turn)
        return event.turn


class CallRow:
    """One tool call: its arguments, decision and result.

    `seconds` counts from `began`, the time of the run's first event. `waited` (before it ran) and
    `duration` are seconds, `progress` is a count, `by` is who or what decided. `status` is "" until
    the result comes, `decision` and `by` are "" without a decision.
    """

    def __init__(self, call: e.Call, source: Place, began: float, model: str = "") -> None:
        self.run, self.turn, self.seq, self.ts = call.run, call.turn, call.seq, call.ts
        self.cell, self.notebook = source
        self.seconds, self.model = count_seconds(began, call.ts), model
        self.call_id, self.name, self.args = call.call_id, call.name, call.args
        self.status = self.decision = self.by = ""
        self.waited: float | None = None
        self.duration: float | None = None
        self.progress = 0
        self.text: str | None = None
        self.content: Any = None
        self.display: dict[str, Any] | None = None
        self.attachments: list[dict[str, Any]] | None = None

    def add(self, event: Any) -> None:
        """Add an event of the call."""
        match event.type:
            case "approval" if event.stage == "decided":
                self.decision, self.by = event.decision, event.by
                # a decision may change the arguments
                self.args = event.args if event.args is not None else self.args
            case "started":
                self.waited = count_seconds(self.ts, event.ts)
            case "progress":
                self.progress += 1
            case "result":
                self.status, self.duration = event.status, event.duration
                self.content, self.display = event.content, event.display
                self.attachments = list(event.attachments) or None
                self.text = content_text(event.content)


class TurnRow:
    """One model turn, with times in seconds; `usage` is None while unknown.

    `seconds` counts from `began`, the time of the run's first event. `failed` counts the calls that
    did not end ok. `estimated`: whether the tokens are an estimate. The events of a sub-agent count
    in the turn that called it, except its text.
    """

    def __init__(
        self, event: e.Event, turn: int, source: Place, began: float, model: str = ""
    ) -> None:
        self.run, self.turn, self.ts, self.duration = event.run, turn, event.ts, 0.0
        self.cell, self.notebook = source
        self.seconds, self.model = count_seconds(began, event.ts), model
        self.requests = self.calls = self.failed = 0
        self._thoughts: list[str] = []
        self.reply = Answer()
        self.usage: e.Counts | None = None  # of all its requests
        self.estimated = False

    @property
    def text(self) -> str:
        """The answer of the turn, with its white space."""
        return self.reply.text

    @property
    def thought(self) -> str:
        """The thoughts of the turn."""
        return "".join(self._thoughts)

    def add(self, event: Any) -> None:
        """Add an event of the turn."""
        self.duration = max(self.duration, event.ts - self.ts)
        self.reply.add(event)
        match event.type:
            case "node" if event.name == "llm" and event.phase == "enter":
                self.requests += 1
            case "think":
                self._thoughts.append(event.content)
            case "call":
                self.calls += 1
            case "result":
                self.failed += event.status != "ok"
            case "metric":
                self.usage = event.step if self.usage is None else self.usage + event.step
                self.estimated = self.estimated or event.estimated


class RunRow:
    """One run, its sub-agents included; `answer` equals `Run.answer`.

    `failed` counts the calls that did not end ok, `errors` the errors in the log.
    """

    def __init__(self, event: e.Event, source: Place) -> None:
        self.run, self.ts, self.duration = event.run, event.ts, 0.0
        self.cell, self.notebook = source
        self.status, self.model, self.dialect, self.prompt = "running", "", "", ""
        self.turns = self.calls = self.failed = self.errors = self.events = 0
        self.usage: e.Counts | None = None
        self.tools: list[str] = []
        self.settings: dict[str, Any] | None = None
        self.reply = Answer()
        self._sub_agents = _SubAgents()

    @property
    def answer(self) -> str:
        """The answer so far."""
        return self.reply.text.strip()

    def add(self, event: Any) -> None:
        """Add an event of the run."""
        self.reply.add(event)
        self.events += 1
        self.turns = max(self.turns, self._sub_agents.turn_of(event))
        self.duration = max(self.duration, event.ts - self.ts)
        match event.type:
            case "run_start" if not event.span:  # that of a sub-agent has a span
                self.model, self.dialect = event.model, event.dialect
                self.tools, self.settings = list(event.tools), event.settings
            case "user":
                self.prompt = self.prompt or event.content  # the first prompt
            case "call":
                self.calls += 1
            case "result":
                self.failed += event.status != "ok"
            case "error":
                self.errors += 1
            case "metric" if not event.span:  # `total` is the total of the run so far
                self.usage = event.total
            case "end" if not event.span:
                self.status = event.status


def call_rows(log: Iterable[e.Event], places: Places) -> list[CallRow]:
    """Return one row per call, in the order of the calls."""
    rows: list[CallRow] = []
    by_id: dict[tuple[str, str], CallRow] = {}
    began: dict[str, float] = {}
    models = _Models()
    for event in log:
        start = began.setdefault(event.run, event.ts)
        models.add(event)
        if isinstance(event, e.Call):
            rows.append(CallRow(event, places.get(event.run, NOWHERE), start, models.of(event)))
            by_id[event.run, event.call_id] = rows[-1]
            continue
        if row := by_id.get((event.run, getattr(event, "call_id", ""))):
            row.add(event)
    return rows


def turn_rows(log: Iterable[e.Event], places: Places) -> list[TurnRow]:
    """Return one row per model turn of each run, without events before the first turn.

    The events of a sub-agent belong to the turn that called it.
    """
    rows: dict[tuple[str, int], TurnRow] = {}
    began: dict[str, float] = {}
    models, sub_agents = _Models(), _SubAgents()
    for event in log:
        start = began.setdefault(event.run, event.ts)
        models.add(event)
        turn = sub_agents.turn_of(event)
        if event.turn <= 0:
            continue
        row = rows.get((event.run, turn))
        if row is None:
            source = places.get(event.run, NOWHERE)
            row = rows[event.run, turn] = TurnRow(event, turn, source, start, models.of(event))
        if isinstance(event, e.Metric) and not event.span:
            row.model = models.of(event)  # another model may have taken the turn over
        row.add(event)
    return list(rows.values())


def run_rows(log: Iterable[e.Event], places: Places) -> list[RunRow]:
    """Return one row per run, in the order in which they begin."""
    rows: dict[str, RunRow] = {}
    for event in log:
        row = rows.get(event.run)
        if row is None:
            row = rows[event.run] = RunRow(event, places.get(event.run, NOWHERE))
        row.add(event)
    return list(rows.values())
