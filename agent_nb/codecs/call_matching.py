"""Matches each line about a call to its call, in protocols that give calls no ids, or reuse them.

Without ids, two parallel calls to one tool look alike. Of the lines "call search, call search,
result of search" the last is matched to the oldest open call, the first, as all known receivers of
these protocols do. An id in the line always decides.

Rule: when a new call reuses the id of an ended one, its id gets a number (`c1#2`). A late line with
the id of an ended call belongs to that call, while the id is among the newest `REMEMBERED`.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Literal

import msgspec

from .foreign_values import arguments_of, text_of_arguments

GUESS = "the oldest open call of this tool"
REMEMBERED = 1024  # ended ids kept for late lines; bounded, since a stream may never end
CallState = Literal["", "open", "over"]  # "": unknown


class Match(msgspec.Struct, frozen=True):
    """The call that a line belongs to.

    `guess`: several open calls fit, and the oldest is taken. `implicit`: no earlier line opened the
    call, so this line does.
    """

    call_id: str
    guess: bool = False
    implicit: bool = False

    @property
    def note(self) -> dict[str, str]:
        """The entry for the event's note if the match is a guess, else {}."""
        return {"guess": GUESS} if self.guess else {}


class CallMatcher:
    """The calls of one stream: finds our id of the call that a line is about.

    A wire id is the id in the stream; ours differs where the stream gives none, or uses one again.
    Generated ids begin with `prefix`.
    """

    def __init__(self, prefix: str = "") -> None:
        self._prefix = prefix
        self._by_tool: dict[str, list[str]] = {}  # tool -> our ids of its open calls, oldest first
        self._tools: dict[str, str] = {}  # our id of an open call -> its tool, oldest first
        self._own_ids: dict[str, str] = {}  # wire id of an open call -> our id
        # wire id, or generated id, of ended calls -> how many calls had it
        self._past: OrderedDict[str, int] = OrderedDict()
        self._count = 0

    def open_call(self, name: str, wire_id: str = "") -> tuple[str, bool]:
        """Open a call, unless its wire id is open; return our id and whether that is synthetic."""
        call_id = self._choose_id(wire_id) or self._generate_id()
        if call_id not in self._tools:
            self._tools[call_id] = name
            self._by_tool.setdefault(name, []).append(call_id)
            if wire_id:
                self._own_ids[wire_id] = call_id
        return call_id, not wire_id

    def begin_call(self, name: str, wire_id: str, arguments: Any) -> dict[str, Any]:
        """Open a call; return the fields of its event. `arguments`: an object, or its JSON text."""
        call_id, synthetic = self.open_call(name, wire_id)
        args, raw = arguments_of(arguments), text_of_arguments(arguments)
        ids = {"call_id": call_id, "synthetic": synthetic, "name": name}
        return {**ids, "args": args, "raw_args": raw}

    def state_of(self, wire_id: str) -> CallState:
        """Return whether the call with a wire id is open, over, or unknown ("")."""
        if wire_id in self._own_ids:
            return "open"
        return "over" if wire_id in self._past else ""

    def match_line(self, name: str, wire_id: str = "") -> Match:
        """Return the call to `name` that a line is about; open a call if none matches."""
        candidates = () if wire_id else self._by_tool.get(name, ())
        if candidates:
            return Match(candidates[0], guess=len(candidates) > 1)
        if self.own_id(wire_id) in self._tools:
            return Match(self.own_id(wire_id))
        if self.state_of(wire_id) == "over":  # a late line is about the newest call of that id
            uses = self._past[wire_id]
            return Match(wire_id if uses == 1 else f"{wire_id}#{uses}")
        return Match(self.open_call(name, wire_id)[0], implicit=True)

    def match_result(self, name: str, wire_id: str = "") -> Match:
        """Return the call to `name` that a result ends; it is not open afterwards."""
        match = self.match_line(name, wire_id)
        self._end(match.call_id)
        return match

    def list_open(self) -> dict[str, str]:
        """Return the open calls: our id -> tool, oldest first."""
        return dict(self._tools)

    def is_open(self, name: str) -> bool:
        """Return whether a call to `name` is open."""
        return name in self._by_tool

    def oldest(self) -> str:
        """Return our id of the oldest open call of any tool, or ""."""
        return next(iter(self._tools), "")

    def tool_of(self, call_id: str) -> str:
        """Return the tool of an open call, "" if it is not open."""
        return self._tools.get(self.own_id(call_id), "")

    def own_id(self, call_id: str) -> str:
        """Return our id of the open call with this wire id; any other id unchanged."""
        return self._own_ids.get(call_id, call_id)

    def clear(self) -> None:
        """Begin another run: forget all calls."""
        for table in (self._by_tool, self._tools, self._own_ids, self._past):
            table.clear()

    def _choose_id(self, wire_id: str) -> str:
        """Return our id of the open call with a wire id, else an unused id ("" for no wire id)."""
        if not wire_id:
            return ""
        if wire_id in self._own_ids:
            return self._own_ids[wire_id]
        uses = self._past.get(wire_id, 0)
        # a number after the id (`c1#2`) keeps the new call apart from ended and generated ones
        unused = f"{wire_id}#{uses + 1}" if uses else wire_id
        while unused in self._tools:
            uses += 1
            unused = f"{wire_id}#{uses + 1}"
        return unused

    def _generate_id(self) -> str:
        self._count += 1
        while (name := f"{self._prefix}call-{self._count}") in self._tools or name in self._past:
            self._count += 1
        return name

    def _end(self, call_id: str) -> None:
        name = self._tools.pop(call_id, None)
        if name is None:
            return
        self._by_tool[name].remove(call_id)
        if not self._by_tool[name]:
            del self._by_tool[name]
        # a generated id is remembered too: the stream may give the same one to a later call
        wire_id = next((wire for wire, own in self._own_ids.items() if own == call_id), call_id)
        self._own_ids.pop(wire_id, None)
        self._past[wire_id] = self._past.get(wire_id, 0) + 1
        self._past.move_to_end(wire_id)
        if len(self._past) > REMEMBERED:
            self._past.popitem(last=False)
