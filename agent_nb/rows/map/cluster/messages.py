"""The messages about one row: the client sends a `RowRequest`, its worker returns a `RowResponse`.

They are JSON, because a pickle would run code where it is read. `MapMessages`, the client's side,
redacts what it sends and receives, since a worker does not know the secrets of the client. It also
checks a typed answer again, against the type itself, because the worker may know the schema only.
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
from ..asking import RowAnswer
from ..row import Row, RowResult
from .spec import AgentSpec

T = TypeVar("T")


class RowRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One row to ask. `map` names this execution of a map, `attempt_id` this attempt at the row.

    `rpm`: requests per minute of this worker (0: no limit). `shares_revision` (`Shares.revision`)
    keeps a late message from restoring an older limit.
    """

    version: str = __version__
    map: str
    attempt_id: str = msgspec.field(name="ticket")
    spec: AgentSpec
    row: Row
    rpm: int = 0
    shares_revision: int = msgspec.field(default=0, name="issue")


class RowResponse(RowAnswer, frozen=True, kw_only=True):
    """The answer to a row, as its worker returns it."""

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

    def write(self, row: Row, attempt_id: str, *, rpm: int, shares_revision: int) -> bytes:
        """Return the message that asks a row; see `RowRequest`."""
        row = msgspec.convert(self._redaction.value(msgspec.to_builtins(row)), Row)
        names = {"map": self.name, "attempt_id": attempt_id}
        return msgspec.json.encode(
            RowRequest(**names, spec=self._spec, row=row, rpm=rpm, shares_revision=shares_revision)
        )

    def read(self, row: Row, message: bytes, attempts: int) -> RowAnswer:
        """Return the answer to a row that was asked `attempts` times. Raises nothing."""
        try:
            returned = read_message(message, RowResponse)
        except VersionSkew as skew:
            error = f"A worker has jupyter-agent-nb {skew}; here it is {__version__}. Install the same version on both sides."
            return RowAnswer(row.result("error", kind="version", error=error, attempts=attempts))
        except (msgspec.DecodeError, RecursionError) as fault:
            error = f"A worker did not return a result: {fault}."
            return RowAnswer(row.result("error", kind="worker", error=error, attempts=attempts))
        fields = self._redaction.value(msgspec.to_builtins(returned.result))
        fields |= {"position": row.position, "key": row.key, "attempts": attempts}
        result, record = msgspec.convert(fields, RowResult), returned.record
        if record is not None:
            result, record = self._check_record(result, record)
        if result.kind == "no_key":
            error = f"{result.error} Workers read keys from their own environment: set it there, before they start."
            result = msgspec.structs.replace(result, error=error)
        return RowAnswer(result, record)

    def _check_record(self, result: RowResult, record: Record) -> tuple[RowResult, Record]:
        """Return result and record, with the record redacted and a typed answer checked."""
        received = events_of(record)
        log = [event_from(self._redaction.payload(to_builtins(event))) for event in received]
        if self._output is not None and result.status == "ok":
            result, log = _check_answer(self._output, result, log)
        if log != received:  # an unchanged record stays as the worker packed it
            record = run_record(EventLog.of_events(log), beside=record.get("beside"))
        return result, record


def _check_answer(
    output: OutputType, result: RowResult, log: list[Event]
) -> tuple[RowResult, list[Event]]:
    """Return result and events with the answer in the form of its type, or with its error."""
    try:
        text = output.validate(result.output).text
    except InvalidOutput as fault:
        code = InvalidOutput.CODE
        error = f"{fault}\nThe worker knew the schema of the type, not its own checks. Define the type in a module that workers can import."
        # a new `End` replaces the last event; without `extra` the answer has no type
        log = [_change_answer(event, extra=None) for event in log[:-1]]
        log += [events.Error(code=code, message=error), events.End(status="error")]
        changes = {"status": "error", "kind": code, "error": error, "output": None}
        return msgspec.structs.replace(result, **changes), log
    if text != result.answer:
        # `chunks` are the lengths of the pieces of the old text
        log = [_change_answer(event, content=text, chunks="") for event in log]
    return msgspec.structs.replace(result, output=loads(text), answer=text), log


def _change_answer(event: Event, **fields: Any) -> Event:
    """Return an event with other fields if it is a typed answer of the run itself."""
    if isinstance(event, events.Respond) and read_answer_type(event) and not event.span:
        return msgspec.structs.replace(event, **fields)
    return event
