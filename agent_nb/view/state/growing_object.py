"""One JSON object while it arrives: its members so far, with the beginning of an unfinished string.

    '{"code": "print(1'              →  {"code": "print(1"}
    '{"code": "print(1)", "n": [1'   →  {"code": "print(1)", "n": []}: 1 may become 12

Why: people read the arguments of a call while they are written. A parser of whole texts would read
all of them again with every piece.

Rules
- `take_value` does not depend on the chunking: half an escape, or the first half of a surrogate
  pair, waits for the rest. A half that stays alone becomes U+FFFD.
- Raw control characters in strings are accepted, since small models write them; all else is strict.
- Nothing recurses or raises; the members before a fault stay.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, Literal

from ...wire import replace_surrogates
from .text import Text

MAX_DEPTH = 200  # containers in one another; deeper text counts as broken

# the part of a string that can be decoded: up to a quote, a fault, or an escape that the chunk may
# have cut. The first half of a surrogate pair (`_HIGH`) can be decoded together with the second
# half (`_LOW`), or if the text after it cannot become one.
_HEX = "[0-9a-fA-F]"
_HIGH, _LOW = f"u[dD][89abAB]{_HEX}{{2}}", f"u[dD][c-fC-F]{_HEX}{{2}}"
_DECODABLE = re.compile(
    rf'(?:[^"\\]++|\\["\\/bfnrt]|\\(?!{_HIGH})u{_HEX}{{4}}'
    rf"|\\{_HIGH}(?:\\{_LOW}|(?=[^\\]|\\[^u]|\\u[^dD]|\\u[dD][^c-fC-F])))*+"
).match
_UNDECIDED = re.compile(
    rf"(?:\\{_HIGH})?(?:\\(?:u(?:[dD][c-fC-F]?{_HEX}?|{_HEX}{{0,3}})?)?)?"
).fullmatch
_BLANK = re.compile(r"[ \t\r\n]*").match
_SCALAR = re.compile(r"[-+.0-9A-Za-z]*").match
_VALID_SCALAR = re.compile(
    r"true|false|null|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?"
).fullmatch

Expected = Literal["object", "first key", "key", "colon", "first item", "value", "comma", "nothing"]


class GrowingObject:
    """Reads one JSON object. `broken`: the text has a fault, and the rest of it is ignored."""

    def __init__(self) -> None:
        self.broken = False
        self._root: dict[str, Any] = {}
        self._open: list[dict[str, Any] | list[Any]] = []  # containers, the innermost last
        self._keys: list[str] = []  # for each open object, the key of its newest member
        self._expected: Expected = "object"
        # the string or scalar that is being read, None between them
        self._string: list[str] | None = None
        self._scalar: list[str] | None = None
        self._held = ""  # the end of the last chunk, if it may be part of an escape
        self._size = 0  # characters that were fed

    def take_value(self) -> dict[str, Any]:
        """Return the members so far, in a new dict; nested objects and lists in it go on growing.

        It joins the pieces of an unfinished string, so call it for each paint, not for each piece.
        """
        if self._string is not None and self._expected != "colon":  # not a key
            self._set_text()
        return dict(self._root)

    def read(self, text: Text) -> dict[str, Any]:
        """Take what is new in `text`, the same growing text each time; return `take_value()`."""
        self.feed(text.tail(len(text) - self._size))
        return self.take_value()

    def feed(self, text: str) -> None:
        """Take more of the text."""
        self._size += len(text)
        text, self._held, at = self._held + text, "", 0
        while at < len(text) and not self.broken:
            if self._string is not None:
                at = self._read_string(self._string, text, at)
            elif self._scalar is not None:
                at = self._read_scalar(self._scalar, text, at)
            else:
                at = self._read_mark(text, at)

    def _read_string(self, pieces: list[str], text: str, at: int) -> int:
        """Read more of a string; return the position behind it."""
        end = _DECODABLE(text, at).end()  # type: ignore[union-attr]  # matches everywhere
        if end > at:
            pieces.append(_decode(text[at:end]))
        if text[end : end + 1] == '"':
            self._end_string(pieces)
            return end + 1
        if _UNDECIDED(text, end):
            self._held = text[end:]
        else:
            self.broken = True
        return len(text)

    def _end_string(self, pieces: list[str]) -> None:
        if self._expected == "colon":
            self._keys[-1] = "".join(pieces)
        else:
            self._set_text()
        self._string = None

    def _set_text(self) -> None:
        """Put the string so far into its place."""
        pieces, container = self._string or [], self._open[-1]
        pieces[:] = ["".join(pieces)]
        if isinstance(container, dict):
            container[self._keys[-1]] = pieces[0]
        else:
            container[-1] = pieces[0]

    def _read_scalar(self, pieces: list[str], text: str, at: int) -> int:
        """Read more of a number or a word; return the position behind it."""
        end = _SCALAR(text, at).end()  # type: ignore[union-attr]
        pieces.append(text[at:end])
        if end < len(text):
            self._scalar = None
            word = "".join(pieces)
            try:
                # nan stands for a fault; a number beyond the range of a float becomes infinity
                value = json.loads(word) if _VALID_SCALAR(word) else math.nan
            except ValueError:  # more digits than Python reads
                value = math.nan
            if isinstance(value, float) and not math.isfinite(value):
                self.broken = True
            else:
                self._put(value)
        return end

    def _read_mark(self, text: str, at: int) -> int:
        """Read white space and one mark between values; return the position behind them."""
        at = _BLANK(text, at).end()  # type: ignore[union-attr]
        mark, expected = text[at : at + 1], self._expected
        if not mark:
            return at
        if mark == '"' and expected in ("first key", "key"):
            self._string, self._expected = [], "colon"
        elif mark == ":" and expected == "colon":
            self._expected = "value"
        elif mark == "," and expected == "comma":
            self._expected = "key" if isinstance(self._open[-1], dict) else "value"
        elif mark in "}]" and expected in ("comma", "first key", "first item"):
            self._close_container(mark)
        elif expected in ("value", "first item") or (expected == "object" and mark == "{"):
            return self._begin_value(mark, at)
        else:
            self.broken = True
        return at + 1

    def _begin_value(self, mark: str, at: int) -> int:
        """Begin the value whose first character is `mark`; return the position to read on from."""
        if mark == '"':
            self._string = []
            self._put("")
        elif mark in "{[" and len(self._open) < MAX_DEPTH:
            self._open_container({} if mark == "{" else [])
        elif mark in "-0123456789tfn":
            self._scalar = []
            return at
        else:
            self.broken = True
        return at + 1

    def _open_container(self, new: dict[str, Any] | list[Any]) -> None:
        if not self._open:
            new = self._root
        else:
            self._put(new)
        self._open.append(new)
        self._expected = "first item"
        if isinstance(new, dict):
            self._keys.append("")
            self._expected = "first key"

    def _close_container(self, mark: str) -> None:
        container = self._open.pop()
        if isinstance(container, dict) != (mark == "}"):
            self._open.append(container)
            self.broken = True
            return
        if isinstance(container, dict):
            self._keys.pop()
        self._expected = "comma" if self._open else "nothing"

    def _put(self, value: Any) -> None:
        container = self._open[-1]
        if isinstance(container, dict):
            container[self._keys[-1]] = value
        else:
            container.append(value)
        self._expected = "comma"


def _decode(source: str) -> str:
    """Return the characters that a part of a string literal stands for."""
    if "\\" in source:
        source = str(json.loads(f'"{source}"', strict=False))
    return replace_surrogates(source)
