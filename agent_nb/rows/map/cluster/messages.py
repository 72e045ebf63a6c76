"""The messages of client and worker about one row, as JSON, and the client's side of them.

Why JSON: a pickle runs code where it is read, and carries every object that it refers to.

Rules
- The version is read first, on its own: a message of another version gives a clear error.
- The client redacts every message that it sends, and every answer that it receives: a worker does
  not know the secrets of the client.
- The client checks a typed answer again, against the type itself: the worker may know the schema
  only. If the type refuses the answer, the row becomes an error, in its record too.
"""

from __future__ import annotations

import secrets
from typing import Any, TypeVar

import msgspec

from .... import events
from ....agent import InvalidOutput, OutputType
from ....events import Event, EventLog, event_from, read_answer_type, to_builtins
from ....host import __version__
from ....record import Record, events_of, run_record
from ....wire import Redaction, loads
from ..asking import Answered
from ..row import Row, RowResult
from .spec import AgentSpec

T = TypeVar("T")


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """One row to ask. `map` names this execution of a map, `ticket` this attempt at the row.

    `rpm`: requests per minute of this worker (0: no limit). `issue` counts the changes of shares,
    so that a late message does not restore an old share.
    """

    version: str = __version__
    map: str
    ticket: str
    spec: AgentSpec
    row: Row
    rpm: int = 0
    issue: int = 0


class Returned(Answered, frozen=True, kw_only=True):
    """An answered row as a worker returns it."""

    version: str = __version__


class VersionSkew(ValueError):  # noqa: N818  (it names what is wrong between two messages)
    """A message of another version of this package; its text is that version."""


class _Head(msgspec.Struct, frozen=True):
    version: str = ""


def read_message(message: bytes, kind: type[T]) -> T:
    """Return a message of this version. Raises VersionSkew, and DecodeError for other bytes."""
    if (version := msgspec.json.decode(message, type=_Head).version) != __version__:
        raise VersionSkew(version or "unknown")
    return msgspec.json.decode(message, type=kind)


class MapMessages:
    """The messages of one execution of a map, which `name` names. `output`: the type of answers."""

    def __init__(self, spec: AgentSpec, redaction: Redaction, output: OutputType | None) -> None:
        self.name = secrets.token_hex(8)
        self._spec, self._redaction, self._output = spec, redaction, output

    def write(self, row: Row, ticket: str, *, rpm: int, issue: int) -> bytes:
        """Return the message that asks a row; see `Work`."""
        row = msgspec.convert(self._redaction.value(msgspec.to_builtins(row)), Row)
        names = {"map": self.name, "ticket": ticket}
        return msgspec.json.encode(Work(**names, spec=self._spec, row=row, rpm=rpm, issue=issue))

    def read(self, row: Row, message: bytes, attempts: int) -> Answered:
        """Return the answer to a row that was asked `attempts` times. Raises nothing."""
        try:
            returned = read_message(message, Returned)
        except VersionSkew as skew:
            error = f"A worker has jupyter-agent-nb {skew}; here it is {__version__}. Install the same version on both sides."
            return Answered(row.result("error", kind="version", error=error, attempts=attempts))
        except (msgspec.DecodeError, RecursionError) as fault:
            error = f"A worker did not return a result: {fault}."
            return Answered(row.result("error", kind="worker", error=error, attempts=attempts))
        fields = self._redaction.value(msgspec.to_builtins(returned.result))
        fields |= {"position": row.position, "key": row.key, "attempts": attempts}
        result, record = msgspec.convert(fields, RowResult), returned.record
        if record is not None:
            result, record = self._check_answer(result, record)
        if result.kind == "no_key":
            error = f"{result.error} Workers read keys from their own environment: set it there, before they start."
            result = msgspec.structs.replace(result, error=error)
        return Answered(result, record)

    def _check_answer(self, result: RowResult, record: Record) -> tuple[RowResult, Record]:
        """Return the result, its answer checked against the type, and the record, redacted."""
        received = events_of(record)
        log = [event_from(self._redaction.payload(to_builtins(event))) for event in received]
        if self._output is not None and result.status == "ok":
            try:
                text = self._output.validate(result.output).text
            except InvalidOutput as fault:
                error = f"{fault}\nThe worker knew the schema of the type, not its own checks. Define the type in a module that workers can import."
                code = InvalidOutput.CODE
                result = msgspec.structs.replace(
                    result, status="error", kind=code, error=error, output=None
                )
                # a new `End` replaces the last event; without `extra` the answer has no type
                log = [_change_answer(event, extra=None) for event in log[:-1]]
                log += [events.Error(code=code, message=error), events.End(status="error")]
            else:
                if text != result.answer:
                    # `chunks` are the lengths of the pieces of the old text
                    log = [_change_answer(event, content=text, chunks="") for event in log]
                result = msgspec.structs.replace(result, output=loads(text), answer=text)
        if log != received:  # an unchanged record stays as the worker packed it
            record = run_record(EventLog.of_events(log), beside=record.get("beside"))
        return result, record


def _change_answer(event: Event, **fields: Any) -> Event:
    """Return an event with other fields if it is a typed answer of the run itself."""
    if isinstance(event, events.Respond) and read_answer_type(event) and not event.span:
        return msgspec.structs.replace(event, **fields)
    return event
