"""The cards and records of the runs of one source that a cell follows: a display for each run.

Why one class: `%agent attach`, `--from` and an awaited source show and record runs alike. A run
that equals an earlier record of the cell keeps that record.

Rule: the records are not signed and belong to no conversation, because another system made the
runs: a replay never treats their calls as the user's own.
"""

from __future__ import annotations

import operator
import time
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import zip_longest
from typing import Any

import msgspec

from ...agent import Run
from ...events import LOST, Event, EventLog, complete_log, encode_event
from ...record import Provenance, Record, events_of, log_of, run_record
from ..cell.display import Actions, Display
from ..cell.event_file import write_events
from ..cell.summary import LONGEST_TEXT, summarize_run
from ..identity import Cell
from ..notices import print_warning
from ..options import Options

MOST_RUNS = 20  # of one source that are shown and recorded
TIMES = ("ts", "chunks", "duration")  # fields of events that depend on when they arrived


def are_equal_but_for_times(recorded: Sequence[Event], fresh: Sequence[Event]) -> bool:
    """Return whether two runs have the same id and events, times aside."""
    if not recorded or len(recorded) != len(fresh):
        return False
    return all(map(_equal_but_for_times, recorded, fresh))


def _equal_but_for_times(a: Event, b: Event) -> bool:
    """Return whether two events are equal once `b` has the times of `a`."""
    times = {name: getattr(a, name) for name in TIMES if hasattr(a, name)}
    return type(a) is type(b) and msgspec.structs.replace(b, **times) == a


@dataclass(eq=False, repr=False)
class Cards:
    """The displays of the runs that `cell` follows; `title` returns a text that names their source.

    `earlier`: the records that the cell has; `are_same` decides whether a run equals one of them.
    With `strict`, a run that equals none of them is reported as a drift, if there are any.
    `actions`, `can_click`: see `Display`.
    """

    cell: Cell
    options: Options
    _: KW_ONLY
    actions: Actions
    can_click: bool
    title: Callable[[], str]
    earlier: Sequence[Record] = ()
    are_same: Callable[[Sequence[Event], Sequence[Event]], bool] = operator.eq
    strict: bool = False

    def __post_init__(self) -> None:
        self._shown: list[tuple[EventLog, Display]] = []  # of each run
        self._not_shown = 0  # runs beyond MOST_RUNS
        self.records: list[dict[str, Any]] = []  # of the runs, made by `close`

    def open(self, log: EventLog) -> None:
        """Show a run that begins; one beyond `MOST_RUNS` goes only to the runner's file."""
        write_events(self.cell, log)
        if len(self._shown) >= MOST_RUNS:
            self._not_shown += 1
            return
        display = Display(self.cell, self.options, actions=self.actions, can_click=self.can_click)
        display.open(log, badge=self.title())
        self._shown.append((log, display))

    def close(self, detached: str = "") -> list[Run]:
        """Leave static pages and records; return the runs that were shown.

        A log that has not ended gets an end: its run was lost or, if `detached` gives a detail for
        the interrupt event, goes on elsewhere.
        """
        runs = []
        for log, display in self._shown:
            is_over = log.ended
            run = Run(log if is_over else EventLog.of_events(complete_log(log, detached or LOST)))
            self._close_display(display, run)
            runs.append(run)
        if count := self._not_shown:
            omitted = "1 more run is" if count == 1 else f"{count} more runs are"
            print_warning(f"{omitted} not shown; agent_nb.watch(…).runs has them all")
        return runs

    def _close_display(self, display: Display, run: Run) -> None:
        """Close the display of a run with an equal earlier record, else with a new record."""
        title, is_recorded = self.title(), self.options.record
        equal = next((r for r in self.earlier if self.are_same(events_of(r), list(run.log))), None)
        shown = Run(log_of(equal)) if equal is not None else run
        record: dict[str, Any] = {}
        if is_recorded:
            # unsigned; the present time counts as its start
            provenance = Provenance(
                cell=self.cell.id,
                source=self.cell.text_hash,
                conversation=Provenance.NO_CONVERSATION,
            )
            started = round(time.time(), 3)
            record = dict(equal or run_record(shown.log, provenance, started=started))
            self.records.append(record)
        summary = summarize_run(shown, recorded=is_recorded)
        # it counts as replayed, since no model was called: a test reports all other runs
        numbers = {**summary, "imported": title, "replayed": True}
        if self.strict and equal is None and self.earlier:
            numbers["drift"] = find_drift(run.log, self.earlier)
        display.close(shown.log, record, numbers, badge=title)


def find_drift(log: EventLog, records: Sequence[Record]) -> dict[str, Any]:
    """Return where a run first differs from the record with its id, else from the newest record.

    The run must differ from that record. `seq` is the number of the first event that differs (from
    1); `recorded` and `fresh` are the beginnings of the two events as JSON, "" where one ended.
    """
    record = next((r for r in records if r.get("id") == log.run), records[0])
    pairs = list(zip_longest(events_of(record), log))
    index = next(i for i, (recorded, fresh) in enumerate(pairs) if recorded != fresh)
    recorded, fresh = (
        "" if event is None else encode_event(event).decode()[:LONGEST_TEXT]
        for event in pairs[index]
    )
    return {"name": "the source", "seq": index + 1, "recorded": recorded, "fresh": fresh}
