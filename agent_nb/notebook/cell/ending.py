"""The end of a cell's run: what it leaves in the output, in the library and in its conversation.

Why one class: a run ends well, fails, is stopped or never starts, and each leaves a valid notebook.
A run that never began replaces no record; one that failed without an answer adds no turn; a replay
keeps the record that it was played from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any

import msgspec

from ... import events
from ...agent import Played, Run
from ...errors import AgentError, Cancelled, UsageError
from ...events import ABANDONED, EventLog, complete_log, is_map
from ...models import collect_secrets
from ...record import Match, Provenance, Record, run_record
from ...wire import redact_value
from ..conversations import Conversation, Turn, is_turn
from ..identity import Cell
from ..options import Options
from ..session import Session
from . import executions, publish
from .display import Display, show_unrecorded, warn_of_faults
from .driver import Driver
from .failure import AgentCellError
from .frontend import is_headless
from .rerun import ReplayChoice
from .run_live_button import RunLive, until_next_cell
from .summary import summarize_replay, summarize_run

UNDECIDED = ReplayChoice(Match(status="unrecorded"))  # of a run that failed before the decision


class ReplacedReplay(msgspec.Struct, frozen=True):
    """A replay whose place a live run takes (the button Run live): its display and its record."""

    display_id: str
    record: Record | None


@dataclass(eq=False, repr=False)
class Ending:
    """The end of one cell's run. Make it when the run has ended, or could not begin.

    Then call `finish`, `show_refused` or `show_stopped`, once. `choice`: the decision to call the
    model or to play a record. `played`: the progress of the stream, None if none was made.
    `replaced`: the replay whose place the run takes, if any. `run_live`: the button that runs a
    replay live, None where it could not be used.
    """

    session: Session
    cell: Cell
    options: Options
    display: Display
    _: KW_ONLY
    choice: ReplayChoice = UNDECIDED
    played: Played | None = None
    replaced: ReplacedReplay | None = None
    run_live: RunLive | None = None

    def finish(self, run: Run, conversation: Conversation) -> None:
        """Show, record and remember a run that has ended."""
        self.session.keep_run(self.cell, run, self.options.variable)
        record = self._make_record(run) if self.options.record else self._former_record
        self._show(run, record, recorded=self.options.record)
        self._commit_turn(run, conversation)
        warn_of_faults(run.log)

    def show_refused(self, fault: AgentError, log: EventLog | None = None) -> str:
        """Show a run that could not start, in an empty `log`; return why, without secrets."""
        secrets = collect_secrets()
        message: str = redact_value(str(fault), secrets=secrets)
        differences = redact_value(list(getattr(fault, "differences", ())), secrets=secrets)
        code = "usage" if isinstance(fault, UsageError) else "model"
        error = events.Error(code=code, message=message)
        end = events.End(status="error", finish_reason=code)
        self._show_unstarted(log, differences, error, end)
        return message

    def show_stopped(self, detail: str, log: EventLog | None = None) -> Run:
        """Show a run that `detail` stopped before its first event, in an empty `log`."""
        end = events.End(status="interrupted", finish_reason="user")
        return self._show_unstarted(log, [], events.Interrupt(detail=detail), end)

    def short_error_line(self, text: str) -> str:
        """Return the error line below the cards, "" where the line must give the reason itself.

        It must do so where nothing was drawn, and where no user watches: papermill and
        `jupyter execute` print only this line.
        """
        drawn = self.display.opened or self.display.kind != "text"
        if is_headless(self.cell) or not drawn:
            return ""
        return f"{text}; the reason stands above"

    def fail_cell(self, run: Run, path_advice: str) -> None:
        """Raise AgentCellError if the run fails the cell: an error, or an end that is not expected.

        `path_advice`: see `NotebookFinder.advice`. It is added if a headless run lacks a key, which
        may mean that the notebook with the record was not found.
        """
        expected = self.options.expect
        if expected and run.status not in (expected, "interrupted"):
            raise AgentCellError(
                f"the run ended with status {run.status}, and --expect {expected} says otherwise"
            )
        if run.status != "error" or expected:
            return
        keyless = any(isinstance(e, events.Error) and e.code == "no_key" for e in run.log)
        advice = path_advice if keyless and is_headless(self.cell) else ""
        raise AgentCellError(
            " ".join(filter(None, [run.reason, advice])) or "the run ended in an error",
            self.short_error_line("the run failed") if run.reason else "",
        )

    def _show_unstarted(
        self, log: EventLog | None, differences: list[str], *ending: events.Event
    ) -> Run:
        """Show a run that began no stream: its prompt and the events of `ending`."""
        log = EventLog() if log is None else log
        secrets = collect_secrets()
        prompt = redact_value(self.cell.body.strip(), secrets=secrets)
        log.append(events.RunStart(model=redact_value(self.options.model or "", secrets=secrets)))
        log.append(events.User(content=prompt, origin="user"))
        for event in ending:
            log.append(event)
        run = Run(log)
        self.session.keep_run(self.cell, run, self.options.variable)
        self._show(run, self._former_record, recorded=False, differences=differences)
        return run

    @property
    def _former_record(self) -> Record | None:
        """The record from before the run, to keep when the run makes none."""
        replaced = self.replaced.record if self.replaced is not None else None
        return replaced or self.choice.record

    def _show(
        self, run: Run, record: Record | None, *, recorded: bool, differences: Sequence[str] = ()
    ) -> None:
        """Close the display with the record and the numbers of the run."""
        numbers = summarize_run(run, recorded=recorded)
        if record is not None and not recorded:  # a record of another run stays in the output
            numbers["record"] = record.get("id", "")
        numbers |= self._list_facts(differences)
        # `CellRun` removes the pressed button when it opens a view; without a view it goes now
        if self.replaced is not None and not self.display.opened:
            self.session.remove_button(self.cell.key)
        try:
            self._offer_run_live(run)
        finally:
            if not publish.reply_numbers(self.session.shell, self.cell.runner_options, numbers):
                self.display.close(run.log, record, numbers, badge=self.choice.badge)
            if self.played is not None:
                show_unrecorded(self.played)

    def _list_facts(self, differences: Sequence[str]) -> dict[str, Any]:
        """Return what the numbers of the run (`summary`) say about its options and its replay."""
        options = {"expect": self.options.expect, "compare": self.options.compare}
        facts: dict[str, Any] = {k: v for k, v in options.items() if v not in ("", "full")}
        if self.choice.turns is not None and self.played is not None:
            return facts | summarize_replay(self.played)
        return facts | {"differences": differences} if differences else facts

    def _offer_run_live(self, run: Run) -> None:
        """Show the button that runs a replay live, before the live view closes.

        Why before: JupyterLab ends the subshell that receives presses with the last widget.
        """
        if self.run_live is None or self.choice.turns is None or not self.display.opened:
            return
        key = self.cell.key
        self.session.buttons[key] = self.run_live.offer(run.id)
        remove = partial(self.session.remove_button, key)
        until_next_cell(self.session.shell, self.run_live, remove)

    def _make_record(self, run: Run) -> Record:
        """Return the record that a replay played, or a new one of a live run, signed and kept."""
        if self.choice.record is not None:
            return self.choice.record
        provenance = Provenance(
            cell=self.cell.id,
            source=self.cell.text_hash,
            conversation=self.options.conversation,
            fresh=self.options.new,
            execution=executions.executions_of(self.session.shell).current().id,
        )
        signed = self.session.sign(run_record(run.log, provenance))
        self.session.library.keep_record(self.cell.key, signed)
        return signed

    def _commit_turn(self, run: Run, conversation: Conversation) -> None:
        """Make the run the turn of its cell, if it counts as one."""
        if is_map(run.log):  # each row was asked without the conversation
            conversation.forget(self.cell.key)
            return
        turns, record = self.choice.turns, self.choice.record
        foreign = False  # the replay of a record that neither this user signed nor this kernel made
        if turns is not None and record is not None:
            foreign = not (turns.own or self.session.library.is_from_kernel(record))
        turn = Turn(self.cell.key, run.log, self.options.new, foreign)
        # also a run that does not count as a turn: committing a live run drops the later turns
        conversation.commit(turn, live=turns is None)
        if not is_turn(run.log):
            conversation.forget(self.cell.key)


def close_log(log: EventLog, driver: Driver) -> EventLog:
    """Return a driven run's log, completed if cut off; without event or fault, raise Cancelled."""
    if log.ended and not driver.abandoned:
        return log
    logged = list(log)
    if not logged and driver.fault is None:
        raise Cancelled("user", ABANDONED if driver.abandoned else driver.interrupts.by)
    if driver.fault is not None:
        fault = f"{type(driver.fault).__name__}: {driver.fault}"
        logged.append(events.Error(code="internal", message=fault, run=log.run, ts=log.now()))
    completed = complete_log(logged)
    return EventLog.of_events(map(_mark_abandoned, completed) if driver.abandoned else completed)


def _mark_abandoned(event: events.Event) -> events.Event:
    """Return the event, marked as abandoned if it is the interrupt that ended the run."""
    ended_run = isinstance(event, events.Interrupt) and not event.span
    return msgspec.structs.replace(event, detail=ABANDONED) if ended_run else event
