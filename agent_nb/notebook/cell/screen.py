"""The cards of runs that come from elsewhere, in a cell: views while they go on, static views and
records when it is over.

Rules
- Each run gets a view when its first event comes, and leaves a static view and a record (the first
  `MOST` of them).
- The records are not signed: what somebody else's file says was called is never run again as if the
  user had done so. They belong to no conversation.
- A run that says what it said before keeps its record.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from itertools import zip_longest
from typing import Any

import msgspec

from ...agent.run import Run
from ...events import Event
from ...events.completion import LOST, closed
from ...events.event_json import encode_event
from ...events.log import EventLog
from ...record.agent_cells import content_hash
from ...record.record import KEY, MIME, NONE, events_of, log_of, record_hash, run_record
from ...view.bundle import bundle
from ...view.live import LiveView, open_view
from ..execute.event_relay import send
from ..notices import warn
from ..options import Options
from .frontend import view_kind
from .identity import Cell
from .publish import publish
from .summary import LONGEST, summary

MOST = 20  # runs of one stream that are shown and recorded
TIMES = ("ts", "chunks", "duration")  # of events that are stamped as they arrive


class Screen:
    """Shows the runs of a stream in the cell of the running context, each from its
    first event on.
    """

    def __init__(
        self,
        cell: Cell,
        options: Options,
        *,
        actions: Mapping[str, Callable[..., None]],
        clicks: bool,
        title: Callable[[], str],
    ) -> None:
        self._cell, self._options, self._title = cell, options, title
        self.actions, self._clicks = actions, clicks
        self._kind = view_kind(options.view, cell)
        self._views: list[tuple[EventLog, LiveView]] = []
        # records of this cell: what has not changed keeps its own
        self.known: Sequence[Mapping[str, Any]] = ()
        self.same: Callable[[Sequence[Event], Sequence[Event]], bool] = same
        self.made: list[dict[str, Any]] = []
        self.more = 0  # runs that are not shown
        self.strict = False  # a run that is not on record as it is now is a drift
        self.detached = ""  # why a run stops here that goes on elsewhere

    def opened(self, log: EventLog) -> None:
        """A run begins."""
        send(self._cell, log)
        if len(self._views) >= MOST:
            self.more += 1
            return
        view = open_view(
            log,
            kind=self._kind,
            actions=self.actions,
            thoughts=self._options.thoughts,
            can_click=self._clicks,
            publish=publish,
            badge=self._title(),
        )
        self._views.append((log, view))

    def close(self) -> list[Run]:
        """Leave static views and records; return the runs."""
        runs = []
        for log, view in self._views:
            run = Run(_ended(log, self.detached))
            final, numbers = self.final(run, self._title())
            view.close(final, numbers)
            if self._kind == "text" and self._cell.kernel and MIME in final:
                # the text is there already; alone the record shows nothing
                publish({MIME: final[MIME]}, numbers, {}, False)
            runs.append(run)
        if self.more:
            warn(f"{self.more} more runs are not shown; agent_nb.watch(…).runs has them all")
        return runs

    def final(self, run: Run, title: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return what stays of a run: its mime bundle and its numbers."""
        kept = self._options.record
        known = next((r for r in self.known if self.same(events_of(r), run.log)), None)
        run = Run(log_of(known)) if known is not None else run
        record = dict(known or imported_record(run.log, self._cell)) if kept else {}
        self.made += [record] if kept else []
        drift = (
            {"drift": drifted(run.log, self.known)}
            if self.strict and known is None and self.known
            else {}
        )
        numbers = {**summary(run, recorded=kept), "imported": title, "replayed": True, **drift}
        return {
            **bundle(run.log, thoughts=self._options.thoughts, badge=title),
            **({MIME: record} if kept else {}),
        }, {KEY: numbers}


def _ended(log: EventLog, detached: str = "") -> EventLog:
    """Return the log, closed if its thread was left behind, or if it goes on elsewhere (`detached`
    says so).
    """
    if log.ended:
        return log
    return EventLog.of_events(closed(list(log), detached or LOST))


def same(recorded: Sequence[Event], now: Sequence[Event]) -> bool:
    """Return whether two runs are equal in everything."""
    return list(recorded) == list(now)


def same_but_for_times(recorded: Sequence[Event], now: Sequence[Event]) -> bool:
    """Return whether two runs have the same id and say the same, whenever it came."""
    return bool(recorded) and len(recorded) == len(now) and all(map(_timeless, recorded, now))


def _timeless(a: Event, b: Event) -> bool:
    times = {name: getattr(a, name) for name in TIMES if hasattr(a, name)}
    return type(a) is type(b) and msgspec.structs.replace(b, **times) == a


def drifted(log: EventLog, records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return where a run first differs from its newest record."""
    record = next((r for r in records if r.get("id") == log.run), records[0])
    pairs = zip_longest(events_of(record), log)
    seq, before, now = next((n, old, new) for n, (old, new) in enumerate(pairs, 1) if old != new)
    said = {
        name: encode_event(event).decode()[:LONGEST] if event else ""
        for name, event in (("recorded", before), ("fresh", now))
    }
    return {"name": "the source", "seq": seq, **said}


def imported_record(log: EventLog, cell: Cell) -> dict[str, Any]:
    """Return the record of an imported run: it began when it was imported, whatever its own times,
    and is not signed.
    """
    record = run_record(
        log, cell=cell.id, source=content_hash(cell.line, cell.body), conversation=NONE
    )
    record["started"] = round(time.time(), 3)
    return {**record, "hash": record_hash(record)}
