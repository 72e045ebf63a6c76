"""Which call a line speaks of, in protocols that give their calls no ids.

Why: without ids, two parallel calls to one tool cannot be told apart. The oldest open call of that name is taken, as all known
receivers of these protocols do; where that is a choice among several, the match is marked as a guess and the reader is told.

Rules
- A given id always wins. A made-up id is unique in the stream and its call is `synthetic`.
- News of a tool that nobody called opens an implicit call, once; its progress and its result go there.
- State is held for open calls only.
"""

from __future__ import annotations

import msgspec

GUESS = "the oldest open call of this tool"


class Match(msgspec.Struct, frozen=True):
    """The call that is meant. `guess`: it was one of several; `implicit`: nobody had called it, so it is opened now."""

    call_id: str
    guess: bool = False
    implicit: bool = False


class Correlator:
    """Open calls of one stream, by tool name."""

    def __init__(self) -> None:
        self._open: dict[str, list[str]] = {}
        self._names: dict[str, str] = {}
        self._made = 0

    def call(self, name: str, call_id: str = "") -> tuple[str, bool]:
        """A call is made: return its id and whether that is synthetic."""
        synthetic = not call_id
        call_id = call_id or self._make()
        if call_id not in self._names:
            self._names[call_id] = name
            self._open.setdefault(name, []).append(call_id)
        return call_id, synthetic

    def news(self, name: str, call_id: str = "") -> Match:
        """Something is said of a call to `name`: return which one."""
        if call_id:
            implicit = call_id not in self._names
            self.call(name, call_id)
            return Match(call_id, implicit=implicit)
        waiting = self._open.get(name, ())
        if waiting:
            return Match(waiting[0], guess=len(waiting) > 1)
        return Match(self.call(name)[0], implicit=True)

    def result(self, name: str, call_id: str = "") -> Match:
        """A call to `name` has ended: return which one, and forget it."""
        match = self.news(name, call_id)
        self._forget(match.call_id)
        return match

    def is_open(self, name: str) -> bool:
        """True if a call to `name` is open."""
        return name in self._open

    def oldest(self) -> str:
        """Return the oldest open call of any tool ("" when none is open)."""
        return next(iter(self._names), "")

    def next(self) -> str:
        """A call has ended, in call order: return the oldest open one of any tool and forget it ("" when none is open)."""
        call_id = self.oldest()
        if call_id:
            self._forget(call_id)
        return call_id

    def name(self, call_id: str) -> str:
        """Return the tool of an open call ("" when it is not open)."""
        return self._names.get(call_id, "")

    def clear(self) -> None:
        """A new run begins: open calls of the old one are out of reach."""
        self._open.clear()
        self._names.clear()

    def _make(self) -> str:
        self._made += 1
        while f"call-{self._made}" in self._names:
            self._made += 1
        return f"call-{self._made}"

    def _forget(self, call_id: str) -> None:
        name = self._names.pop(call_id)
        self._open[name].remove(call_id)
        if not self._open[name]:
            del self._open[name]
