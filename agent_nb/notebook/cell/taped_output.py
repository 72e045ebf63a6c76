"""What the model calls of a cell leave in its output: a record for each, and a line about them all.

Why at the end of the cell: only a later request holds the results of the tool calls in an answer.

Rule: a record that answers a call is kept: the line names all records that the execution used.
Those that this kernel made are published again, since the notebook may not have been saved.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...agent import Run
from ...events import EventLog
from ...record import METADATA_KEY, RECORD_MIME, Home, Provenance, RunNumbers, run_record
from ...tape import ExchangePacker
from .frontend import is_unshown
from .publish import publish_display
from .refusing import publish_errors
from .summary import VERSION, summarize_run
from .taped_calls import CellCalls, EndedCalls, TapedCall
from .taped_line import CountedCalls

if TYPE_CHECKING:
    from ..session import Session

_MOST_CARDS = 20  # calls of a cell whose cards are shown


class TapedOutput:
    """Publishes the calls of one kernel's cells."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._packer = ExchangePacker(Home.of_user())

    def publish(self, calls: CellCalls, ended: EndedCalls) -> None:
        """Record and show calls that have ended; a test fails for calls without a record."""
        cell = calls.execution.cell
        logs = calls.make_logs(ended.calls)
        self._publish_records(calls, ended.calls, logs)
        self._session.library.keep_used_calls(cell.key, calls.record_ids)
        self._publish_line(calls, ended, [Run(log, cell=cell.id) for log in logs])
        if calls.mode == "replay":
            publish_errors(cell, [f"a model call is not recorded: {why}" for why in ended.misses])

    def _publish_records(
        self, calls: CellCalls, ended: Sequence[TapedCall], logs: Sequence[EventLog]
    ) -> None:
        """Record the calls that were sent; publish the served records of this kernel again."""
        for call, log in zip(ended, logs, strict=True):
            name = call.recorded or log.run
            is_new = name not in calls.record_ids
            if is_new:
                calls.record_ids.append(name)
            if not call.recorded:
                calls.ordinal += 1
                self._publish_new(calls, call, log)
            elif is_new and self._session.library.is_from_kernel(calls.served.records[name]):
                numbers = {"version": VERSION, "record": name}
                record = calls.served.records[name]
                publish_display({RECORD_MIME: record}, {METADATA_KEY: numbers}, {}, False)

    def _publish_new(self, calls: CellCalls, call: TapedCall, log: EventLog) -> None:
        """Make and sign the record of a call, and put it into the output."""
        cell = calls.execution.cell
        provenance = Provenance(
            cell=cell.id,
            source=cell.text_hash,
            conversation=Provenance.NO_CONVERSATION,
            execution=calls.execution.id,
            ordinal=calls.ordinal,
        )
        packed = self._packer.pack(call.exchange, log)
        record = self._session.sign(run_record(log, provenance, exchange=packed))
        self._session.library.keep_record(cell.key, record)
        self._session.run_ids.add(log.run)
        numbers = {**summarize_run(Run(log, cell=cell.id)), "cell_id": cell.id}
        publish_display({RECORD_MIME: record}, {METADATA_KEY: numbers}, {}, False)

    def _publish_line(self, calls: CellCalls, ended: EndedCalls, runs: Sequence[Run]) -> None:
        """Show the line about calls, with their numbers; a click opens the first cards."""
        cell = calls.execution.cell
        replayed = sum(bool(call.recorded) for call in ended.calls)
        numbers: dict[str, Any] = {
            "taped": len(ended.calls),
            "cell_id": cell.id,
            RunNumbers.TAPE: list(calls.record_ids),
        }
        if replayed and replayed == len(ended.calls):
            numbers |= summarize_run(runs[0], recorded=False)
            numbers |= {"run": ended.calls[0].recorded, "replayed": True}
        bundle: dict[str, Any] = {"text/plain": ""}
        if not is_unshown(cell):
            from ...view import make_folded_bundle

            line = CountedCalls(runs, replayed, ended.misses).describe()
            cards = [run.log for run in runs[:_MOST_CARDS]]
            bundle = make_folded_bundle(line, cards, ended.misses)
        publish_display(bundle, {METADATA_KEY: numbers}, {}, False)
