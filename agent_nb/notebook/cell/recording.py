"""The records of runs that Python code begins: `await agent(…)`, `async for`, `run_sync`.

Why apart from the display: a run is recorded whether or not it is shown; without a record a test
would have to call the model.

Rules
- Where nothing runs live (`Launch.why_not_live`), a run plays the first unplayed record of equal
  inputs, or is refused; only a scripted model runs there, if its cell has no record.
- A run that a repeated tool call begins plays a record of that call.
"""

from __future__ import annotations

import contextvars
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...agent import Changes, RecordedTurns, ReplayStrictness, Run
from ...errors import AgentError, NotReplayed, UsageError
from ...events import Event, EventLog
from ...host import read_launch
from ...models import collect_secrets
from ...record import (
    METADATA_KEY,
    RECORD_MIME,
    CellRecords,
    Digests,
    Provenance,
    Record,
    RunInputs,
    UserKey,
    events_of,
    is_intact,
    run_record,
)
from ...tools import Toolset, current_call
from ...wire import redact_value
from ..session import find_session
from . import executions
from .map_inputs import explain_unplayable, is_map_stream, unreplayed_error, use_known_rows
from .publish import publish_display
from .rerun import changed_variables_error, replay_strictness, rerun_mode, trusted_records
from .summary import summarize_replay, summarize_run

if TYPE_CHECKING:
    from ...agent import Stream


class Recorder:
    """Makes the record of one run of Python code, which is about to begin.

    The constructor decides before the run begins: where nothing runs live, the stream plays a
    record or is refused; elsewhere a map reuses the rows that records answer.
    """

    def __init__(self, stream: Stream, shell: Any) -> None:
        self.session = find_session(shell)
        executions_here = executions.executions_of(shell)
        self.library = self.session.library if self.session is not None else executions_here.library
        self.execution = executions_here.current()
        self.cell = self.execution.cell
        self._with_cards = False
        self._shell = shell
        self._stream = stream
        self._call = current_call()
        self._ordinal = self.execution.count_run()
        self._record: Record | None = None  # the record that is played
        # scripted: a script answers, since the cell has no record; refused: nothing may answer
        self._scripted = self._refused = False
        # of a refused run: how it differs from the next record that could have matched
        self._differences: list[str] = []
        # the run may end in another context, and its record belongs in this cell's output
        self._context = contextvars.copy_context()
        if read_launch().why_not_live:
            self._play()
        elif is_map_stream(stream):
            live, trust = rerun_mode("", self.cell) == "live", trusted_records(self.cell)
            records = self.library.rank_records(self.cell)
            use_known_rows(stream, records, live=live, trust=trust)
        stream.log.subscribe(self._publish_at_end)

    def leave_to_cards(self) -> None:
        """Let the cell that awaits the run publish the record with its cards."""
        self._with_cards = True

    def finish(self, log: EventLog) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the record and the numbers (`summary`) of an ended run; keep a new record."""
        numbers = {**summarize_run(Run(log, cell=self.cell.id)), "ordinal": self._ordinal}
        if self.cell.id:  # the cell may have ended before the run
            numbers["cell_id"] = self.cell.id
        if self._scripted:
            numbers["scripted"] = True
        if self._differences:
            numbers["differences"] = self._differences
        if self._record is not None:
            if not self._refused:
                numbers |= summarize_replay(self._stream.played)
            return dict(self._record), numbers
        provenance = Provenance(
            cell=self.cell.id,
            source=self.cell.text_hash,
            conversation=Provenance.NO_CONVERSATION,
            execution=self.execution.id,
            ordinal=self._ordinal,
            call=self._call,
        )
        unsigned = run_record(log, provenance)
        if self.session is not None:
            record = self.session.sign(unsigned)
        else:
            record = UserKey.read().sign(unsigned)
        self.library.keep_record(self.cell.key, record)
        return record, numbers

    def _publish_at_end(self, event: Event) -> None:
        if event.type == "end" and not event.span and not self._with_cards:
            self._context.run(self._publish)

    def _publish(self) -> None:
        record, numbers = self.finish(self._stream.log)
        # without cards a record shows nothing
        publish_display({RECORD_MIME: record}, {METADATA_KEY: numbers}, {}, False)

    def _play(self) -> None:
        """Play a record instead of the run, or refuse the run."""
        request = self._stream.request
        assert request is not None
        records = self.library.rank_records(self.cell)
        try:
            candidates = CellRecords(records).select_begun(self._call)
            self._record = self._take_record(candidates, request.inputs.digests)
            if self._record is not None:
                self._play_record(self._record, request.tools)
            elif not records and request.is_scripted():
                self._scripted = True
            else:
                raise self._unreplayable_error(candidates, request.inputs)
        except AgentError as fault:
            self._refused = True
            self._differences = list(getattr(fault, "differences", ()))
            self._stream.refuse(str(fault))

    def _play_record(self, record: Record, tools: Toolset) -> None:
        """Play a record with the tools of the run. Raises UsageError or NotReplayed."""
        turns = RecordedTurns.of(record, key=UserKey.read(), trust=trusted_records(self.cell))
        if not self.cell.stdin and turns.foreign_calls(tools):
            raise UsageError(RecordedTurns.NOT_TRUSTED)
        if reason := explain_unplayable(self._stream, turns):
            raise NotReplayed(f"{reason} {read_launch().why_not_live}")
        changes = Changes.since(turns, tools, self._shell.user_ns)
        if changes.used:
            raise changed_variables_error(changes)
        self._stream.play(turns, replay_strictness(self.cell) or ReplayStrictness())

    def _take_record(
        self, candidates: Sequence[Record], inputs: Mapping[str, str]
    ) -> Record | None:
        """Return the first intact, unplayed record with these inputs, marked as played, or None.

        The lock of the execution is held meanwhile: runs of one cell may begin on several threads.
        """
        played = self.execution.played
        with self.execution.lock:
            for record in candidates:
                is_next = str(record["id"]) not in played and Digests.read_record(record) == inputs
                if is_next and is_intact(record):
                    played.add(str(record["id"]))
                    return record
        return None

    def _unreplayable_error(self, candidates: Sequence[Record], inputs: RunInputs) -> NotReplayed:
        unplayed = [r for r in candidates if str(r["id"]) not in self.execution.played]
        recorded = Digests.read_record(unplayed[0]) if unplayed else None
        differences: Sequence[str] = ()
        if recorded is not None:
            names, events = inputs.digests.list_changes(recorded), events_of(unplayed[0])
            changes = ", ".join(inputs.name_inputs(events, names)) or "the record was changed"
            cause = f"the run differs from its record ({changes})"
            if names:
                described = inputs.describe_differences(events, names)
                differences = redact_value(described, secrets=collect_secrets())
        elif candidates:
            cause = f"all {len(candidates)} recorded runs of this cell are played already"
        else:
            cause = "this cell has no record of the run"
        advice = (self.library.finder.advice(self.cell), read_launch().why_not_live)
        reason = " ".join(filter(None, (f"Nothing to replay: {cause}.", *advice)))
        error = NotReplayed(reason, differences)
        return unreplayed_error(self._stream, unplayed, error, read_launch().why_not_live)


def begin_recording(stream: Stream) -> Recorder | None:
    """Return the recorder of a run that begins now, None outside IPython; from any thread."""
    from IPython.core.getipython import get_ipython
    from IPython.core.interactiveshell import InteractiveShell

    shell = get_ipython() or (
        InteractiveShell.instance() if InteractiveShell.initialized() else None
    )
    return None if shell is None else Recorder(stream, shell)
