"""All calls that a record can run again: by the run, its sub-agents and the records inside it.

Why one place: a signature must allow exactly the calls that were listed before it was made. All
code that lists, counts, trusts or replays recorded calls uses this file. What cannot be listed must
not be signed, so a record beyond `MOST_RECORDS` or `DEEPEST` is refused.

Rule: a call whose arguments were cut or redacted is listed too, but a replay does not run it again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import msgspec

from ..errors import UsageError
from ..events import Approval, Call, Event, Result, Started
from ..wire import encode_canonical
from .inner_records import InnerRecords
from .packing import digest_value
from .record import Record, events_of

RERUN = ("ok", "error")  # statuses of calls that may run again
MOST_RECORDS = 20_000  # records inside one record
DEEPEST = 8  # levels of records inside records
TOO_MANY = "it holds more records inside its records than can be listed"
TOO_DEEP = "the arguments of a call are nested too deeply to be listed"
_FORM = "calls 1"  # the version of the list of calls that `digest_all` covers
_NO_HOME = "/home/~"  # the home folder in that list, so that every reader gets the same digest


class RecordedCall(msgspec.Struct, frozen=True):
    """A call that can run again, and the arguments it runs with.

    `agents`: the sub-agents around it, as `a/b`. `rows`: the keys of the rows around it, outermost
    first.
    """

    call: Call
    args: dict[str, Any]
    agents: str = ""
    rows: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name of its tool."""
        return self.call.name

    @property
    def is_inside(self) -> bool:
        """Whether a row or a sub-agent made it, not the run itself."""
        return bool(self.rows or self.call.span)

    @staticmethod
    def list_all(log: Sequence[Event], home: str | None = None) -> list[RecordedCall]:
        """Return the calls of a run and of all records inside it that can run again.

        `home`: see `events_of`. Raises UsageError if there are too many.
        """
        logs = LogCalls.read_all(log, home)
        return [call for log_calls in logs for call in log_calls.list_repeatable()]

    @staticmethod
    def count_equal(calls: Iterable[RecordedCall]) -> list[tuple[RecordedCall, int]]:
        """Return (call, count) pairs in the order of the calls.

        Equal calls of rows are one pair. Other calls are never counted together.
        """
        first: dict[Any, RecordedCall] = {}
        count: dict[Any, int] = {}
        for position, call in enumerate(calls):
            key = (_canonical_text(call) if call.rows else "") or position
            first.setdefault(key, call)
            count[key] = count.get(key, 0) + 1
        return [(call, count[key]) for key, call in first.items()]

    @classmethod
    def digest_all(cls, record: Record) -> tuple[str, bool]:
        """Return a digest of the calls that a signer is shown, and whether any of them `is_inside`.

        The digest is the same on every machine. Raises UsageError for calls that cannot be listed.
        """
        calls = cls.list_all(events_of(record, home=_NO_HOME), _NO_HOME)
        listed: list[Any] = []
        for call, count in cls.count_equal(calls):
            if not (text := _canonical_text(call)):
                raise UsageError(f"The record cannot be read whole: {TOO_DEEP}.")
            listed.append([text, bool(call.rows), count])
        shown = f"{_FORM} {len(listed)} {digest_value(listed, 64)}"
        return shown, any(call.is_inside for call in calls)


class LogCalls:
    """What one log says about its calls: decisions, arguments, and the sub-agents around each.

    `rows`: the keys of the rows around the log, outermost first.
    """

    def __init__(self, log: Sequence[Event], rows: tuple[str, ...] = ()) -> None:
        self.log = log
        self.rows = rows

    @classmethod
    def read_all(cls, log: Sequence[Event], home: str | None = None) -> Iterator[LogCalls]:
        """Yield the log of a run, then the logs of all records inside it.

        `home`: see `events_of`. Raises UsageError if there are too many.
        """
        count = 0
        pending: list[tuple[tuple[str, ...], Sequence[Event] | Record]] = [((), log)]
        while pending:
            rows, source = pending.pop()
            events = events_of(source, home=home) if isinstance(source, Mapping) else source
            yield cls(events, rows)
            row_records = InnerRecords.of_log(events)
            count += len(row_records)
            if row_records and (count > MOST_RECORDS or len(rows) == DEEPEST):
                raise UsageError(f"The record cannot be read whole: {TOO_MANY}.")
            # `pop` takes the last one, so the rows come in the order of their keys
            pending += [
                ((*rows, key), row_records[key]) for key in sorted(row_records, reverse=True)
            ]

    @cached_property
    def decisions(self) -> dict[str, Approval]:
        """The last recorded decision about each call, by its id."""
        return {e.call_id: e for e in self.log if isinstance(e, Approval) and e.stage == "decided"}

    @cached_property
    def _calls_by_id(self) -> dict[str, Call]:
        """The calls by id, which is also the span of the sub-agent that a call began."""
        return {e.call_id: e for e in self.log if isinstance(e, Call) and e.span != e.call_id}

    def find_args(self, call: Call) -> dict[str, Any]:
        """Return the arguments a call ran with: the approved ones, else the model's."""
        decision = self.decisions.get(call.call_id)
        return decision.args if decision is not None and decision.args is not None else call.args

    def list_agents(self, span: str) -> list[Call]:
        """Return the calls that began the sub-agents in which `span` lies, outermost first."""
        agents: dict[str, Call] = {}  # by span, innermost first
        # a forged log may name spans in a circle
        while span and span not in agents and (call := self._calls_by_id.get(span)) is not None:
            agents[span] = call
            span = call.span
        return list(agents.values())[::-1]

    def list_repeatable(self) -> list[RecordedCall]:
        """Return the calls that can run again, sub-agents included, in start order."""
        results = {e.call_id: e.status for e in self.log if isinstance(e, Result)}
        calls = {
            e.call_id: e
            for e in self.log
            if isinstance(e, Call) and results.get(e.call_id) in RERUN
        }
        started = (e.call_id for e in self.log if isinstance(e, Started) and e.call_id in calls)
        listed: list[RecordedCall] = []
        for call in (calls[call_id] for call_id in dict.fromkeys(started)):
            agents = "/".join(agent.name for agent in self.list_agents(call.span))
            listed.append(RecordedCall(call, self.find_args(call), agents, self.rows))
        return listed


def _canonical_text(call: RecordedCall) -> str:
    """Return agents, name and arguments as canonical text, "" if that is not possible."""
    try:
        return encode_canonical([call.agents, call.name, call.args])
    except (ValueError, RecursionError):
        return ""
