"""The form of the values in a record: JSON that every reader preserves and that names no machine.

    {"$int": "9007199254740993"}   an integer that JavaScript cannot hold
    {"$float": "nan"}              nan, inf or -inf
    {"$payload": "<sha256>"}       a value stored once in `payloads`, such as a picture
    {"$literal": {…}}              an object that would otherwise look like one of these
    ⌂~                             the home folder, of the reader when it is unpacked
    ⌂\\ ⌂=                          the home folder with doubled backslashes; the sign itself

Why: JavaScript turns 1.0 into 1, loses digits beyond 2**53 and has no NaN; and a notebook that is
shared must not show the writer's home folder.

Rule: `unpack` returns what `pack` received, but 1 for 1.0, 0 for -0.0, lists for tuples, and texts
for values that are not JSON or nested too deeply. Whatever a record holds, it raises nothing.
"""

from __future__ import annotations

import hashlib
import math
import os
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any

import msgspec

from ..wire import SAFE, Attachment, dumps, encode_canonical

LARGE = 64 * 1024  # larger values (bytes of a text, else characters of JSON) become payloads
SMALLEST_PICTURE = 1024  # characters of base64; shorter pictures stay in place
DEEPEST = 200  # levels of nested values that are packed
MOST_UNPACKED = 1 << 28  # characters of payloads that one record may unpack, each use counted
EXACT = "2:"  # prefix of hashes in which every character counts; older records have none
REFERENCE = '"$payload"'  # part of the canonical text of every value that needs a payload
# types of packed values that are unpacked as is
PLAIN_TYPES = frozenset({bool, int, float, type(None)})
# the only key of an object that stands for another value
MARKS = frozenset({"$int", "$float", "$payload", "$literal", "$raw"})
_SHORTEST_HOME = 3  # characters; a shorter path, such as "/", would match everywhere
_LONGEST_DECIMAL = 10_000  # bits; longer integers are written in hexadecimal, in linear time
# possessive `++`: in another text, a long run of blanks must not take quadratic time
_BASE64 = re.compile(r"[A-Za-z0-9+/\s]++={0,2}\s*").fullmatch


def hash_text(text: str, like: str = EXACT) -> str:
    """Return the SHA-256 of a text in the scheme of the hash `like`: with or without `EXACT`.

    Without `EXACT`, the older scheme, a lone surrogate counts as a question mark.
    """
    mark, errors = (EXACT, "surrogatepass") if like.startswith(EXACT) else ("", "replace")
    return mark + hashlib.sha256(text.encode("utf-8", errors)).hexdigest()


def payload_key(packed: Any) -> str:
    """Return the key of a packed payload; "" if not JSON."""
    text = _encode_packed(packed)
    return hash_text(text) if text else ""


def _encode_packed(packed: Any) -> str:
    """Return the canonical text of a packed payload, "" if not JSON."""
    with suppress(ValueError, RecursionError):
        return encode_canonical(packed)
    return ""


def surely_fits(value: Any, size: int) -> bool:
    """Return whether the canonical text of a value is shorter than `size`; a quick estimate.

    False means "not sure": then the caller measures that text, which takes longer to make.
    """
    with suppress(msgspec.MsgspecError, TypeError, ValueError, RecursionError):
        return 2 * len(dumps(value)) < size  # the two texts differ only in numbers
    return False


def digest_value(value: Any, length: int = 16) -> str:
    """Return the first `length` hexadecimal digits of the SHA-256 of a value's canonical text."""
    return hash_text(encode_canonical(value)).removeprefix(EXACT)[:length]


class Home:
    """Replaces one home folder in texts by signs, and back; a very short `path` stays as it is."""

    SIGN = "⌂"  # stands before a mark: ~ the folder, \\ with doubled backslashes, = the sign itself
    _MARKED = re.compile(SIGN + r"([~=\\])")

    def __init__(self, path: str) -> None:
        path = path.rstrip("/\\")
        doubled = path.replace("\\", "\\\\")
        self._shown = {"~": path or "~", "\\": doubled or "~", "=": self.SIGN}
        self._hidden: dict[str, str] = {}
        self._find: re.Pattern[str] | None = None
        if len(path) >= _SHORTEST_HOME:
            # a path without backslashes has one form, and the mark ~
            self._hidden = {doubled: self.SIGN + "\\", path: self.SIGN + "~"}
            # only whole names match: `/home/ann` is not in `/home/anna`
            longest_first = sorted(map(re.escape, self._hidden), key=len, reverse=True)
            self._find = re.compile(rf"(?<!\w)(?:{'|'.join(longest_first)})(?![\w-])")

    @classmethod
    def of_user(cls) -> Home:
        """Return the home folder of this user."""
        return home_at(None)

    def occurs_in(self, text: str) -> bool:
        """Return whether `hide` may change `text` or, if it is JSON, a text inside it."""
        return self.SIGN in text or any(path in text for path in self._hidden)

    def measure_tail(self, text: str) -> int:
        """Return how many characters at the end of a text may begin the home folder."""
        return max(
            (n for path in self._hidden for n in range(len(path) + 1) if text.endswith(path[:n])),
            default=0,
        )

    def hide(self, text: str) -> str:
        """Return `text` without the home folder."""
        if self.SIGN in text:
            text = text.replace(self.SIGN, self.SIGN + "=")
        return text if self._find is None else self._find.sub(lambda m: self._hidden[m[0]], text)

    def show(self, text: str) -> str:
        """Return the text that `hide` received, with this home."""
        return self._MARKED.sub(lambda m: self._shown[m[1]], text) if self.SIGN in text else text


_make_home = lru_cache(16)(Home)


def home_at(path: str | None) -> Home:
    """Return the `Home` of the folder `path` (None: the user's); the same object each time."""
    return _make_home(os.path.expanduser("~") if path is None else path)


class Payloads(dict[str, Any]):
    """Packed values by their keys. Each value is hashed once, however many readers check it.

    A whole record contains the payloads it needs (`attach`). The records in a notebook's metadata
    are stored without them (`detach`) and share one mapping.
    """

    def __init__(self, values: Mapping[str, Any] = {}, sizes: dict[str, int] | None = None) -> None:
        super().__init__(values)
        self._sizes = {} if sizes is None else sizes  # see `measure`

    @classmethod
    def of(cls, *sources: Any) -> Payloads:
        """Merge the sources, the last one wins; ignore a source that is not a mapping."""
        mappings = [source for source in sources if isinstance(source, Mapping) and source]
        if len(mappings) == 1 and isinstance(mappings[0], cls):
            return mappings[0]  # with what it has hashed already
        return cls({k: v for mapping in mappings for k, v in mapping.items()})

    def only(self, keys: Iterable[str]) -> Payloads:
        """Return the payloads of these keys; the results of hashing are shared."""
        return Payloads({key: self[key] for key in keys}, self._sizes)

    def is_sound(self, key: str) -> bool:
        """Return whether the value of `key` has the hash in its key, and so is unchanged."""
        return self.measure(key) >= 0

    def measure(self, key: str) -> int:
        """Return how many characters the JSON of a value has, -1 if the value was changed."""
        if key not in self._sizes:
            text = _encode_packed(self[key])
            self._sizes[key] = len(text) if text and hash_text(text, key) == key else -1
        return self._sizes[key]

    @classmethod
    def attach(cls, record: Mapping[str, Any], beside: Any = None) -> dict[str, Any]:
        """Return the whole record, with the known payloads that it needs.

        A payload inside the record takes precedence over one `beside` it.
        """
        known = cls.of(beside, record.get("payloads"))
        bare, _ = cls.detach(record)
        if not known:
            return bare
        needed = cls.find_needed_keys(record.get("events"), known) & known.keys()
        return {**bare, "payloads": known.only(sorted(needed))} if needed else bare

    @classmethod
    def detach(cls, record: Mapping[str, Any]) -> tuple[dict[str, Any], Payloads]:
        """Return a record without its payloads, and these payloads."""
        bare = {name: value for name, value in record.items() if name != "payloads"}
        return bare, cls.of(record.get("payloads"))

    @classmethod
    def list_faults(cls, record: Mapping[str, Any], beside: Any = None) -> list[str]:
        """Return sentences on payloads that a record needs and that are missing or were changed."""
        known = cls.of(beside, record.get("payloads"))
        faults = []
        for key in sorted(cls.find_needed_keys(record.get("events"), known)):
            if key not in known:
                faults.append(f"the payload {key[:12]}… is missing")
            elif not known.is_sound(key):
                faults.append(f"the payload {key[:12]}… was changed")
        return faults

    @staticmethod
    def find_keys(value: Any) -> set[str]:
        """Return the payload keys in a packed value, without those inside the payloads."""
        keys: set[str] = set()
        pending = [value]
        while pending:
            item = pending.pop()
            if isinstance(item, dict):
                key = item.get("$payload")
                if len(item) == 1 and isinstance(key, str):
                    keys.add(key)
                pending.extend(v for v in item.values() if isinstance(v, dict | list))
            elif isinstance(item, list):
                pending.extend(v for v in item if isinstance(v, dict | list))
        return keys

    @staticmethod
    def find_needed_keys(packed: Any, payloads: Mapping[str, Any]) -> set[str]:
        """Return the payload keys that a packed value and its payloads need."""
        keys: set[str] = set()
        pending = Payloads.find_keys(packed)
        while pending:
            keys |= pending
            known = [payloads[key] for key in pending if key in payloads]
            pending = Payloads.find_keys(known) - keys
        return keys


class Packer:
    """Packs values and collects large ones in `payloads`, by the hash of their canonical text."""

    def __init__(self, home: Home, large: int = LARGE) -> None:
        self.payloads: dict[str, Any] = {}
        self._home = home
        self._large = large

    def pack(self, value: Any) -> Any:
        """Return the packed form of a field's value."""
        packed = self._pack(value, DEEPEST)
        if not isinstance(packed, dict | list) or surely_fits(packed, self._large):
            return packed
        return self.store_payload(packed) if len(encode_canonical(packed)) > self._large else packed

    def pack_inside(self, value: Any) -> Any:
        """Return the packed form of a value that stays in place; large texts become payloads."""
        return self._pack(value, DEEPEST)

    def pack_picture(self, picture: Any) -> Any:
        """Return a packed attachment: a picture as a payload, values of a kernel left out."""
        if not isinstance(picture, Mapping):
            return self.pack(picture)
        data = picture.get("data")
        is_picture = isinstance(data, str) and len(data) >= SMALLEST_PICTURE and _BASE64(data)
        return {
            k: self.store_payload(v) if k == "data" and is_picture else self.pack(v)
            for k, v in picture.items()
            if k != Attachment.LIVE
        }

    def store_payload(self, packed: Any) -> dict[str, str]:
        """Store a packed value as a payload; return the reference to it."""
        key = payload_key(packed)
        self.payloads[key] = packed
        return {"$payload": key}

    def _pack(self, value: Any, depth: int) -> Any:
        """Return the packed form of a value that is nested at most `depth` levels deep."""
        if isinstance(value, str):
            text = self._home.hide(value)
            is_large = len(text.encode("utf-8", "replace")) > self._large
            return self.store_payload(text) if is_large else text
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, int):
            return _pack_int(value)
        if isinstance(value, float):
            return _pack_float(value)
        if not depth and isinstance(value, Mapping | list | tuple):
            return "(nested too deeply to keep)"
        if isinstance(value, Mapping):
            items = {self._home.hide(str(k)): self._pack(v, depth - 1) for k, v in value.items()}
            return {"$literal": items} if len(items) == 1 and MARKS & items.keys() else items
        if isinstance(value, list | tuple):
            return [self._pack(v, depth - 1) for v in value]
        return self._home.hide(str(value))


def _pack_int(value: int) -> Any:
    """Return an integer, marked if JavaScript cannot hold it."""
    if abs(value) <= SAFE:
        return int(value)
    return {"$int": str(value) if value.bit_length() < _LONGEST_DECIMAL else hex(value)}


def _pack_float(value: float) -> Any:
    """Return a float as JavaScript would write it, marked if JSON cannot hold it."""
    if not math.isfinite(value):
        return {"$float": str(float(value))}
    return int(value) if value.is_integer() and abs(value) <= SAFE else float(value)


class Unpacker:
    """Unpacks the values of one record with its payloads and the reader's home folder."""

    def __init__(self, payloads: Mapping[str, Any], home: Home) -> None:
        self._payloads = Payloads.of(payloads)
        self._home = home
        self._left = MOST_UNPACKED

    def unpack(self, value: Any) -> Any:
        """Return the value that `Packer.pack` received."""
        # two levels more than `pack`: a reference to a payload may stand around the whole value,
        # and a mark around a value at its deepest level
        return self._unpack(value, DEEPEST + 2)

    def _unpack(self, value: Any, depth: int) -> Any:
        """Return the value of a packed form that is nested at most `depth` levels deep."""
        if isinstance(value, str):
            return self._home.show(value) if Home.SIGN in value else value
        if not isinstance(value, dict | list):
            return value
        if not depth:
            return "(nested too deeply to keep)"
        if isinstance(value, list):
            return [self._unpack(v, depth - 1) for v in value]
        if len(value) == 1 and next(iter(value)) in _UNPACK:
            mark, content = next(iter(value.items()))
            return _UNPACK[mark](self, content, depth - 1)
        return self.read_object(value, depth)

    def read_object(self, value: Any, depth: int) -> Any:
        """Unpack an object whose own key is not a mark; its values may contain marks."""
        if not isinstance(value, dict):
            return value
        show, below = self._home.show, depth - 1
        return {
            show(str(k)): v if type(v) in PLAIN_TYPES else self._unpack(v, below)
            for k, v in value.items()
        }

    def read_payload(self, key: Any, depth: int) -> Any:
        """Return the payload of `key`, or a text that says why it cannot be used."""
        if not isinstance(key, str) or key not in self._payloads:
            return f"[a payload of this record is missing: {key}]"
        packed = self._payloads[key]
        size = self._payloads.measure(key)
        if size < 0:
            return f"[a payload of this record was changed: {key}]"
        self._left -= size
        if self._left < 0:
            return f"[a payload of this record is left out, they are too large together: {key}]"
        return self._unpack(packed, depth)

    def read_integer(self, value: Any, _: int) -> Any:
        """Return a large integer from its decimal or hexadecimal digits."""
        with suppress(TypeError, ValueError):
            return int(value, 0)
        return str(value)

    def read_float(self, value: Any, _: int) -> Any:
        """Return nan, inf or -inf."""
        return float(value) if value in ("nan", "inf", "-inf") else str(value)


# mark -> the method that unpacks the value below it; `packed_events` handles "$raw"
_UNPACK = {
    "$int": Unpacker.read_integer,
    "$float": Unpacker.read_float,
    "$payload": Unpacker.read_payload,
    "$literal": Unpacker.read_object,
}
