"""Runs of other systems in a cell: `%%agent --from FILE|URL`.

Why its own file: nothing here calls a model; what it shares with a cell of ours is the driver, the
views and the record.

Rules
- Each run of the stream is shown and recorded (`screen`); `-o` gets the latest run that is shown.
- A file is read anew each time; an address is asked only when the record does not do (`--live`,
  another text, a run that was cut off).
- A run that ended badly elsewhere does not fail the cell; a source that cannot be read does, and so
  does somebody who stops to follow.
- Options that have no meaning for somebody else's run are refused.
"""

from __future__ import annotations

from ... import events
from ...codecs.sources import is_url, name_of
from ...errors import AgentError, AgentStopped, Cancelled, UsageError
from ...events.log import EventLog
from ...external.watch import Watch, watch
from ...record.agent_cells import content_hash
from ...record.record import NONE, log_of
from ..cell.driver import Driver
from ..cell.failure import AgentCellError
from ..cell.frontend import can_click
from ..cell.kernel_interrupts import cell_interrupts
from ..cell.rerun import mode
from ..cell.run import CellRun
from ..cell.screen import Screen
from ..interpolate import interpolate
from ..notices import warn
from ..options import words

OPTION = "--from"
ALLOWED = frozenset(
    {
        "--from",
        "--codec",
        "--follow",
        "-o",
        "--output",
        "--live",
        "--rerun",
        "--no-record",
        "--view",
        "--thoughts",
    }
)


def wanted(line: str) -> bool:
    """Return whether the option line of a cell asks for somebody else's run."""
    try:
        return any(word.partition("=")[0] == OPTION for word in words(line))
    except UsageError:
        return False


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
        """Show what there is. Raises AgentCellError when the source cannot be read, and
        AgentStopped when somebody stopped to follow it.
        """
        with cell_interrupts(self.session.shell) as interrupts:
            await self._show_all(Driver(self.session.shell, interrupts))
        if interrupts.stopped:
            raise AgentStopped(interrupts.by, self.session.latest)

    async def _show_all(self, driver: Driver) -> None:
        try:
            await driver.drive(lambda: self._prepare(driver))
            fault = driver.fault
            if isinstance(fault, AgentError) and not self._logs():
                raise fault
        except Cancelled as stop:
            self._before(
                events.Interrupt(detail=stop.detail),
                events.End(status="interrupted", finish_reason="user"),
            )
            return
        except AgentError as problem:
            raise AgentCellError(
                self._refuse(problem), self._once("the run could not be shown")
            ) from None
        self._leave()

    def _logs(self) -> list[EventLog]:
        return (
            self._followed.logs
            if self._followed is not None
            else [self._played]
            if self._played is not None
            else []
        )

    def _prepare(self, driver: Driver) -> Work | Nothing:
        """Open the source, or find the record that stands for it. Raises UsageError."""
        _refuse_others(self.cell.line)
        self.options = options = self._parse()
        prompt = interpolate(
            self.cell.body.replace("\r\n", "\n").strip(), self.session.shell.user_ns
        )
        clicks = can_click(self.session.shell, self.cell)
        self._screen = Screen(
            self.cell, options, actions={"stop": driver.stop}, clicks=clicks, title=self._title
        )
        asked = mode("live" if options.live else options.rerun, self.cell)
        source = content_hash(self.cell.line, self.cell.body)
        self._screen.known = [
            r
            for r in self.session.library.of(self.cell)
            if r.get("source") == source and r.get("conversation") == NONE
        ]
        self._screen.strict = asked == "replay"
        if is_url(options.source) and asked != "live":
            record = next((r for r in self._screen.known if r.get("status") != "interrupted"), None)
            if record is not None:
                self._played = log_of(record)
                return Nothing()
            if asked == "replay":
                raise UsageError(
                    f"Nothing to replay: there is no record of {self._name()}. Record it with --live."
                )
        self._followed = watch(
            options.source,
            options.codec or None,
            prompt=prompt,
            follow=options.follow,
            show=False,
        )
        self._followed.on_run = self._screen.opened
        return Work(self._followed)

    def _name(self) -> str:
        return name_of(self.options.source)

    def _title(self) -> str:
        return (
            self._followed.title
            if self._followed is not None
            else f"imported from {self._name()}, from the record"
        )

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
            self._before(
                events.Interrupt(detail="stopped before anything came"),
                events.End(status="interrupted", finish_reason="user"),
            )
        if self._followed is not None and self._followed.lost:
            told = ", ".join(f"{count} × {what}" for what, count in self._followed.lost.items())
            warn(f"not read from {self._followed.name}: {told}")


def _refuse_others(line: str) -> None:
    """Raise UsageError on an option that means nothing here."""
    for word in words(line):
        name = word.partition("=")[0] if word.startswith("--") else word[:2]
        if name.startswith("-") and name not in ALLOWED:
            known = ", ".join(sorted(ALLOWED))
            raise UsageError(
                f"{name} has no meaning with {OPTION}: the run was somebody else's. Options here: {known}."
            )
