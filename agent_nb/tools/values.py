"""Convert any Python value to a JSON value or bounded text.

Why: the values and errors of tools go into a log of JSON and to a model that reads a few thousand
words. The text must be the same on every run: sets are sorted and object addresses dropped.

Rules
- Conversion never raises, and its memory is bounded: a repr may raise, a container may hold itself
  or a million items.
- Text that is left out is marked in its place; items beyond the limit of a JSON value are not.
"""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import fractions
import os
import re
import uuid
from collections.abc import Callable, Iterable, Mapping, Set
from typing import Any

import msgspec

from ..errors import ToolError
from ..wire import LEFT_OUT, Console, cut_middle, replace_surrogates

LIMIT = 20_000  # characters of a result that the model reads
_LONGEST_ERROR = 2_000  # characters of an error's message
_MOST_ERRORS, _MOST_LEVELS = 5, 3  # of a group whose messages are added; groups inside one another
_DEEPEST = 40  # levels of containers inside one another
_LARGEST_INT = 2**63  # larger ones become text: readers of JSON would round them
# the address of an object in its default repr, which changes with every run
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
# types that become their `str`
_NUMBERS = (complex, decimal.Decimal, fractions.Fraction)
_TEXTUAL = (*_NUMBERS, os.PathLike, datetime.timedelta, uuid.UUID)
_TIMES = (datetime.date, datetime.time)


def byte_size(count: int) -> str:
    """Return a number of bytes in decimal units, such as `1.5 kB`."""
    if count < 1000:
        return f"{count} B"
    size, units = count / 1000, ["TB", "GB", "MB", "kB"]
    while size >= 999.95 and len(units) > 1:  # 999.95 would be written as 1000.0
        size /= 1000
        units.pop()
    return f"{size:.1f} {units[-1]}"


def clip_text(text: str, limit: int = LIMIT) -> str:
    """Return `text`, or if longer than `limit`, its beginning and end with a mark between."""
    return cut_middle(text, limit, tail=limit // 3)


class Collector:
    """Keeps the first and last characters of an output, `limit` in all; resolves redrawn lines."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._head_size = limit - limit // 3
        self._tail_size = limit // 3
        self._head = ""
        self._tail = ""
        self._length = 0
        self._console = Console()

    def add(self, text: str) -> None:
        """Add text."""
        self._head, self._tail, self._length = self._appended(self._console.feed(text))

    @property
    def text(self) -> str:
        """The collected text, with a mark where some is missing."""
        head, tail, length = self._appended(self._console.rest)
        missing = length - len(head) - len(tail)
        mark = f"\n{LEFT_OUT.format(missing)}\n" if missing else ""
        return head + mark + tail

    def _appended(self, text: str) -> tuple[str, str, int]:
        """Return beginning, end and length with `text` added."""
        room = self._head_size - len(self._head)
        tail = (self._tail + text[room:])[-self._tail_size :] if room < len(text) else self._tail
        return self._head + text[:room], tail, self._length + len(text)


def short_repr(value: Any, limit: int = LIMIT) -> str:
    """Return the repr of `value` without addresses, bounded; never raises."""
    try:
        return clip_text(replace_surrogates(_ADDRESS.sub("", repr(value))), limit)
    except Exception as error:  # of a foreign repr
        return f"<{type(value).__name__} whose repr raised {type(error).__name__}>"


def message_of(error: BaseException, levels: int = _MOST_LEVELS) -> str:
    """Return type and message of an error in a few lines; of a ToolError only the message.

    `levels`: how deep inside groups of errors the messages are added.
    """
    text = _write_text(error)
    if isinstance(error, BaseExceptionGroup) and levels:
        inner = (message_of(e, levels - 1) for e in error.exceptions[:_MOST_ERRORS])
        text = "; ".join([text, *inner])
    notes = vars(error).get("__notes__")  # a list, unless foreign code has set it
    notes = [_write_text(note) for note in notes] if isinstance(notes, list) else []
    kind = [] if isinstance(error, ToolError) and text else [type(error).__name__]
    return clip_text("\n".join([": ".join([*kind, *filter(None, [text])]), *notes]), _LONGEST_ERROR)


def _write_text(value: Any) -> str:
    """Return the `str` of a value, "" if it raises."""
    try:
        return replace_surrogates(str(value))
    except Exception:  # foreign code
        return ""


def convert_to_json(value: Any, items: int = LIMIT) -> Any:
    """Return `value` as JSON with at most `items` items in all; other types become text."""
    return _JsonConverter(items).walk(value, ())


def fits_limits(value: Any) -> bool:
    """Return whether `convert_to_json` keeps every item of a JSON value."""
    members, depth, left = [value], 0, LIMIT
    while members:
        containers = [member for member in members if isinstance(member, dict | list)]
        if (containers and depth >= _DEEPEST) or left < 0:
            return False
        members = [m for c in containers for m in (c.values() if isinstance(c, dict) else c)]
        depth, left = depth + 1, left - len(members)
    return True


class _JsonConverter:
    """Converts one value; `left`: how many more items of containers it may take."""

    def __init__(self, items: int) -> None:
        self.left = items

    def walk(self, value: Any, above: tuple[int, ...]) -> Any:
        """Return the JSON of a value inside the containers `above`, by their `id`."""
        try:
            if isinstance(value, enum.Enum):  # before the scalars: an enum may be a str
                return self.walk(value.value, above)
            for kinds, convert in _SCALARS:
                if isinstance(value, kinds):
                    return convert(value)
            if id(value) in above:
                return "(a cycle)"
            if len(above) >= _DEEPEST:
                return short_repr(value, 200)
            return self._convert_container(value, (*above, id(value)))
        except Exception:  # of methods, attributes and iterators of foreign objects
            return short_repr(value, 1_000)

    def _convert_container(self, value: Any, above: tuple[int, ...]) -> Any:
        """Return the JSON of a container or NumPy scalar; of any other object, its repr."""
        fields = _read_fields(value)
        if fields is not None:
            return {_write_key(k): self.walk(v, above) for k, v in self._limit(fields.items())}
        if isinstance(value, Set):
            return sorted(self._convert_array(value, above), key=repr)
        if isinstance(value, list | tuple | range) or type(value).__name__ == "deque":
            return self._convert_array(value, above)
        if getattr(type(value), "item", None) and getattr(value, "shape", None) == ():
            return self.walk(value.item(), above)  # a NumPy scalar
        return short_repr(value)

    def _convert_array(self, value: Iterable[Any], above: tuple[int, ...]) -> list[Any]:
        return [self.walk(item, above) for item in self._limit(value)]

    def _limit(self, items: Iterable[Any]) -> Iterable[Any]:
        """Yield items as long as `left` allows."""
        for item in items:
            if self.left <= 0:  # the items inside earlier ones count too
                return
            self.left -= 1
            yield item


def _write_key(key: Any) -> str:
    return replace_surrogates(key) if isinstance(key, str) else str(convert_to_json(key, 100))


def _read_fields(value: Any) -> Mapping[Any, Any] | None:
    """Return the fields of a mapping, dataclass, struct, named tuple or pydantic model."""
    if isinstance(value, Mapping):
        return value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    if isinstance(value, msgspec.Struct):
        return {name: getattr(value, name) for name in value.__struct_fields__}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return dict(value._asdict())
    if hasattr(type(value), "model_dump"):
        return dict(value.model_dump())
    return None


def _write_digits(value: int) -> str:
    try:
        return str(value)
    except ValueError:  # Python refuses to convert thousands of digits
        return f"(an integer of {value.bit_length():,} bits)"


def _convert_float(value: float) -> Any:
    names = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}  # as JavaScript writes them
    return names.get(str(float(value)), float(value))


def _convert_bytes(value: bytes | bytearray) -> str:
    data = bytes(value[:LIMIT])
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return f"({len(value):,} bytes: {data[:16].hex(' ')}{' …' if len(value) > 16 else ''})"
    if len(data) == len(value):
        return text
    return f"{text}\n[… {len(value) - len(data):,} bytes left out …]"


# types and their converters; the first that fits counts: a bool is an int
_SCALARS: tuple[tuple[Any, Callable[[Any], Any]], ...] = (
    ((bool, type(None)), lambda v: v),
    (str, lambda v: replace_surrogates(str(v))),
    (int, lambda v: int(v) if -_LARGEST_INT <= v < _LARGEST_INT else _write_digits(int(v))),
    (float, _convert_float),
    ((bytes, bytearray), _convert_bytes),
    (memoryview, lambda v: _convert_bytes(v.tobytes())),
    (_TIMES, lambda v: v.isoformat()),
    (_TEXTUAL, lambda v: replace_surrogates(str(v))),
    (BaseException, message_of),
)
