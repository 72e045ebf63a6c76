"""The items of one answer of the Responses API, and which of them an event is about.

Why: an event should name its item by `output_index` and `item_id`. Servers and proxies omit one or
both, send a new id with every event, or one index for all items; read literally, that doubles
answers and invents calls.

Rules
- An item is known by the names that came with it (index, id, a call's `call_id`), and by later
  ones until it has `_NAMES`.
- A name that several items share decides only if the event has no unshared name of a known item.
- A name never leads to an item of another kind.
- A piece under an unknown name belongs to the newest open item of its kind. It begins a new item if
  none is open, or if that item was never announced and has an id other than the piece's.
- An end under an unknown name ends the oldest open item of its kind; a call of another tool is
  passed over.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from ..http.values import to_text

MESSAGE, REASONING, CALL = "message", "reasoning", "function_call"
# most names added to an item: a server that sends a new id with every event would fill the table
_NAMES = 8
Name = tuple[str, int | str]  # ("index", output_index), or ("id", any id)


class Item(msgspec.Struct, eq=False):
    """One item of an answer; `call_id`, `name` and `pieces` belong to a call."""

    kind: str
    block: str  # the beginning of the names of its blocks
    index: int  # among the items of its kind
    call_id: str = ""
    name: str = ""
    pieces: list[str] = []  # of the arguments
    names: set[Name] = set()
    announced: bool = False  # the server announced it
    streamed: bool = False  # a part of it was passed on
    done: bool = False  # it is complete

    def identify(self, call_id: str, name: str) -> None:
        """Set the id and name of a call; empty texts change nothing."""
        self.call_id = call_id or self.call_id
        self.name = name or self.name

    def stream(self, piece: str = "") -> None:
        """Note that part of the item was passed on; `piece` is one of a call's arguments."""
        self.streamed = True
        if piece:
            self.pieces.append(piece)


class Items:
    """The items of one answer, in order of first appearance."""

    def __init__(self) -> None:
        self.all: list[Item] = []
        self._by_name: dict[Name, Item] = {}
        self._shared: set[Name] = set()

    def of(self, kind: str) -> list[Item]:
        """Return the items of a kind."""
        return [item for item in self.all if item.kind == kind]

    def open(self, kind: str) -> list[Item]:
        """Return the open items of a kind."""
        return [item for item in self.of(kind) if not item.done]

    def known(self, kind: str, names: list[Name]) -> Item | None:
        """Return the item of a kind known by one of the names, or None."""
        known_names = [
            name
            for name in names
            if (item := self._by_name.get(name)) is not None and item.kind == kind
        ]
        best = next((name for name in known_names if name not in self._shared), None) or next(
            iter(known_names), None
        )
        return None if best is None else self._by_name[best]

    def begin(self, kind: str, names: list[Name], call_id: str = "") -> Item:
        """Return the announced item: a new one, unless an open one is announced again."""
        item = self.known(kind, names)
        if item is None or item.done or (call_id and item.call_id and call_id != item.call_id):
            item = self._new(kind, names)
        item.announced = True
        return self._add_names(item, names)

    def piece(self, kind: str, names: list[Name]) -> Item:
        """Return the item that a piece belongs to."""
        item = self.known(kind, names)
        if item is None:
            item = next(reversed(self.open(kind)), None)
            if item is not None and not item.announced and _ids(names) and _ids(item.names):
                item = None
        return self._add_names(item or self._new(kind, names), names)

    def end(self, kind: str, names: list[Name], tool: str = "") -> Item | None:
        """Return the item that ends, or None if it never began; `tool` is the name of the call."""
        item = self.known(kind, names)
        if item is None:
            item = next(
                (
                    each
                    for each in self.open(kind)
                    if not (tool and each.name and tool != each.name)
                ),
                None,
            )
        return None if item is None else self._add_names(item, names)

    def _new(self, kind: str, names: list[Name]) -> Item:
        """Add an item with these names; the server's index of it names its blocks."""
        index = next((value for name_type, value in names if name_type == "index"), len(self.all))
        block = str(index)
        # unique, though servers repeat an index
        while any(item.block == block for item in self.all):
            block += "'"
        item = Item(kind, block, len(self.of(kind)))
        self.all.append(item)
        for name in names:
            if name in self._by_name:
                self._shared.add(name)
            self._by_name[name] = item
            item.names.add(name)
        return item

    def _add_names(self, item: Item, names: list[Name]) -> Item:
        """Note the new names of an item, and return it."""
        for name in names:
            if len(item.names) < _NAMES and name not in self._by_name:
                self._by_name[name] = item
                item.names.add(name)
        return item


def names_of(event: dict[str, Any], item: dict[str, Any] | None = None) -> list[Name]:
    """Return the names of the item that an event is about, from the event and the item in it."""
    return list(_names(event, item or {}))


def _names(event: dict[str, Any], item: dict[str, Any]) -> Iterator[Name]:
    for value in (event.get("item_id"), item.get("id"), item.get("call_id"), event.get("call_id")):
        if to_text(value):
            yield "id", to_text(value)
    index = event.get("output_index")
    if isinstance(index, int | str):
        yield "index", index


def _ids(names: set[Name] | list[Name]) -> bool:
    return any(name_type == "id" for name_type, _ in names)
