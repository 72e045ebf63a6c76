"""The client's side of the messages about rows: what is sent, and what comes back.

Rules
- Nothing is sent that the client's redaction has not seen, and nothing that comes back is kept
  before it has: a worker does not know the secrets of the client.
- A typed answer is checked once more, against the type itself: the worker may know its schema only.
  An answer that the type refuses makes the row an error, in its record too.
"""

from __future__ import annotations

import secrets
from typing import Any

import msgspec

from .... import events
from ....agent import InvalidOutput, OutputType
from ....events import Event, EventLog, event_from, read_answer_type, to_builtins
from ....host import __version__
from ....record import Record, events_of, run_record
from ....wire import Redaction, loads
from ..asking import Answered
from ..row import Row, RowResult
from .spec import Spec
from .work import Returned, Skew, Work, encode, read_returned

LOST = "worker_lost"  # the kind of error of a row whose worker went away


class Sending:
    """The messages of one execution of a map, which `name` names."""

    def __init__(self, spec: Spec, redaction: Redaction, output: OutputType | None) -> None:
        self.name = secrets.token_hex(8)
        self._spec = spec
        self._redaction = redaction
        self._output = output

    def message(self, row: Row, ticket: str, **more: Any) -> bytes:
        """Return the message that asks a row; `more`: further fields of `Work`."""
        plain = self._redaction.value(msgspec.to_builtins(row))
        row = msgspec.convert(plain, Row)
        return encode(Work(map=self.name, ticket=ticket, spec=self._spec, row=row, **more))

    def received(self, row: Row, message: bytes, attempts: int) -> Answered:
        """Return what came of a row that was asked `attempts` times."""
        try:
            returned = read_returned(message)
        except Skew as skew:
            return fault_of(
                row,
                "version",
                f"A worker has jupyter-agent-nb {skew.version}; here it is {__version__}. Install the same version on both sides.",
                attempts,
            )
        except msgspec.DecodeError as fault:
            return fault_of(row, "worker", f"A worker did not return a result: {fault}.", attempts)
        plain = self._redaction.value(msgspec.to_builtins(returned.result))
        result = msgspec.structs.replace(
            msgspec.convert(plain, RowResult), position=row.position, key=row.key, attempts=attempts
        )
        if returned.record is None:
            return Answered(_explained(result), None)
        result, record = self._checked(result, self._clean(returned))
        return Answered(_explained(result), record)

    def _clean(self, returned: Returned) -> Record:
        """Return the record without secrets that only the client knows."""
        record = returned.record or {}
        if self._redaction.value(record) == record:
            return record
        log = [event_from(self._redaction.payload(to_builtins(e))) for e in events_of(record)]
        return run_record(EventLog.of_events(log))

    def _checked(self, result: RowResult, record: Record) -> tuple[RowResult, Record]:
        """Return result and record with the typed answer as the type itself writes it."""
        if self._output is None or result.status != "ok":
            return result, record
        try:
            answer = self._output.validate(result.output)
        except InvalidOutput as fault:
            message = f"{fault}\nThe worker knew the schema of the type, not its own checks. Define the type in a module that workers can import."
            result = msgspec.structs.replace(
                result, status="error", kind=InvalidOutput.CODE, error=message, output=None
            )
            log = events_of(record)
            ends = [
                events.Error(code=InvalidOutput.CODE, message=message),
                events.End(status="error"),
            ]
            return result, run_record(EventLog.of_events([*_untyped(log[:-1]), *ends]))
        document = loads(answer.text)
        if document == result.output and answer.text == result.answer:
            return result, record
        log = [_rewritten(event, answer.text) for event in events_of(record)]
        result = msgspec.structs.replace(result, output=document, answer=answer.text)
        return result, run_record(EventLog.of_events(log))


def fault_of(row: Row, kind: str, message: str, attempts: int) -> Answered:
    """Return that a row failed outside its run."""
    return Answered(
        RowResult(
            position=row.position,
            key=row.key,
            status="error",
            kind=kind,
            error=message,
            attempts=attempts,
        )
    )


def _explained(result: RowResult) -> RowResult:
    """Return a result whose error says that a key is missing in the worker, not here."""
    if result.kind != "no_key":
        return result
    message = f"{result.error} Workers read keys from their own environment: set it there, before they start."
    return msgspec.structs.replace(result, error=message)


def _rewritten(event: Event, text: str) -> Event:
    marked = isinstance(event, events.Respond) and read_answer_type(event) and not event.span
    return msgspec.structs.replace(event, content=text, chunks="") if marked else event


def _untyped(log: list[Event]) -> list[Event]:
    return [
        msgspec.structs.replace(event, extra=None)
        if isinstance(event, events.Respond) and read_answer_type(event) and not event.span
        else event
        for event in log
    ]
