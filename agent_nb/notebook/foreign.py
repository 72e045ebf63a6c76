"""Runs of other systems in a cell: `%%agent --from FILE|URL`, and the cards of `await agent_nb.watch(…)`.

Why its own file: nothing here calls a model; what it shares with a cell of ours is the driver, the views and the record.

Rules
- Each run of the stream gets a view when its first event comes, and leaves a static view and a record (the first `MOST` of them).
  `-o` gets the latest run that is shown.
- The records are not signed: what somebody else's file says was called is never run again as if the user had done so. They belong to
  no conversation.
- A file is read anew each time; an address is asked only when the record does not do (`--live`, another text, a run that was cut off).
- What a cell awaits is code and runs again. A run that says what it said before keeps its record and its times, so that executing a
  notebook twice gives the same file.
- A run that ended badly elsewhere does not fail the cell; a source that cannot be read does.
- Options that have no meaning for somebody else's run are refused.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import zip_longest
from typing import Any

import msgspec

from .. import events
from ..errors import AgentError, Cancelled, UsageError
from ..events import Event, encode_event
from ..log import EventLog
from ..record import KEY, MIME, closed, events_of, log_of, record_hash, run_record
from ..run import Run
from ..view.bundle import bundle
from ..view.live import LiveView, open_view
from ..watching import Watch, is_url, watch
from .cell import Cell, Cells, content_hash
from .cellrun import DRIFT, CellRun
from .driver import Driver
from .failure import AgentCellError
from .frontend import can_click, view_kind
from .interpolate import interpolate
from .library import Library
from .options import Options, words
from .publish import publish
from .relay import send
from .rerun import mode
from .session import secrets
from .summary import summary

OPTION = "--from"
ALLOWED = frozenset(
    {"--from", "--codec", "--follow", "-o", "--output", "--live", "--rerun", "--no-record", "--view", "--thoughts"}
)  # fmt: skip
MOST = 20  # runs of one stream that are shown and recorded
TIMES = ("ts", "chunks", "duration")  # of events that are stamped as they arrive
OURS = ""  # the conversation of a record: none


def wanted(line: str) -> bool:
    """Return whether the option line of a cell asks for somebody else's run."""
    try:
        return any(word.partition("=")[0] == OPTION for word in words(line))
    except UsageError:
        return False


class Screen:
    """Shows the runs of a stream in the cell of the running context, each from its first event on."""

    def __init__(self, cell: Cell, options: Options, *, stop: Callable[[], None], clicks: bool, title: Callable[[], str]) -> None:
        self._cell, self._options, self._title = cell, options, title
        self._stop, self._clicks = stop, clicks
        self._kind = view_kind(options.view, cell)
        self._views: list[tuple[EventLog, LiveView]] = []
        self.known: Sequence[Mapping[str, Any]] = ()  # records of this cell: what has not changed keeps its own
        self.same: Callable[[Sequence[Event], Sequence[Event]], bool] = same
        self.made: list[dict[str, Any]] = []
        self.more = 0  # runs that are not shown
        self.strict = False  # a run that is not on record as it is now is a drift

    def opened(self, log: EventLog) -> None:
        """A run begins."""
        send(self._cell, log)
        if len(self._views) >= MOST:
            self.more += 1
            return
        view = open_view(
            log, kind=self._kind, actions={"stop": self._stop}, thoughts=self._options.thoughts, can_click=self._clicks,
            publish=publish, badge=self._title(),
        )  # fmt: skip
        self._views.append((log, view))

    def close(self) -> list[Run]:
        """Leave static views and records; return the runs."""
        runs = []
        for log, view in self._views:
            run = Run(_ended(log))
            final, numbers = self.final(run, self._title())
            view.close(final, numbers)
            if self._kind == "text" and self._cell.kernel and MIME in final:
                publish({MIME: final[MIME]}, numbers, {}, False)  # the text is there already; alone the record shows nothing
            runs.append(run)
        if self.more:
            sys.stderr.write(f"agent_nb: {self.more} more runs are not shown; agent_nb.watch(…).runs has them all\n")
        return runs

    def final(self, run: Run, title: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return what stays of a run: its mime bundle and its numbers."""
        kept = self._options.record
        known = next((r for r in self.known if self.same(events_of(r), run.log)), None)
        run = Run(log_of(known)) if known is not None else run
        record = dict(known or imported_record(run.log, self._cell)) if kept else {}
        self.made += [record] if kept else []
        drift = {"drift": drifted(run.log, self.known)} if self.strict and known is None and self.known else {}
        numbers = {**summary(run, recorded=kept), "imported": title, "replayed": True, **drift}
        return {**bundle(run.log, thoughts=self._options.thoughts, badge=title), **({MIME: record} if kept else {})}, {KEY: numbers}


def _ended(log: EventLog) -> EventLog:
    """Return the log, closed if its thread was left behind."""
    return log if log.ended else EventLog.of_events(closed(list(log)))


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
    said = {name: encode_event(event).decode()[:DRIFT] if event else "" for name, event in (("recorded", before), ("fresh", now))}
    return {"name": "the source", "seq": seq, **said}


def imported_record(log: EventLog, cell: Cell) -> dict[str, Any]:
    """Return the record of an imported run: it began when it was imported, whatever its own times, and is not signed."""
    record = run_record(log, cell=cell.id, source=content_hash(cell.line, cell.body), conversation=OURS)
    record["started"] = round(time.time(), 3)
    return {**record, "hash": record_hash(record)}


class Work:
    """A watch as the driver runs it."""

    def __init__(self, followed: Watch) -> None:
        self._followed = followed

    async def run(self) -> None:
        """Read the source to its end; whatever is wrong with it is raised."""
        async for _ in self._followed:
            pass

    def cancel(self) -> None:
        """Stop reading."""
        self._followed.stop()


class Nothing:
    """Work that is done: everything was on record."""

    async def run(self) -> None:
        """Do nothing."""

    def cancel(self) -> None:
        """Do nothing."""


class ForeignRun(CellRun):
    """One `%%agent --from` cell."""

    _followed: Watch | None = None
    _screen: Screen | None = None
    _played: EventLog | None = None

    async def go(self) -> None:
        """Show what there is. Raises AgentCellError when the source cannot be read."""
        driver = Driver(self.session.shell)
        try:
            await driver.drive(lambda: self._prepare(driver))
            fault = driver.fault
            if isinstance(fault, AgentError) and not self._logs():
                raise fault
        except Cancelled as stop:
            self._before(events.Interrupt(detail=stop.detail), events.End(status="interrupted", finish_reason="user"))
            return
        except AgentError as problem:
            raise AgentCellError(self._refuse(problem)) from None
        self._leave()

    def _logs(self) -> list[EventLog]:
        return self._followed.logs if self._followed is not None else [self._played] if self._played is not None else []

    def _prepare(self, driver: Driver) -> Work | Nothing:
        """Open the source, or find the record that stands for it. Raises UsageError."""
        _refuse_others(self.cell.line)
        self.options = options = self._parse()
        prompt = interpolate(self.cell.body.replace("\r\n", "\n").strip(), self.session.shell.user_ns)
        self._screen = Screen(
            self.cell, options, stop=driver.interrupts.press, clicks=can_click(self.session.shell, self.cell), title=self._title
        )
        asked = mode("live" if options.live else options.rerun, self.cell)
        source = content_hash(self.cell.line, self.cell.body)
        self._screen.known = [r for r in self.session.library.of(self.cell) if r.get("source") == source and r.get("conversation") == OURS]
        self._screen.strict = asked == "replay"
        if is_url(options.source) and asked != "live":
            record = next((r for r in self._screen.known if r.get("status") != "interrupted"), None)
            if record is not None:
                self._played = log_of(record)
                return Nothing()
            if asked == "replay":
                raise UsageError(f"Nothing to replay: there is no record of {self._name()}. Record it with --live.")
        self._followed = watch(
            options.source, options.codec or None, prompt=prompt, follow=options.follow, show=False, secrets=secrets()
        )
        self._followed.on_run = self._screen.opened
        return Work(self._followed)

    def _name(self) -> str:
        return watch(self.options.source, show=False).name

    def _title(self) -> str:
        return self._followed.title if self._followed is not None else f"imported from {self._name()}, from the record"

    def _leave(self) -> None:
        """Leave the runs in the notebook and in the namespace."""
        assert self._screen is not None
        if self._played is not None:
            self._screen.opened(self._played)
        runs = self._screen.close()
        for run in runs:
            self.session.keep(self.cell, run, self.options.output)
        for record in self._screen.made:
            self.session.library.keep(self.cell.key, record)
        if not runs:
            self._before(events.Interrupt(detail="stopped before anything came"), events.End(status="interrupted", finish_reason="user"))
        if self._followed is not None and self._followed.lost:
            told = ", ".join(f"{count} × {what}" for what, count in self._followed.lost.items())
            sys.stderr.write(f"agent_nb: not read from {self._followed.name}: {told}\n")


def _refuse_others(line: str) -> None:
    """Raise UsageError on an option that means nothing here."""
    for word in words(line):
        name = word.partition("=")[0] if word.startswith("--") else word[:2]
        if name.startswith("-") and name not in ALLOWED:
            known = ", ".join(sorted(ALLOWED))
            raise UsageError(f"{name} has no meaning with {OPTION}: the run was somebody else's. Options here: {known}.")


# `await agent_nb.watch(…)` in a cell.


def screen(followed: Watch, *, insist: bool = False) -> Any:
    """Return what shows a watch in the notebook cell that awaits it, or None where there is no notebook (unless one insists)."""
    from IPython.core.getipython import get_ipython

    shell = get_ipython()
    if shell is None or (getattr(shell, "kernel", None) is None and not insist):
        return None
    return Awaited(followed, shell)


class Awaited:
    """The cards of a watch that a cell awaits; `close` leaves them and returns whether that cell still runs, as a function."""

    def __init__(self, followed: Watch, shell: Any) -> None:
        self._shell, self._count = shell, shell.execution_count
        ours = shell.magics_manager.registry.get("AgentMagics")
        cells, library = (ours.session.cells, ours.session.library) if ours is not None else (Cells(), Library(shell.user_ns))
        cell = cells.current(shell, "", followed.name)
        self._screen = Screen(cell, Options(), stop=followed.stop, clicks=can_click(shell, cell), title=lambda: followed.title)
        self._screen.known = [] if mode("", cell) == "live" else library.of(cell)
        self._screen.same = same_but_for_times if followed.live else same
        followed.on_run = self._screen.opened
        for log in followed.logs:
            self._screen.opened(log)

    def close(self) -> Callable[[], bool]:
        """Swap the views for static ones."""
        for run in self._screen.close():
            self._shell.user_ns["_agent"] = run
        shell, count = self._shell, self._count
        return lambda: bool(shell.execution_count == count)
