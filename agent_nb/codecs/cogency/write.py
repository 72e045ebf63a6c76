"""Writes our events as Cogency's (seed 000 § Event Stream; mapping: the package's docstring).

Rule: metrics are held back until the next line or the run's end: they are written after an `end`,
and before any other line. An imported result of a batch waits for the others of its batch.
"""

from __future__ import annotations

from ...events import Call, End, Error, Event, Extension, Interrupt, Metric, Result, Think
from ..contract import Options
from ..framing import Item
from ..losses import Losses
from ..passthrough import restore_object
from ..provenance import is_derived, note_of
from ..writing import split_with_notes
from . import lines
from .lines import DRAW, NAME, SHIFTS, Obj

_NO_DISPLAY = "only a line of plain text has a place (outcome), which an error's message takes"


class CogencyWriter:
    """Writes events of any number of runs, one after the other."""

    def __init__(self, losses: Losses, _options: Options) -> None:
        self._losses = losses
        self._held_metrics: list[Item] = []
        self._batch: list[Result] = []
        self._batch_size = 0  # results of the original line, which waits until all are here
        self._tools: dict[str, str] = {}  # call id -> tool, of open calls
        self._newest: Event | None = None  # the newest event, metrics aside

    def write(self, event: Event) -> list[Item]:
        """Return the lines of one event, after lines that were held back for it."""
        previous = self._newest
        if not isinstance(event, Metric):
            self._newest = event
        if isinstance(event, End) and event.status != "ok" and note_of(event, NAME) is None:
            return self._end_unfinished(event, previous)
        if not is_derived(event, NAME):
            return [*self._release_batch(), *self._write_line(event)]
        if self._batch and isinstance(event, Result):
            self._batch.append(event)
            if len(self._batch) == self._batch_size:
                return self._release_batch()
        return []

    def close(self) -> list[Item]:
        """Return the lines that were held back."""
        metrics, self._held_metrics = self._held_metrics, []
        return [*self._release_batch(), *metrics]

    def _end_unfinished(self, event: End, previous: Event | None) -> list[Item]:
        """End a run that failed or was stopped: without an `end`, after its error or interrupt."""
        reason = {"error": Error, "interrupted": Interrupt}.get(event.status)
        if reason is None or not isinstance(previous, reason):
            why = "only an error or an interrupt before it shows that a run was not done"
            self._losses.add("end.status", why)
        return self.close()

    def _note_tool(self, event: Event) -> None:
        """Remember the tool of a call until its result."""
        if isinstance(event, Call):
            self._tools[event.call_id] = event.name
        elif isinstance(event, Result):
            self._tools.pop(event.call_id, None)

    def _line(self, event: Event) -> Obj:
        """Return the original line of an imported event, or the line of an event of ours."""
        note = note_of(event, NAME)
        if note is not None:
            form = note.get("form")
            drawn = lines.draw_line(event, form if isinstance(form, str) else "")
            return restore_object(drawn, note)
        line = lines.draw_line(event)
        if isinstance(event, Result):
            line["payload"]["outcome"] = lines.choose_outcome(event)
        elif isinstance(event, Error) and (tool := self._tools.get(event.call_id)):
            line["payload"]["tool"] = tool
        return line | ({"timestamp": event.ts} if event.ts else {})

    def _write_line(self, event: Event) -> list[Item]:
        """Return the lines of an event that has some; a metric is held back."""
        is_foreign = isinstance(event, Extension) and event.namespace != NAME
        if type(event) not in DRAW or is_foreign:
            return []
        self._count_losses(event)
        self._note_tool(event)
        if isinstance(event, Metric):
            self._held_metrics.append(Item(self._line(event)))
            return []
        return self._write_after_metrics(event)

    def _write_after_metrics(self, event: Event) -> list[Item]:
        """Return the metrics held back and the lines of an event."""
        metrics, self._held_metrics = self._held_metrics, []
        own_note = note_of(event, NAME)
        note = own_note or {}
        if isinstance(event, End):
            # how many of the metrics came before the `end` in the original stream
            held_count = note.get("held", 0)
            before = held_count if isinstance(held_count, int) else 0
            return [*metrics[:before], Item(self._line(event)), *metrics[before:]]
        batch_size = note.get("batch")
        if isinstance(event, Result) and isinstance(batch_size, int):
            self._batch, self._batch_size = [event], batch_size
            return [*metrics, *self._release_batch()] if batch_size == 1 else metrics
        if isinstance(event, Think) and own_note is not None:  # {}: the lines were as ours
            pieces = split_with_notes(event, note, SHIFTS)
            drawn = (restore_object(lines.draw_piece(text), n) for text, n in pieces)
            return [*metrics, *map(Item, drawn)]
        return [*metrics, Item(self._line(event))]

    def _release_batch(self) -> list[Item]:
        """Return the line of the results held back, [] for none."""
        results, self._batch = self._batch, []
        if not results:
            return []
        return [Item(restore_object(lines.draw_batch(results), note_of(results[0], NAME) or {}))]

    def _count_losses(self, event: Event) -> None:
        """Count the parts of carried fields that the format cannot hold."""
        if note_of(event, NAME) is not None:
            return
        if isinstance(event, Result):
            self._count_result_losses(event)
        if isinstance(event, Metric):
            counts = (event.step, event.total)
            if any(c != lines.read_counts(lines.draw_counts(c)) for c in counts):
                self._losses.add("metric.step", "only input, output and duration are counted here")

    def _count_result_losses(self, event: Result) -> None:
        display = event.display or {}
        text = display.get("text/plain")
        is_outcome = display.keys() == {"text/plain"} and isinstance(text, str)
        is_outcome = is_outcome and text not in lines.STATUS
        if display and not (is_outcome and text == lines.choose_outcome(event)):
            self._losses.add("result.display", _NO_DISPLAY)
        if text is not None and event.status not in ("ok", "error"):
            reason = "the outcome is a text; only success and error are distinguished"
            self._losses.add("result.status", reason)
