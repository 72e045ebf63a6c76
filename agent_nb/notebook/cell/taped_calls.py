"""The model calls of other libraries in one execution of a cell, until they are recorded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import msgspec

from ...agent import Run
from ...events import EventLog
from ...models import collect_secrets
from ...record import Journal, log_of
from ...tape import CallJournal, Exchange, make_logs
from .executions import Execution
from .taped_line import CountedCalls, LiveLine
from .taped_records import ServedRecords


class TapedCall(msgspec.Struct):
    """A model call of a cell, redacted; `recorded` is the id of the record that it was served."""

    exchange: Exchange
    began: float  # epoch seconds
    ended: float
    answered: float = 0.0  # when the head of its answer came
    recorded: str = ""  # "": it was sent
    run: str = ""  # the id of the run whose journal it has


class EndedCalls(msgspec.Struct, frozen=True):
    """Calls that have ended, the last attempt of each; `misses`: why others have no record."""

    calls: list[TapedCall]
    misses: list[str]


class CellCalls:
    """The model calls of one execution of a cell that are not yet recorded.

    `served`: the records that answer them. `used`: the ids of those that have answered. `mode`: of
    `--rerun`, when the first call came.
    """

    def __init__(self, execution: Execution, served: ServedRecords, mode: str) -> None:
        self.execution, self.served, self.mode = execution, served, mode
        self.used: set[str] = set()
        self.record_ids: list[str] = []  # of its calls so far
        self.open = 0  # calls that go on, or whose answer is read
        self.ended: list[TapedCall] = []
        self.misses: list[str] = []  # why calls have no record
        self.ordinal = 0  # of the last record
        self.journals: list[CallJournal] = []  # of the calls that were sent
        self.line = LiveLine(execution.cell, execution.id, self._count_calls)

    @cached_property
    def secrets(self) -> Mapping[str, str]:
        """The secret values that were known at the first call, by name."""
        return collect_secrets()

    @property
    def is_live(self) -> bool:
        """Whether no record can answer a call of this execution."""
        return self.mode == "live" or (self.mode == "auto" and self.served.is_empty)

    def take_ended(self) -> EndedCalls:
        """Return the calls that have ended since the last call of this method."""
        ended = EndedCalls(drop_retried(self.ended), self.misses)
        self.ended, self.misses = [], []
        return ended

    def make_logs(self, calls: Sequence[TapedCall]) -> list[EventLog]:
        """Return the logs of calls; if all were served from records, those of the records."""
        if all(call.recorded for call in calls):
            return [log_of(self.served.records[call.recorded]) for call in calls]
        return make_logs(calls)  # the results of tools stand in later requests, sent or served

    def _count_calls(self) -> CountedCalls:
        replayed = self.make_logs([call for call in self.ended if call.recorded])
        logs = [*replayed, *(journal.log for journal in self.journals)]
        runs = [Run(log, cell=self.execution.cell.id) for log in logs]
        return CountedCalls(runs, len(replayed), list(self.misses))


def drop_retried(calls: list[TapedCall]) -> list[TapedCall]:
    """Return the calls without those that were sent again, which count as attempts of the last.

    A library sends a request again once it has the head of an answer. So an equal request that
    began before is a call of its own, and each request repeats one answer at most.
    """
    # in the order of their beginnings: threads read the answers, and may end in another order
    calls = sorted(calls, key=lambda call: call.began)
    last_attempts: list[TapedCall] = []
    attempts = [1] * len(calls)  # more for a call that repeats an earlier one
    for number, call in enumerate(calls):
        later = range(number + 1, len(calls)) if call.exchange.response.is_retried else ()
        next_attempt = next(
            (
                n
                for n in later
                if attempts[n] == 1
                and calls[n].recorded == call.recorded
                and calls[n].began >= call.answered
                and calls[n].exchange.request == call.exchange.request
            ),
            None,
        )
        if next_attempt is None:
            # the exchange of a served call has the attempts of its record already
            most = max(attempts[number], call.exchange.attempts)
            call.exchange = msgspec.structs.replace(call.exchange, attempts=most)
            last_attempts.append(call)
            continue
        attempts[next_attempt] += attempts[number]
        if call.run:
            Journal.remove(call.run)
    return last_attempts
