"""The model calls of one execution of a cell, from their arrival until they are recorded.

Why apart from the tape: calls arrive in threads, and their records are made when the cell ends.

Rule: of a request that a server refused for a time (`retried`) and that was sent again, the last
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
from .taped_line import LiveLine
from .taped_records import ServedRecords


class TapedCall(msgspec.Struct, dict=True):
    """A model call of a cell, redacted; `recorded` is the id of the record that it was served."""

    exchange: Exchange
    began: float
    ended: float
    recorded: str = ""
    run: str = ""  # the id of the run whose journal it has

    @cached_property
    def log(self) -> EventLog:
        """The log of the call by itself, without what its tools returned."""
        return make_logs([(self.exchange, self.run, self.began, self.ended)])[0]


class CellCalls:
    """The model calls of one execution of a cell that are not yet recorded.

    `served`: the records that answer them. `used`: the ids of those that have answered. `mode`: of
    `--rerun`, when the first call came.
    """

    def __init__(self, execution: Execution, served: ServedRecords, mode: str) -> None:
        self.execution, self.served, self.mode = execution, served, mode
        self.used: set[str] = set()
        self.ids: list[str] = []  # the records of its calls so far
        self.calls: list[TapedCall] = []
        self.misses: list[str] = []
        self.ordinal = 0  # of the last record
        self.open = 0  # calls that go on
        self.ending = 0  # calls whose answer has come and is read
        self.journals: list[CallJournal] = []  # of the calls that were sent
        self.line = LiveLine(execution.cell, execution.id, self._list_calls)

    def _list_calls(self) -> tuple[list[Run], int, list[str]]:
        """Return the runs of all calls, how many were replayed, and what the record lacked."""
        replayed = [call.log for call in self.calls if call.recorded]
        logs = [*replayed, *(journal.log for journal in self.journals)]
        cell = self.execution.cell.id
        return [Run(log, cell=cell) for log in logs], len(replayed), list(self.misses)


def drop_retried(calls: list[TapedCall]) -> list[TapedCall]:
    """Return the calls without those that were refused for a time and sent again."""
    left: list[TapedCall] = []
    attempts: list[int] = [1] * len(calls)
    for number, call in enumerate(calls):
        again = (
            n
            for n in range(number + 1, len(calls))
            if calls[n].exchange.request == call.exchange.request
        )
        if call.exchange.response.retried and (later := next(again, 0)):
            attempts[later] += attempts[number]
            if call.run:
                Journal.remove(call.run)
        else:
            call.exchange = msgspec.structs.replace(
                call.exchange, attempts=max(attempts[number], call.exchange.attempts)
            )
            left.append(call)
    return left
