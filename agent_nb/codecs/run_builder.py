"""Builds the events of one imported run: envelope, turns and notes.

Most formats have no turns, and all readers must count them alike: a turn begins with the first
output of the model, and with the first after a tool's result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec

from ..events import Call, Event, Extension, Respond, Result, Think
from .call_matching import Match
from .foreign_values import text_of
from .passthrough import note_difference

E = TypeVar("E", bound=Event)
Obj = dict[str, Any]
#: Type of a line -> the method of a reader that returns its events.
LineHandlers = dict[str, Callable[[Any, Obj], list[Event]]]
#: Kind of event -> the method of a writer that returns its lines.
EventHandlers = dict[type[Event], Callable[[Any, Any], list[Obj]]]
#: Kind of event -> the function that draws its line.
Drawings = dict[type[Event], Callable[[Any], Obj]]
_BY_MODEL = (Think, Respond, Call)  # events that the model writes


class RunBuilder:
    """Builds the events of one run: `line` that of a line, `derived` one that has no line.

    A line that becomes nothing else is an extension (`unknown`). `draw` returns the line that we
    would write for an event; `envelope` reads the fields that every event has (ts, path, span) from
    a line. `kind`: the field with a line's type. `payload` returns the payload of an extension: all
    fields but the type, if None.
    """

    def __init__(
        self,
        codec: str,
        draw: Callable[[Any], Obj],
        envelope: Callable[[Obj], Obj] = lambda _: {},
        payload: Callable[[Obj], Obj] | None = None,
        *,
        kind: str = "type",
    ) -> None:
        self.codec = codec
        self.envelope = envelope
        self._kind = kind
        self._payload = payload or (lambda obj: {k: v for k, v in obj.items() if k != kind})
        self.run = ""
        self.turn = 0
        self.start = 0.0  # the first known time
        self._draw = draw
        self._after_result = False

    def new_run(self, run: str) -> None:
        """Begin another run: its turns count from 1."""
        self.run, self.turn, self.start, self._after_result = run, 0, 0.0, False

    def make(self, cls: type[E], note: Obj | None = None, **fields: Any) -> E:
        """Return an imported event with its note; a missing `turn` is the current one."""
        if cls in _BY_MODEL:
            self.begin_model_output()
        self.record_time(fields.get("ts", 0.0))
        fields.setdefault("turn", self.turn)
        event = cls(run=self.run, origin="imported", extra={self.codec: note or {}}, **fields)
        self._after_result = self._after_result or cls is Result  # the next output is a new turn
        return event

    def line(
        self,
        cls: type[E],
        obj: Obj,
        note: Obj | None = None,
        *,
        draw: Callable[[Any], Obj] | None = None,
        **fields: Any,
    ) -> E:
        """Return the event of the line `obj`; its note gets how `obj` differs from our line.

        `draw`: draws our line, in place of the builder's `draw`.
        """
        event = self.make(cls, **{**self.envelope(obj), **fields})
        drawn = (draw or self._draw)(event)
        return self.add_note(event, {**(note or {}), **note_difference(obj, drawn)})

    def add_note(self, event: E, note: Obj) -> E:
        """Return an event of this run with `note` added to its note."""
        before = (event.extra or {})[self.codec]
        return msgspec.structs.replace(event, extra={self.codec: {**before, **note}})

    def derived(self, cls: type[E], **fields: Any) -> E:
        """Return an event that follows from others and has no line in this codec."""
        return self.make(cls, {"derived": True}, **fields)

    def extension(self, obj: Obj, name: str, payload: Any) -> Event:
        """Return the event of a line that has no canonical kind."""
        return self.line(Extension, obj, namespace=self.codec, name=name, payload=payload)

    def unknown(self, obj: Obj) -> list[Event]:
        """Return the extension for a line of unknown type, or whose block or call is not open."""
        return [self.extension(obj, text_of(obj, self._kind), self._payload(obj))]

    def read_line(self, reader: Any, obj: Obj) -> list[Event]:
        """Return the events of a line, by the method in `reader.HANDLERS` for its type, if any."""
        kind = obj.get(self._kind)  # any JSON value
        handler = reader.HANDLERS.get(kind) if isinstance(kind, str) else None
        return handler(reader, obj) if handler is not None else self.unknown(obj)

    def implicit_call(self, match: Match, wire_id: str, **fields: Any) -> list[Event]:
        """Return the call that a line implies; [] if an earlier line opened it.

        `wire_id`: the call's id in the foreign line, "" if it has none.
        """
        if not match.implicit:
            return []
        return [self.derived(Call, call_id=match.call_id, synthetic=not wire_id, **fields)]

    def record_time(self, ts: float) -> None:
        """Take `ts` (epoch seconds, 0: unknown) as the start if it is the first known time."""
        self.start = self.start or ts

    def begin_model_output(self) -> None:
        """Begin a turn if this is the first output of the model in the run, or after a result."""
        if self._after_result or not self.turn:
            self.turn += 1
            self._after_result = False


def drawn_by(table: Mapping[type[Event], Callable[[Any], Obj]]) -> Callable[[Event], Obj]:
    """Return a function that draws the line of an event with the entry of `table` for its type."""
    return lambda event: table[type(event)](event)


class UniqueIds:
    """Makes ids unique where a stream repeats them, as long as it is among the newest ones."""

    REMEMBERED = 4096  # ids: a stream that never ends may have any number

    def __init__(self) -> None:
        # an id that was wanted or returned -> the number of the last id made of it; the newest last
        self._counts: dict[str, int] = {}

    def take(self, wanted: str) -> str:
        """Return `wanted` at its first use, then `wanted#2`, `wanted#3` …"""
        count = self._counts.pop(wanted, 0) + 1
        unused = wanted if count == 1 else f"{wanted}#{count}"
        while unused in self._counts:  # the stream itself may have an id such as `a#2`
            count += 1
            unused = f"{wanted}#{count}"
        self._counts |= {unused: 1, wanted: count}
        while len(self._counts) > self.REMEMBERED:
            del self._counts[next(iter(self._counts))]
        return unused
