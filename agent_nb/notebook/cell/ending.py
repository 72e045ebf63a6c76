"""How a cell's run is left: its static page, its record and its turn of the conversation.

Rules
- Whatever happened, the log ends with `end` and the output holds a static page.
- A run that never began replaces no record: the one that was there stays in the output.
- A run that failed without an answer adds no turn to the conversation.
- A replay keeps the record that it was played from.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ... import events
from ...agent import Played, Run
from ...errors import AgentError, Cancelled, UsageError
from ...events import ABANDONED, EventLog, complete_log, is_map
from ...models import collect_secrets
from ...record import Match, Provenance, content_hash, run_record
from ...wire import redact_value
from ..conversations import Conversation, Turn
from ..identity import Cell
from ..notices import print_warning
from ..options import Options
from ..session import Session
from . import executions
from .display import Display, show_unrecorded
from .driver import Driver
from .failure import AgentCellError
from .frontend import is_headless
from .rerun import Choice
from .run_live_button import RunLive, until_next_cell
from .summary import summarize_replay, summarize_run

UNDECIDED = Choice(Match(status="unrecorded"))


class Replaced(msgspec.Struct, frozen=True):
    """The replay whose place a run takes: the display of its page, and its record."""

    display_id: str
    record: Mapping[str, Any] | None


class Ending:
    """The end of one cell's run. Make it when the run has ended, or could not begin.

    `choice` is the decision between model and record, `played` the progress of the stream;
    `replaced` is the replay whose place the run takes, `again` the button that runs a replay live.
    """

    def __init__(
        self,
        session: Session,
        cell: Cell,
        options: Options,
        display: Display,
        *,
        choice: Choice = UNDECIDED,
        played: Played | None = None,
        replaced: Replaced | None = None,
        again: RunLive | None = None,
    ) -> None:
        self._session, self._cell, self._options = session, cell, options
        self._display, self._choice, self._played = display, choice, played
        self._replaced, self._again = replaced, again

    def finish(self, run: Run, conversation: Conversation) -> None:
        """Show, record and remember a run that has ended."""
        self._session.keep(self._cell, run, self._options.variable)
        record = self._record(run) if self._options.record else self._kept
        self._show(run, record, recorded=self._options.record)
        self._commit(run, conversation)
        for _, fault in run.log.faults:
            print_warning(
                f"a subscriber of the run failed and was detached: {type(fault).__name__}: {fault}"
            )

    def refuse(self, fault: AgentError, log: EventLog | None = None) -> str:
        """Show a run that could not start, in `log` (None: a new one); return the message."""
        message: str = redact_value(str(fault), secrets=collect_secrets())
        code = "usage" if isinstance(fault, UsageError) else "model"
        differences = redact_value(
            list(getattr(fault, "differences", ())), secrets=collect_secrets()
        )
        self._before(
            log,
            differences,
            events.Error(code=code, message=message),
            events.End(status="error", finish_reason=code),
        )
        return message

    def stopped(self, detail: str, log: EventLog | None = None) -> Run:
        """Show a run that was stopped before its first event, in `log` (None: a new one)."""
        return self._before(
            log,
            [],
            events.Interrupt(detail=detail),
            events.End(status="interrupted", finish_reason="user"),
        )

    def line(self, text: str) -> str:
        """Return the error line below the cards, "" where the line must give the reason itself.

        It must without cards, and for papermill and `jupyter execute`, which print only this line.
        """
        if is_headless(self._cell) or not (self._display.opened or self._display.kind != "text"):
            return ""
        return f"{text}; the reason stands above"

    def judge(self, run: Run, unplaced: str) -> None:
        """Raise AgentCellError if the cell fails with this run.

        `unplaced`: see `Library.unplaced`. A missing key in a headless run may mean that the
        notebook with the record was not found.
        """
        expected = self._options.expect
        if expected and run.status not in (expected, "interrupted"):
            raise AgentCellError(
                f"the run ended with status {run.status}, and --expect {expected} says otherwise"
            )
        if run.status != "error" or expected:
            return
        keyless = any(isinstance(e, events.Error) and e.code == "no_key" for e in run.log)
        more = unplaced if keyless and is_headless(self._cell) else ""
        raise AgentCellError(
            " ".join(filter(None, [run.reason, more])) or "the run ended in an error",
            self.line("the run failed") if run.reason else "",
        )

    def _before(self, log: EventLog | None, differences: list[str], *ending: events.Event) -> Run:
        log = EventLog() if log is None else log
        prompt = redact_value(self._cell.body.strip(), secrets=collect_secrets())
        model = redact_value(self._options.model or "", secrets=collect_secrets())
        for event in (
            events.RunStart(model=model),
            events.User(content=prompt, origin="user"),
            *ending,
        ):
            log.append(event)
        run = Run(log)
        self._session.keep(self._cell, run, self._options.variable)
        self._show(run, self._kept, recorded=False, differences=differences)
        return run

    @property
    def _kept(self) -> Mapping[str, Any] | None:
        """The record that stays where the run leaves none."""
        replaced = self._replaced.record if self._replaced is not None else None
        return replaced or self._choice.record

    def _show(
        self,
        run: Run,
        record: Mapping[str, Any] | None,
        *,
        recorded: bool,
        differences: list[str] | None = None,
    ) -> None:
        named = {"record": record.get("id", "")} if record is not None and not recorded else {}
        options = {"expect": self._options.expect, "compare": self._options.compare}
        expected = {name: value for name, value in options.items() if value not in ("", "full")}
        if self._choice.tape is not None and self._played is not None:
            how = summarize_replay(self._played)
        else:
            how = {"differences": differences} if differences else {}
        numbers = {**summarize_run(run, recorded=recorded), **named, **expected, **how}
        if self._replaced is not None and not self._display.opened:
            self._session.put_away(self._cell.key)
        try:
            self._offer_again(run)
        finally:
            self._display.close(run.log, record, numbers, badge=self._choice.badge)
            if self._played is not None:
                show_unrecorded(self._played)

    def _offer_again(self, run: Run) -> None:
        """Show the button that runs a replay live.

        It must be there before the live view closes: JupyterLab ends the subshell that receives
        presses with the last widget.
        """
        if self._again is None or self._choice.tape is None or not self._display.opened:
            return
        key = self._cell.key
        self._session.buttons[key] = self._again.offer(run.id)
        until_next_cell(self._session.shell, self._again, lambda: self._session.put_away(key))

    def _record(self, run: Run) -> Mapping[str, Any]:
        """Return the record of a live run, signed; of a replay the one it was played from."""
        if self._choice.record is not None:
            return self._choice.record
        record = run_record(
            run.log,
            Provenance(
                cell=self._cell.id,
                source=content_hash(self._cell.line, self._cell.body),
                conversation=self._options.conversation,
                fresh=self._options.new,
                execution=executions.executions_of(self._session.shell).current().id,
            ),
        )
        signed = self._session.sign(record)
        self._session.library.keep(self._cell.key, signed)
        return signed

    def _commit(self, run: Run, conversation: Conversation) -> None:
        if is_map(run.log):  # its rows were asked alone
            conversation.forget(self._cell.key)
            return
        tape, record = self._choice.tape, self._choice.record
        foreign = (
            tape is not None
            and record is not None
            and not (tape.own or self._session.library.made(record))
        )
        turn = Turn(self._cell.key, run.log, self._options.new, foreign)
        conversation.commit(turn, live=tape is None)
        if run.status == "error" and not run.answer:
            conversation.forget(self._cell.key)


def ended_log(log: EventLog, driver: Driver) -> EventLog:
    """Return the log of a driven run, ended; closed here if the run was abandoned or broke.

    Raises Cancelled when no event has come.
    """
    if log.ended and not driver.abandoned:
        return log
    ended = list(log)
    if not ended and driver.fault is None:
        raise Cancelled("user", ABANDONED if driver.abandoned else driver.interrupts.by)
    if driver.fault is not None:
        fault = f"{type(driver.fault).__name__}: {driver.fault}"
        ended.append(events.Error(code="internal", message=fault, run=log.run, ts=log.now()))
    whole = complete_log(ended)
    return EventLog.of_events(map(_abandoned, whole) if driver.abandoned else whole)


def _abandoned(event: events.Event) -> events.Event:
    last = isinstance(event, events.Interrupt) and not event.span
    return msgspec.structs.replace(event, detail=ABANDONED) if last else event
