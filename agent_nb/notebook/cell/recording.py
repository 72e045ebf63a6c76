"""The records of runs that Python code begins: `await agent(…)`, `async for`, `run_sync` in a
thread.

Why apart from the display: a run is recorded whether or not it is shown; without a record a test
would have to call the model.

Rules
- A record names the cell execution that began the run and its place among the runs of that
  execution (`executions`).
- It is left in the cell's output when the run ends: with the cards if the cell shows them, else
  alone.
- Offline (`models.offline`) a run plays a record of the newest execution: the one with the lowest
  place among those with equal inputs that were not played yet. A run that a repeated tool call
  begins plays a record of that call. Old records without an execution count in the order of their
  start.
- A run without a matching record ends in an error. A scripted model runs if its cell has no record.
"""

from __future__ import annotations

import contextvars
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...agent import Changes, ReplayStrictness, Run, Tape
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
    events_of,
    is_intact,
    read_start_time,
    run_record,
    sign_record,
    user_key,
)
from ...tools import current_call
from ...wire import redact_value
from . import executions
from .mapped import explain_unplayable, take_up, unreplayed_error
from .publish import publish_display
from .rerun import changed_variables_error, replay_strictness, rerun_mode, trusted_records
from .summary import summarize_replay, summarize_run

if TYPE_CHECKING:
    from ...agent import Stream


class Recorder:
    """Keeps the record of one run that is about to begin."""

    def __init__(self, stream: Stream, shell: Any) -> None:
        ours = shell.magics_manager.registry.get("AgentMagics")
        self.session = ours.session if ours is not None else None
        executions_here = executions.executions_of(shell)
        self.library = self.session.library if self.session is not None else executions_here.library
        self.execution = executions_here.current()
        self.cell = self.execution.cell
        self._with_cards = False
        self._shell = shell
        self._stream = stream
        self._call = current_call()
        self._ordinal = self.execution.ordinal()
        self._record: Record | None = None  # the played one
        self._scripted = self._refused = False
        self._differences: list[str] = []  # from the next record that could have matched
        self._context = contextvars.copy_context()
        if read_launch().why_not_live:
            self._play()
        else:
            live, trust = rerun_mode("", self.cell) == "live", trusted_records(self.cell)
            take_up(stream, self._earlier, live=live, trust=trust)
        stream.log.subscribe(self._hear)

    @property
    def _earlier(self) -> Iterator[Record]:
        """The records of the cell, looked up when a map wants them."""
        yield from self.library.of(self.cell)

    def leave_to_cards(self) -> None:
        """Leave the record to the cell that awaits the run, with its cards."""
        self._with_cards = True

    def leave(self, log: EventLog) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the record and the numbers of an ended run; keep the record for this kernel."""
        run = Run(log, cell=self.cell.id)
        differences = {"differences": self._differences} if self._differences else {}
        if self._record is not None:
            how = differences if self._refused else summarize_replay(self._stream.played)
            return dict(self._record), {**summarize_run(run), **self._place, **how}
        unsigned = run_record(
            log,
            Provenance(
                cell=self.cell.id,
                source=self.execution.source,
                conversation=Provenance.NO_CONVERSATION,
                execution=self.execution.id,
                ordinal=self._ordinal,
                call=self._call,
            ),
        )
        record = (
            self.session.sign(unsigned)
            if self.session is not None
            else sign_record(unsigned, user_key())
        )
        self.library.keep(self.cell.key, record)
        scripted = {"scripted": True} if self._scripted else {}
        return record, {**summarize_run(run), **self._place, **scripted, **differences}

    @property
    def _place(self) -> dict[str, Any]:
        """The cell and the place of the run in it; the cell may end before the run."""
        return {"ordinal": self._ordinal, **({"cell_id": self.cell.id} if self.cell.id else {})}

    def _hear(self, event: Event) -> None:
        if event.type == "end" and not event.span and not self._with_cards:
            self._context.run(self._publish)

    def _publish(self) -> None:
        record, numbers = self.leave(self._stream.log)
        publish_display(
            {RECORD_MIME: record}, {METADATA_KEY: numbers}, {}, False
        )  # alone a record shows nothing

    def _play(self) -> None:
        """Play a record instead of the run, or refuse the run."""
        request = self._stream.request
        assert request is not None
        listed = self.library.of(self.cell)
        try:
            self._record = self._take(
                select_begun_records(listed, self._call), request.inputs.digests
            )
            if self._record is None and listed:
                raise self._nothing(select_begun_records(listed, self._call), request.inputs)
            if self._record is not None:
                tape = self._tape(self._record)
                if reason := explain_unplayable(self._stream, tape):
                    raise NotReplayed(f"{reason} {read_launch().why_not_live}")
                changes = Changes.since(tape, request.tools, self._shell.user_ns)
                if changes.used:
                    raise changed_variables_error(changes)
                self._stream.play(tape, replay_strictness(self.cell) or ReplayStrictness())
            elif request.scripted():
                self._scripted = True
            else:
                raise self._nothing([], request.inputs)
        except AgentError as fault:
            self._refused = True
            self._differences = list(getattr(fault, "differences", ()))
            self._stream.refuse(str(fault))

    def _take(self, listed: Sequence[Record], inputs: Mapping[str, str]) -> Record | None:
        with self.execution.lock:
            record = next(
                (
                    r
                    for r in listed
                    if str(r["id"]) not in self.execution.played
                    and Digests.read_record(r) == inputs
                    and is_intact(r)
                ),
                None,
            )
            if record is not None:
                self.execution.played.add(str(record["id"]))
        return record

    def _tape(self, record: Record) -> Tape:
        tape = Tape.of(record, key=user_key(), trust=trusted_records(self.cell))
        assert self._stream.request is not None
        if not self.cell.stdin and tape.foreign(self._stream.request.tools):
            raise UsageError(Tape.NOT_TRUSTED)
        return tape

    def _nothing(self, listed: Sequence[Record], inputs: RunInputs) -> NotReplayed:
        """Return the error that says why no record is played."""
        left = [r for r in listed if str(r["id"]) not in self.execution.played]
        known = Digests.read_record(left[0]) if left else None
        names = inputs.digests.list_changes(known) if known is not None else ()
        if known is not None:
            changes = (
                ", ".join(inputs.name_inputs(events_of(left[0]), names)) or "the record was changed"
            )
            why = f"the run differs from its record ({changes})"
        elif listed:
            why = f"all {len(listed)} recorded runs of this cell are played already"
        else:
            why = "this cell has no record of the run"
        reason = " ".join(
            filter(
                None,
                [
                    f"Nothing to replay: {why}.",
                    self.library.unplaced(self.cell),
                    read_launch().why_not_live,
                ],
            )
        )
        error = NotReplayed(
            reason,
            redact_value(
                inputs.describe_differences(events_of(left[0]), names), secrets=collect_secrets()
            )
            if names
            else (),
        )
        return unreplayed_error(self._stream, left, error, read_launch().why_not_live)


def begin_recording(stream: Stream) -> Recorder | None:
    """Return the recorder of a run that begins now, None outside IPython."""
    from IPython.core.getipython import get_ipython
    from IPython.core.interactiveshell import InteractiveShell

    shell = get_ipython() or (
        InteractiveShell.instance() if InteractiveShell.initialized() else None
    )
    return None if shell is None else Recorder(stream, shell)


def select_begun_records(listed: Sequence[Record], call: str = "") -> list[Record]:
    """Return the records of runs begun by a cell's code, or by the `call` of a tool, in play order.

    `listed` are all records of the cell, the most relevant first.
    """
    ours = [
        r
        for r in listed
        if r.get("conversation") == Provenance.NO_CONVERSATION
        and Digests.read_record(r) is not None
        and r.get("call", "") == call
    ]
    if not ours or not ours[0].get("execution"):
        return CellRecords(r for r in ours if not r.get("execution")).oldest_first()
    first = ours[0]["execution"]
    return sorted((r for r in ours if r.get("execution") == first), key=_ordinal)


def _ordinal(record: Record) -> tuple[int, float]:
    number = record.get("ordinal")
    return (number if isinstance(number, int) else 0), read_start_time(record)
