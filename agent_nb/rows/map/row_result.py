"""Reads the result of a row from the events of its run.

A live run, its record in a store and its record in a notebook are read by the same code, and give
the same result apart from `origin` and `attempts`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ...agent import InvalidOutput, OutputType, find_answer
from ...errors import UsageError
from ...events import Counts, End, Error, Event, Interrupt, Metric, answer_text
from ...record import Record, events_of
from .row import Origin, Row, RowResult, Status

LARGEST_FIGURE = 1e12  # in an Overhead; one with a larger number is malformed
# status of a run -> status of its row; all others become "interrupted"
_STATUSES: dict[str, Status] = {"ok": "ok", "error": "error", "limit": "limit"}


class Overhead(msgspec.Struct, frozen=True, omit_defaults=True):
    """The waits of a row's last run, and the use of its earlier runs: a record's field `beside`.

    `waited`: seconds in which the last run waited in a queue. `broken`: how many earlier runs broke
    off; `input`, `written` (tokens) and `cost` (dollars, None: unknown) are their use.
    """

    waited: float = 0.0
    broken: int = 0
    input: int = 0
    written: int = 0
    cost: float | None = None

    def add_broken(self, result: RowResult) -> Overhead:
        """Return the overhead after one more run, which broke off with this `result`.

        Tokens and cost of a result already include what the earlier runs used.
        """
        return Overhead(0.0, self.broken + 1, result.input, result.written, result.cost)


def read_overhead(record: Record) -> Overhead:
    """Return the overhead in a record; an empty one if it is malformed: records are untrusted."""
    try:
        beside = msgspec.convert(record.get("beside", {}), Overhead, strict=False)
    except (msgspec.ValidationError, TypeError, ValueError, RecursionError):
        return Overhead()
    figures = (beside.waited, beside.broken, beside.input, beside.written, beside.cost or 0.0)
    return beside if all(0 <= figure <= LARGEST_FIGURE for figure in figures) else Overhead()


def recorded_result(
    record: Record, row: Row, *, origin: Origin, attempts: int | None = None
) -> RowResult:
    """Return the result of a row from the record of its last run; see `result_of`."""
    return result_of(
        events_of(record), row, origin=origin, attempts=attempts, beside=read_overhead(record)
    )


def result_of(
    log: Sequence[Event],
    row: Row,
    *,
    attempts: int | None = None,
    origin: Origin = "live",
    beside: Overhead | None = None,
) -> RowResult:
    """Return the result of a row from the events of its last run, which has ended.

    `attempts`: how often all kernels asked the row (None: as often as this log and `beside` say).
    `beside`: the overhead in the record (None: none).
    """
    beside = beside or Overhead()
    status = _STATUSES.get(End.status_in(log), "interrupted")
    typed = find_answer(log)
    usage = next((e.total for e in reversed(log) if isinstance(e, Metric) and not e.span), Counts())
    kind, error = ("", "") if status == "ok" else _find_reason(log, status)
    costs = [cost for cost in (usage.cost, beside.cost) if cost is not None]
    return row.result(
        status,
        answer=answer_text(log),
        output=None if typed is None else typed[1],
        kind=kind,
        error=error,
        input=usage.input + beside.input,
        written=usage.output + beside.written,
        cost=sum(costs) if costs else None,
        seconds=round(max(log[-1].ts - log[0].ts - beside.waited, 0.0), 3) if log else 0.0,
        run=log[0].run if log else "",
        attempts=1 + beside.broken if attempts is None else attempts,
        origin=origin,
    )


class Finished(RowResult, frozen=True, kw_only=True):
    """The result of a row for a loop over the map, with the `values` of its columns in the data.

    `output` is a value of the answer's type, not JSON.
    """

    values: Mapping[Any, Any] = {}

    @property
    def place(self) -> int:
        """The position of the row in the data, counted from 0."""
        return self.position


def finish_row(result: RowResult, kind: OutputType | None, values: Mapping[Any, Any]) -> Finished:
    """Return a result as `Finished`; `kind`: the type of the answer (None: text)."""
    fields = {**msgspec.structs.asdict(result), "output": typed_output(result, kind)}
    return Finished(**fields, values=values)


def typed_output(result: RowResult, kind: OutputType | None) -> Any:
    """Return the answer as a value of the type `kind`; None without a type, or of a failed row."""
    if kind is None or result.status != "ok":
        return None
    try:
        return kind.validate(result.output).value
    except InvalidOutput:  # the record holds an answer of another type: return its JSON
        return result.output


def failed_result(row: Row, fault: Exception) -> RowResult:
    """Return the result of a row that an exception kept from being asked to the end."""
    kind, error = "internal", f"{type(fault).__name__}: {fault}"
    if isinstance(fault, UsageError):
        kind, error = "usage", str(fault)
    return row.result("error", kind=kind, error=error, attempts=1)


def _find_reason(log: Sequence[Event], status: Status) -> tuple[str, str]:
    """Return (code, message) of why a run did not end `ok`."""
    for event in reversed(log):
        if event.span:
            continue
        if isinstance(event, Error) and status == "error":
            return event.code, event.message
        if isinstance(event, Interrupt) and status != "error":
            return event.reason, event.detail
    return status, ""
