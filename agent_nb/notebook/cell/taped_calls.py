"""The model calls of one execution of a cell, from their arrival until they are recorded.

Why apart from the tape: calls arrive in threads, and their records are made when the cell ends.

Rule: of a request that a server refused for a time (`is_retried`) and that was sent again, the last
attempt counts.
"""

from __future__ import annotations

from functools import cached_property

import msgspec

from ...agent import Run
from ...events import EventLog
from ...record import Journal
from ...tape import CallJournal, Exchange, make_logs
from .executions import Execution
from .taped_line import CountedCalls, LiveLine
from .taped_records import ServedRecords


class TapedCall(msgspec.Struct, dict=True):
    """A model call of a cell, redacted; `recorded` is the id of the record that it was served."""

    exchange: Exchange
    began: float  # epoch seconds
    ended: float
    recorded: str = ""  # "": it was sent
    run: str = ""  # the id of the run whose journal it has

    @cached_property
    def log(self) -> EventLog:
        """The log of the call by itself, without what its tools returned."""
        return make_logs([self])[0]


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
        self.open = 0  # calls that go on
        self.ending = 0  # calls whose answer has come and is read
        self.ended: list[TapedCall] = []
        self.misses: list[str] = []  # why calls have no record
        self.ordinal = 0  # of the last record
        self.journals: list[CallJournal] = []  # of the calls that were sent
        self.line = LiveLine(execution.cell, execution.id, self._count_calls)

    @property
    def is_live(self) -> bool:
        """Whether no record can answer a call of this execution."""
        return self.mode == "live" or (self.mode == "auto" and self.served.is_empty)

    def take_ended(self) -> EndedCalls:
        """Return the calls that have ended since the last call of this method."""
        ended = EndedCalls(drop_retried(self.ended), self.misses)
        self.ended, self.misses = [], []
        return ended

    def _count_calls(self) -> CountedCalls:
        replayed = [call.log for call in self.ended if call.recorded]
        logs = [*replayed, *(journal.log for journal in self.journals)]
        cell = self.execution.cell.id
        runs = [Run(log, cell=cell) for log in logs]
        return CountedCalls(runs, len(replayed), list(self.misses))


def drop_retried(calls: list[TapedCall]) -> list[TapedCall]:
    """Return the calls without those that were sent again, which count as attempts of the last."""
    # in the order of their beginnings: threads read the answers, and may end in another order
    calls = sorted(calls, key=lambda call: call.began)
    left: list[TapedCall] = []
    attempts = [1] * len(calls)
    for number, call in enumerate(calls):
        again = _find_again(calls, number) if call.exchange.response.is_retried else None
        if again is None:
            # the exchange of a served call has the attempts of its record already
            most = max(attempts[number], call.exchange.attempts)
            call.exchange = msgspec.structs.replace(call.exchange, attempts=most)
            left.append(call)
            continue
        attempts[again] += attempts[number]
        if call.run:
            Journal.remove(call.run)
    return left


def _find_again(calls: list[TapedCall], number: int) -> int | None:
    """Return the number of the next call with the same request, None if it was not sent again."""
    request = calls[number].exchange.request
    later = range(number + 1, len(calls))
    return next((n for n in later if calls[n].exchange.request == request), None)
