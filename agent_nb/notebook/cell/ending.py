"""What stays of a cell's run: its static view, its record and its turn of the conversation.

Rules: see `cellrun`; whatever happened, the log ends with `end` and the output holds a static
bundle.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import msgspec

from ... import events
from ...agent.drift import Resume
from ...agent.registry import Announced
from ...agent.run import Run
from ...agent.stream import Stream
from ...errors import AgentError, Cancelled, UsageError
from ...events.log import EventLog
from ...models.keys import secrets
from ...record.agent_cells import content_hash
from ...record.journal import Journal
from ...record.match import Match
from ...record.record import ABANDONED, KEY, MIME, closed, run_record
from ...view.bundle import bundle
from ...view.live import LiveView
from ...view.run_live import RunLiveButton
from ...wire.redact import redact_value
from ..conversations import Conversation, Turn
from ..notices import warn
from ..options import Options
from ..session import Session
from . import executions
from .approvals import Clicks
from .driver import Driver
from .frontend import headless, unshown, view_kind
from .identity import Cell
from .publish import publish
from .rerun import Choice
from .run_live_button import RunLive, until_next_cell
from .streams import Place, Work
from .summary import replayed, summary

NOTHING: dict[str, Any] = {"text/plain": ""}  # stands in an output that is dropped


class CellEnd:
    """The state of one cell's run, and how it is left."""

    def __init__(
        self,
        session: Session,
        cell: Cell,
        options: Callable[[], Options],
        *,
        place: Place | None = None,
    ) -> None:
        self.session = session
        self.cell = cell
        self.options = Options()
        self._parse = options
        self._held = ExitStack()
        self._conversation: Conversation | None = None
        self._stream: Stream | None = None
        # it takes the place of a replay, by its button, while no cell runs
        self._taking = place is not None
        self._place = place or Place()
        self._again: RunLive | None = None
        self._clicks: Clicks | None = None
        self._choice = Choice(Match(status="unrecorded"))
        self._start: Callable[[Driver, Resume | None], Work] | None = None
        self._journal: Journal | None = None
        self._announced: Announced | None = None  # held while the run goes on
        self._unplaced = ""  # what to do, where the notebook of the cell is not known
        # from the newest record, of a run that could not be replayed
        self._differences: list[str] = []

    def _log(self, driver: Driver) -> EventLog:
        """Return the log of the run, ended: as it is, or closed here when the run was left behind
        or broke.

        Raises Cancelled when nothing of it has begun.
        """
        assert self._stream is not None
        log = self._stream.log
        if log.ended and not driver.abandoned:
            return log
        found = list(log)
        if not found and driver.fault is None:
            raise Cancelled("user", ABANDONED if driver.abandoned else driver.interrupts.by)
        if driver.fault is not None:
            fault = f"{type(driver.fault).__name__}: {driver.fault}"
            found.append(events.Error(code="internal", message=fault, run=log.run, ts=log.now()))
        whole = EventLog.of_events(closed(found))
        return EventLog.of_events(_abandoned(e) for e in whole) if driver.abandoned else whole

    def _finish(self, run: Run) -> None:
        """Show, record and remember an ended run."""
        self.session.keep(self.cell, run, self.options.output)
        self._show(run, recorded=self.options.record)
        if self._conversation is not None:
            tape, played = self._choice.tape, self._choice.record
            foreign = (
                tape is not None
                and played is not None
                and not (tape.own or self.session.library.made(played))
            )
            self._conversation.commit(
                Turn(self.cell.key, run.log, self.options.new, foreign),
                live=self._choice.tape is None,
            )
            if run.status == "error" and not run.answer:
                self._conversation.forget(self.cell.key)
        for _, fault in run.log.faults:
            warn(f"something that followed the run was detached: {type(fault).__name__}: {fault}")

    def _refuse(self, fault: AgentError) -> str:
        """Show a run that could not start; return the message."""
        message: str = redact_value(str(fault), secrets=secrets())
        code = "usage" if isinstance(fault, UsageError) else "model"
        self._differences = redact_value(list(getattr(fault, "differences", ())), secrets=secrets())
        self._before(
            events.Error(code=code, message=message), events.End(status="error", finish_reason=code)
        )
        return message

    def _once(self, words: str) -> str:
        """Return the line below the card, "" where it must give the reason itself: without a card,
        or without a front end that shows it.
        """
        if headless(self.cell):  # papermill and `jupyter execute` print this line only
            return ""
        card = self._place.view is not None or view_kind(self.options.view, self.cell) != "text"
        return f"{words}; the reason stands above" if card else ""

    def _before(self, *ending: events.Event) -> Run:
        """Show a run that ended before its first event, in the log of its stream if that is there
        and nobody else writes to it.
        """
        if self._journal is not None:
            self._journal.close(discard=True)  # there is nothing to recover
        left = self._place.driver is not None and self._place.driver.abandoned
        log = (
            self._stream.log
            if self._stream is not None and not len(self._stream.log) and not left
            else EventLog()
        )
        said = redact_value(self.cell.body.strip(), secrets=secrets())
        model = redact_value(self.options.model or "", secrets=secrets())
        for event in (
            events.RunStart(model=model),
            events.User(content=said, origin="user"),
            *ending,
        ):
            log.append(event)
        run = Run(log)
        self.session.keep(self.cell, run, self.options.output)
        self._show(run, recorded=False)
        return run

    def _show(self, run: Run, *, recorded: bool) -> None:
        """Leave the static view of an ended run in the output, and its record if it is
        to be kept.
        """
        kept = self._place.record or self._choice.record  # a run that never began replaces nothing
        record = (
            {MIME: self._record(run)}
            if recorded
            else {MIME: dict(kept)}
            if kept is not None
            else {}
        )
        named = {"record": kept.get("id", "")} if kept is not None and not recorded else {}
        asked = {"expect": self.options.expect, "compare": self.options.compare}
        expected = {name: value for name, value in asked.items() if value not in ("", "full")}
        numbers = {
            KEY: {**summary(run, recorded=recorded), **named, **expected, **self._replayed()}
        }
        if unshown(self.cell):
            publish(NOTHING, numbers, {}, False)
            return
        final = {
            **bundle(run.log, thoughts=self.options.thoughts, badge=self._choice.badge),
            **record,
        }
        view, there = self._place.view, self._place.display_id
        if view is not None:
            self._swap(view, final, numbers)
        elif self._taking:
            self.session.put_away(self.cell.key)
        if view_kind(self.options.view, self.cell) != "text":
            if view is None:
                publish(final, numbers, {"display_id": there} if there else {}, bool(there))
        elif self.cell.kernel and recorded:
            # the text is there already; alone the record shows nothing
            publish(record, numbers, {}, False)

    def _swap(self, view: LiveView, final: dict[str, Any], numbers: dict[str, Any]) -> None:
        """Swap the live view for the static one; that of a replay gets a button.

        The button is there before the view is closed: JupyterLab ends the subshell that presses go
        to with the last widget.
        """
        try:
            if self._again is not None and self._choice.tape is not None:
                self._offer(view, self._again)
        finally:
            view.close(final, numbers)

    def _offer(self, view: LiveView, again: RunLive) -> None:
        key = self.cell.key
        self._place.view, self._place.display_id = None, view.display_id
        button = self.session.buttons[key] = RunLiveButton(publish, again.press, view.log.run)
        again.refused = button.unpress
        until_next_cell(self.session.shell, again, lambda: self.session.put_away(key))

    def _record(self, run: Run) -> dict[str, Any]:
        """Return the record of a live run, signed; that of a replay is the one it was
        played from.
        """
        if self._choice.record is not None:
            return dict(self._choice.record)
        record = run_record(
            run.log,
            cell=self.cell.id,
            source=content_hash(self.cell.line, self.cell.body),
            conversation=self.options.conversation,
            fresh=self.options.new,
            execution=executions.of(self.session.shell).current().id,
        )
        signed = self.session.sign(record)
        self.session.library.keep(self.cell.key, signed)
        return signed

    def _replayed(self) -> dict[str, Any]:
        """Return what the numbers of a replay say beside those of its run; a drift is told on
        stderr too.
        """
        if self._choice.tape is None or self._stream is None:
            return {"differences": self._differences} if self._differences else {}
        return replayed(self._stream.played)


def _abandoned(event: events.Event) -> events.Event:
    last = isinstance(event, events.Interrupt) and not event.span
    return msgspec.structs.replace(event, detail=ABANDONED) if last else event
