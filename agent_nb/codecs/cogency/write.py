"""Write our events as the lines of Cogency (seed 000 § Event Stream).

Rules
- What was read from this wire goes back as it came (`passthrough`).
- `metric` follows `end` here: it is held back, until the next event or the end.
- The outcome of a failed call is the error's message.
"""

from __future__ import annotations

from ...events import Call, End, Error, Event, Extension, Interrupt, Metric, Result, Think
from ..contract import Options
from ..framing import Item
from ..losses import Losses
from ..passthrough import restore_object
from ..provenance import is_derived, note_of
from ..writing import noted_pieces
from .lines import (
    DRAW,
    NAME,
    SHIFTS,
    STATUS,
    Obj,
    batch_line,
    counts_of,
    draw_line,
    draw_piece,
    own_outcome,
    read_counts,
)


class CogencyWriter:
    """Events of any number of runs, one after the other."""

    def __init__(self, losses: Losses, _options: Options) -> None:
        self._losses = losses
        self._metrics: list[Item] = []
        self._results: list[Result] = []
        self._wanted = 0
        self._names: dict[str, str] = {}  # tools of open calls
        self._last: Event | None = None  # of our own events but metrics

    def write(self, event: Event) -> list[Item]:
        """Return the lines of one event, after those that waited for it."""
        derived = is_derived(event, NAME)
        before, self._last = self._last, self._last if isinstance(event, Metric) else event
        if isinstance(event, End) and event.status != "ok" and note_of(event, NAME) is None:
            return self._unfinished(event, before)
        if self._results and not derived:
            return [*self._flush(), *self.write(event)]
        if self._results and isinstance(event, Result):
            self._results.append(event)
            return self._flush() if len(self._results) == self._wanted else []
        handler = DRAW.get(type(event))
        if handler is None or derived or (isinstance(event, Extension) and event.namespace != NAME):
            return []
        self._check(event)
        self._know(event)
        if isinstance(event, Metric):
            self._metrics.append(Item(_line(event)))
            return []
        return self._with_metrics(event)

    def _unfinished(self, event: End, before: Event | None) -> list[Item]:
        """End a run that is not done; only the event before can say why."""
        reason = {"error": Error, "interrupted": Interrupt}.get(event.status)
        if reason is None or not isinstance(before, reason):
            self._losses.add(
                "end.status",
                "only an error or an interrupt before it shows that a run was not done",
            )
        return self.close()

    def _know(self, event: Event) -> None:
        """Note the tools of open calls."""
        if isinstance(event, Call):
            self._names[event.call_id] = event.name
        elif isinstance(event, Result):
            self._names.pop(event.call_id, None)

    def _line(self, event: Event) -> Obj:
        line = _line(event)
        tool = (
            self._names.get(event.call_id, "")
            if isinstance(event, Error) and note_of(event, NAME) is None
            else ""
        )
        return {**line, "payload": {**line["payload"], "tool": tool}} if tool else line

    def close(self) -> list[Item]:
        """Return what waited."""
        held, self._metrics = self._metrics, []
        return [*self._flush(), *held]

    def _with_metrics(self, event: Event) -> list[Item]:
        held, self._metrics = self._metrics, []
        note = note_of(event, NAME) or {}
        if isinstance(event, End):
            before = note.get("held", 0)
            first = before if isinstance(before, int) else 0
            return [*held[:first], Item(self._line(event)), *held[first:]]
        wanted = note.get("batch")
        if isinstance(event, Result) and isinstance(wanted, int):
            self._results, self._wanted = [event], wanted
            return [*held, *(self._flush() if wanted == 1 else [])]
        if isinstance(event, Think) and note:
            pieces = noted_pieces(event, note, SHIFTS)
            return [*held, *(Item(restore_object(draw_piece(text), n)) for text, n in pieces)]
        return [*held, Item(self._line(event))]

    def _flush(self) -> list[Item]:
        results, self._results = self._results, []
        return (
            [Item(restore_object(batch_line(results), note_of(results[0], NAME) or {}))]
            if results
            else []
        )

    def _check(self, event: Event) -> None:
        """Count what of carried fields has no place."""
        if note_of(event, NAME) is not None:
            return
        if isinstance(event, Result):
            self._check_result(event)
        if isinstance(event, Metric) and any(
            c != read_counts(counts_of(c)) for c in (event.step, event.total)
        ):
            self._losses.add("metric.step", "only input, output and duration are counted here")

    def _check_result(self, event: Result) -> None:
        shown = event.display or {}
        text = shown.get("text/plain")
        if shown and (
            len(shown) > 1
            or not isinstance(text, str)
            or text in STATUS
            or text != own_outcome(event)
        ):
            self._losses.add(
                "result.display",
                "only a line of plain text has a place (outcome), which an error's message takes",
            )
        if text is not None and event.status not in ("ok", "error"):
            self._losses.add(
                "result.status", "the outcome is a text; only success and error are distinguished"
            )


def _line(event: Event) -> Obj:
    note = note_of(event, NAME)
    if note is not None:
        form = note.get("form")
        return restore_object(draw_line(event, form if isinstance(form, str) else ""), note)
    line = draw_line(event)
    if isinstance(event, Result):
        line["payload"]["outcome"] = own_outcome(event)
    return line | ({"timestamp": event.ts} if event.ts else {})
