"""`%%agent --from FILE|URL`: show and record the runs of another system in a cell.

Why: runs of other systems can be read, compared and stored like the notebook's own.

Rules
- A file is read at each execution. A URL is read with `--live`, or if the cell has no complete
  record for its present text; a replay without such a record is an error.
- A source from which no run can be read fails the cell. A run that failed elsewhere, or whose
  source breaks off, ends with an error in its log, and does not fail the cell.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial

from ...agent import Run
from ...codecs import classify_source, name_source
from ...errors import AgentError, Cancelled, UsageError
from ...events import EventLog
from ...external import Watch, watch
from ...record import Record
from ..cell.display import Display
from ..cell.driver import Driver, Work
from ..cell.ending import Ending
from ..cell.failure import AgentCellError
from ..cell.frontend import can_click_now
from ..cell.interrupts import Interrupts
from ..cell.prepare import read_prompt
from ..cell.rerun import rerun_mode
from ..identity import Cell
from ..notices import print_warning
from ..options import Options, split_words
from ..session import Session
from .base import FollowRun, find_replayable
from .cards import Cards

OPTION = "--from"
# the options that have a meaning for a run of another system
ALLOWED = frozenset({
    "--from", "--codec", "--follow", "-o", "--live", "--rerun", "--no-record", "--view", "--thoughts",
})  # fmt: skip


def wants_source(line: str) -> bool:
    """Return whether the first line of a cell has `--from`; False for a malformed line."""
    try:
        return any(word.partition("=")[0] == OPTION for word in split_words(line))
    except UsageError:
        return False


class ForeignRun(FollowRun):
    """One `%%agent --from` cell. `options` returns the cell's options or raises UsageError.

    `_prepare` sets the options and the cards, and chooses what the cards show: the runs of a source
    (`_watch`) or a recorded run (`_recorded`); the other one stays None.
    """

    def __init__(self, session: Session, cell: Cell, options: Callable[[], Options]) -> None:
        super().__init__(session, cell)
        self._parse_options = options
        self._options = Options()
        self._cards: Cards | None = None
        self._watch: Watch | None = None
        self._recorded: EventLog | None = None

    async def go(self) -> None:
        """Follow the runs; return none of them, for the notebook would display it again.

        Raises AgentCellError if no run can be read, and AgentStopped when the user stopped it.
        """
        await self.follow()

    async def _follow(self, interrupts: Interrupts) -> Run | None:
        driver = Driver(self.session.shell, interrupts)
        try:
            await driver.drive(lambda: self._prepare(driver))
            has_run = self._recorded is not None or (self._watch and self._watch.logs)
            if isinstance(driver.fault, Exception) and not has_run:
                raise driver.fault
        except Cancelled as stop:
            return self._make_ending().show_stopped(stop.detail)
        except AgentError as fault:
            ending = self._make_ending()
            message = ending.show_refused(fault)
            line = ending.short_error_line("the run could not be shown")
            raise AgentCellError(message, line) from None
        return self._show_end()

    def _make_ending(self) -> Ending:
        return Ending(self.session, self.cell, self._options, Display(self.cell, self._options))

    def _prepare(self, driver: Driver) -> Work:
        """Make the cards, and return the work that reads their runs. Raises UsageError."""
        _refuse_other_options(self.cell.line)
        self._options = options = self._parse_options()
        # `Options()`: a session's defaults for maps or `--fix` have no meaning here
        prompt = read_prompt(self.session, self.cell, Options()).text
        mode = rerun_mode("live" if options.live else options.rerun, self.cell)
        records = [r for r in self._list_records() if r.get("source") == self.cell.text_hash]
        self._cards = Cards(
            self.cell,
            options,
            actions={"stop": driver.stop},
            can_click=can_click_now(self.session.shell, self.cell),
            title=self._make_title,
            earlier=records,
            strict=mode == "replay",
        )
        self._recorded = self._choose_recorded(mode, records)
        if self._recorded is not None:
            return Work(partial(asyncio.sleep, 0), lambda: None, brief=True)  # nothing is read
        self._watch = source = watch(
            options.source, options.codec or None, prompt=prompt, follow=options.follow, show=False
        )
        source.set_run_callback(self._cards.open)
        return Work(partial(_read_to_end, source), source.stop)

    def _choose_recorded(self, mode: str, records: Sequence[Record]) -> EventLog | None:
        """Return the recorded run that is shown instead of the source, None to read the source.

        Raises UsageError in the mode `replay` for a URL without a complete record.
        """
        source = self._options.source
        if mode == "live" or classify_source(source) != "url":
            return None
        recorded = find_replayable(records)
        if recorded is None and mode == "replay":
            name = name_source(source)
            raise UsageError(f"Nothing to replay: {name} has no record. Record it with --live.")
        return recorded

    def _make_title(self) -> str:
        if self._watch is not None:
            return self._watch.title
        return f"imported from {name_source(self._options.source)}, from the record"

    def _show_end(self) -> Run:
        """Leave the runs in the notebook and in the namespace; return the last one."""
        assert self._cards is not None
        if self._recorded is not None:
            self._cards.open(self._recorded)
        runs = self._close_cards(self._cards, self._options)
        if self._watch is not None and self._watch.lost:
            lost = ", ".join(f"{count} × {what}" for what, count in self._watch.lost.items())
            print_warning(f"not read from {self._watch.name}: {lost}")
        return (
            runs[-1] if runs else self._make_ending().show_stopped("stopped before anything came")
        )


async def _read_to_end(source: Watch) -> None:
    async for _ in source:
        pass


def _refuse_other_options(line: str) -> None:
    """Raise UsageError on an option that has no meaning for a run of another system."""
    for word in split_words(line):
        # the value of an option may follow in the same word: --codec=NAME, -oNAME
        name = word.partition("=")[0] if word.startswith("--") else word[:2]
        if name.startswith("-") and name not in ALLOWED:
            allowed = ", ".join(sorted(ALLOWED))
            raise UsageError(
                f"{name} has no meaning with {OPTION}: the run belongs to another system. Options here: {allowed}."
            )
