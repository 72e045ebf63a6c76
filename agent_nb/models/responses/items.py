"""The items of one answer of the Responses API, and which of them an event is about.

An event should name its item by `output_index` and `item_id`:

    {"type": "response.output_text.delta", "output_index": 0, "item_id": "msg_1", "delta": "High"}

Servers and proxies omit one or both, send a new id with every event, or one index for all items;
read literally, that doubles answers and invents calls.

Rule: an item has the keys that came with it: its index, its id, a call's `call_id`. A key leads to
the newest item of its type that came with it; a key of one item alone counts before a shared one.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

import msgspec

from ..http.values import to_text

MESSAGE, REASONING, CALL = "message", "reasoning", "function_call"
# later keys are added up to this number: a server that sends a new id with every event would fill
# the table
_MOST_KEYS = 8


class Key(NamedTuple):
    """What a server identifies an item by: its `output_index`, or any of its ids."""

    field: Literal["index", "id"]
    value: int | str


class Item(msgspec.Struct, eq=False):
    """One item of an answer; `call_id`, `tool` and `pieces` belong to a call."""

    type: str
    block: str  # the beginning of the names of its blocks
    index: int  # among the items of its type
    call_id: str = ""
    tool: str = ""
    pieces: list[str] = []  # of the arguments
    sizes: dict[str, int] = {}  # name of a block -> its characters that were emitted
    keys: set[Key] = set()
    announced: bool = False  # the server announced it
    streamed: bool = False  # a part of it was emitted
    done: bool = False  # it is complete

    def identify(self, call_id: str, tool: str) -> None:
        """Set the id and the tool of a call; empty texts change nothing."""
        self.call_id = call_id or self.call_id
        self.tool = tool or self.tool

    def stream(self, piece: str = "") -> None:
        """Record that part of the item was emitted; `piece` is one of a call's arguments."""
        self.streamed = True
        if piece:
            self.pieces.append(piece)


class Items:
    """The items of one answer, in order of first appearance."""

    def __init__(self) -> None:
        self._by_type: defaultdict[str, list[Item]] = defaultdict(list)
        self._by_key: dict[Key, Item] = {}
        self._shared: set[Key] = set()  # keys that several items have
        self._blocks: set[str] = set()  # the beginnings of the names of blocks, one for each item
        self._repeats: Counter[str] = Counter()  # of each index

    def __len__(self) -> int:
        return len(self._blocks)

    def list_all(self, item_type: str) -> list[Item]:
        """Return the items of a type."""
        return self._by_type[item_type]

    def list_open(self, item_type: str) -> list[Item]:
        """Return the open items of a type."""
        return [item for item in self._by_type[item_type] if not item.done]

    def find_known(self, item_type: str, keys: list[Key]) -> Item | None:
        """Return the item of a type that has one of the keys, or None."""
        known = [k for k in keys if k in self._by_key and self._by_key[k].type == item_type]
        best = next((key for key in known if key not in self._shared), known[0] if known else None)
        return None if best is None else self._by_key[best]

    def begin(self, item_type: str, keys: list[Key], call_id: str = "") -> Item:
        """Return the announced item: a new one, unless an open one is announced again.

        An open call with another id than `call_id` is not the announced one.
        """
        item = self.find_known(item_type, keys)
        if item is None or item.done or (call_id and item.call_id and call_id != item.call_id):
            item = self._add(item_type, keys)
        item.announced = True
        return self._add_keys(item, keys)

    def find_for_piece(self, item_type: str, keys: list[Key]) -> Item:
        """Return the item that a piece belongs to.

        That is the item of its keys, else the newest open item of its type, else a new one. The
        newest open item is passed over if it was never announced and both have ids.
        """
        item = self.find_known(item_type, keys)
        if item is None:
            item = next((i for i in reversed(self._by_type[item_type]) if not i.done), None)
            if item is not None and not item.announced and _has_id(keys) and _has_id(item.keys):
                item = None
        return self._add_keys(item or self._add(item_type, keys), keys)

    def find_for_end(self, item_type: str, keys: list[Key], tool: str = "") -> Item | None:
        """Return the item that ends, or None if it never began; `tool`: of the call, if known.

        That is the item of its keys, else the oldest open item of its type that is not a call of
        another tool.
        """
        item = self.find_known(item_type, keys)
        if item is None:
            candidates = (each for each in self._by_type[item_type] if not each.done)
            item = next((c for c in candidates if not tool or c.tool in ("", tool)), None)
        return None if item is None else self._add_keys(item, keys)

    def _add(self, item_type: str, keys: list[Key]) -> Item:
        """Add an item with these keys; the server's index of it names its blocks."""
        index = str(next((key.value for key in keys if key.field == "index"), len(self)))
        block = index
        # unique, though servers repeat an index; counted on, so that many repeats take no longer
        while block in self._blocks:
            self._repeats[index] += 1
            block = f"{index}'{self._repeats[index]}"
        self._blocks.add(block)
        item = Item(item_type, block, len(self._by_type[item_type]))
        self._by_type[item_type].append(item)
        self._shared.update(key for key in keys if key in self._by_key)
        self._by_key |= dict.fromkeys(keys, item)
        item.keys.update(keys)
        return item

    def _add_keys(self, item: Item, keys: list[Key]) -> Item:
        """Add keys that no item has to an item, and return it."""
        for key in keys:
            if len(item.keys) < _MOST_KEYS and key not in self._by_key:
                self._by_key[key] = item
                item.keys.add(key)
        return item


def keys_of(event: dict[str, Any], item: dict[str, Any] | None = None) -> list[Key]:
    """Return the keys of the item that an event is about, from the event and the item in it."""
    return list(_find_keys(event, item or {}))


def _find_keys(event: dict[str, Any], item: dict[str, Any]) -> Iterator[Key]:
    for value in (event.get("item_id"), item.get("id"), item.get("call_id"), event.get("call_id")):
        if to_text(value):
            yield Key("id", to_text(value))
    index = event.get("output_index")
    if isinstance(index, int | str):
        yield Key("index", index)


def _has_id(keys: set[Key] | list[Key]) -> bool:
    return any(key.field == "id" for key in keys)
