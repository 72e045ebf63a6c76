"""References in a stored answer to texts of the log, fields of the request and repeated values.

    {"$text": 0}     the text of the first block of the record's log
    {"$field": "x"}  the field `x` of the request's body
    {"$seen": 0}     the first of the larger values that the answer repeats
    {"$is": {…}}     an object that would otherwise look like one of these

Why: the Responses API sends a text five times, and instructions and tools three times. Reading is
bounded in size and depth, whatever a record says.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from ..errors import UsageError
from ..wire import encode_canonical

TEXT, FIELD, SEEN, LITERAL = "$text", "$field", "$seen", "$is"
DEEPEST = 200  # levels of nesting that are read
_MARKS = frozenset({TEXT, FIELD, SEEN, LITERAL})
_SHORTEST_TEXT = 24  # characters of a text that is worth a reference
_SMALLEST = 64  # characters of the canonical text of a list or object that is worth one
_HEAVIEST = 1 << 26  # values and characters that one answer may expand to


def damaged_error(why: str) -> UsageError:
    """Return the error of a recorded exchange that cannot be read."""
    return UsageError(f"A recorded model call cannot be read: {why}. Record it again.")


def zip_text(text: str) -> str:
    """Return a text compressed, in base64."""
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()


def unzip_json(packed: Any, most_bytes: int) -> Any:
    """Return the JSON value of a compressed text. Raises UsageError if damaged or too large."""
    with suppress(ValueError, TypeError, zlib.error, RecursionError):
        unpacker = zlib.decompressobj()
        data = unpacker.decompress(base64.b64decode(packed, validate=True), most_bytes)
        if unpacker.eof:
            return json.loads(data)
    raise damaged_error("its compressed answer is too large or damaged")


class References:
    """Replaces known and repeated values by references; call `count`, then `pack`.

    `texts`: of the blocks of the log. `fields`: of the request's body. `seen`: the repeated values,
    packed, which the record must hold too.
    """

    def __init__(self, texts: Sequence[str], fields: Mapping[str, Any]) -> None:
        self.seen: list[Any] = []
        self._known: dict[str, dict[str, Any]] = {}
        self._counts: Counter[str] = Counter()
        for name, value in fields.items():
            if key := _make_key(value):
                self._known.setdefault(key, {FIELD: name})
        for index, text in enumerate(texts):
            if key := _make_key(text):
                self._known[key] = {TEXT: index}

    def count(self, values: Iterable[Any]) -> None:
        """Count the larger values inside `values`; `pack` replaces those that occur twice."""
        pending = list(values)
        while pending:
            value = pending.pop()
            key = _make_key(value)
            if key:
                self._counts[key] += 1
            if key in self._known or self._counts[key] > 1:
                continue
            if isinstance(value, dict):
                pending.extend(value.values())
            elif isinstance(value, list):
                pending.extend(value)

    def pack(self, value: Any) -> Any:
        """Return a value with references in it."""
        key = _make_key(value)
        if key and key in self._known:
            return dict(self._known[key])
        if key and self._counts[key] > 1:
            index = len(self.seen)
            self.seen.append(None)
            self._known[key] = {SEEN: index}
            self.seen[index] = self._pack_inside(value)
            return {SEEN: index}
        return self._pack_inside(value)

    def _pack_inside(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self.pack(item) for item in value]
        if not isinstance(value, dict):
            return value
        packed = {name: self.pack(item) for name, item in value.items()}
        return {LITERAL: packed} if len(packed) == 1 and _MARKS & packed.keys() else packed


def _make_key(value: Any) -> str:
    """Return a text that equal values share, "" for a value that is not worth a reference."""
    if isinstance(value, str):
        return f"s{value}" if len(value) >= _SHORTEST_TEXT else ""
    if not isinstance(value, dict | list) or not value:
        return ""
    text = encode_canonical(value)
    return text if len(text) >= _SMALLEST else ""


class Dereferencer:
    """Replaces references by their values; for the arguments see `References`."""

    def __init__(self, texts: Sequence[str], fields: Mapping[str, Any], seen: Any) -> None:
        self._texts, self._fields = texts, fields
        self._seen = seen if isinstance(seen, list) else []
        self._values: dict[int, tuple[Any, int]] = {}  # of `seen`: (value, its weight)
        self._open: set[int] = set()  # indices of `seen` that are being read, to find circles
        self._weight = 0

    def find_text(self, index: Any) -> str:
        """Return the text of the log with this index. Raises UsageError if the log has none."""
        if type(index) is not int or not 0 <= index < len(self._texts):
            raise damaged_error("its answer names a text that is missing")
        self.add_weight(len(self._texts[index]))
        return self._texts[index]

    def add_weight(self, weight: int) -> None:
        """Count values and characters that are read. Raises UsageError above `_HEAVIEST`."""
        self._weight += weight
        if self._weight > _HEAVIEST:
            raise damaged_error("its answer is too large")

    def unpack(self, value: Any, depth: int = DEEPEST) -> Any:
        """Return the value that `References.pack` received. Raises UsageError if it is damaged."""
        self.add_weight(len(value) if isinstance(value, str) else 1)
        if not isinstance(value, dict | list):
            return value
        if not depth:
            raise damaged_error("its answer is nested too deeply")
        if isinstance(value, list):
            return [self.unpack(item, depth - 1) for item in value]
        mark = next(iter(value)) if len(value) == 1 else ""
        if mark == LITERAL and isinstance(value[mark], dict):
            value = value[mark]
        elif mark in _MARKS:
            return self._resolve_reference(mark, value[mark], depth)
        return {name: self.unpack(item, depth - 1) for name, item in value.items()}

    def _resolve_reference(self, mark: str, name: Any, depth: int) -> Any:
        """Return the value that a reference names. Raises UsageError if there is none."""
        if mark == TEXT:
            return self.find_text(name)
        if mark == SEEN:
            return self._find_seen(name, depth)
        if not isinstance(name, str) or name not in self._fields:
            raise damaged_error("its answer names a field that its request lacks")
        self.add_weight(len(encode_canonical(self._fields[name])))
        return self._fields[name]

    def _find_seen(self, name: Any, depth: int) -> Any:
        """Return a repeated value, which is unpacked once. Raises UsageError."""
        if type(name) is not int or not 0 <= name < len(self._seen) or name in self._open:
            raise damaged_error("its answer refers to itself or to nothing")
        if name in self._values:
            unpacked, weight = self._values[name]
            self.add_weight(weight)
            return unpacked
        self._open.add(name)
        before = self._weight
        unpacked = self.unpack(self._seen[name], depth - 1)
        self._values[name] = (unpacked, self._weight - before)
        self._open.discard(name)
        return unpacked
