"""Tool calls as JSON text: follow the text across chunks, then read it strictly.

Why two steps: `Scan` finds the end of a block, and shows arguments as they grow, before the JSON is
complete. `read_call` and `read_batch` decide, once and on the whole text, whether that JSON is
valid.

Rules
- A marker inside a JSON string is text.
- `Scan` visits every character once. It copies the keys and texts of the call object itself, and
  the arguments that it yields.
- `Scan` yields arguments as CallDelta, a preview (see `base`). A call whose name follows its
  arguments has no preview.
- JSON is strict (RFC 8259): no NaN, no raw control characters in strings, no half surrogate pairs,
  no nesting deeper than `DEEPEST` (the dialects check this with `check_depth`). Of duplicate
  members the last counts.
"""

from __future__ import annotations

import re
from typing import Any, Literal

import msgspec

from ..models import Call, CallDelta, Part

DEEPEST = 200  # levels of nesting
Stop = Literal["more", "sigil", "broken", "done"]

# possessive (`++`, `*+`), so that a long string is never read twice
_STRING = re.compile(r'(?:[^"\\\x00-\x1f]++|\\[^\x00-\x1f])*+').match
_decode = msgspec.json.Decoder().decode
_decode_call = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_batch = msgspec.json.Decoder(list[dict[str, msgspec.Raw]]).decode
# type of a JSON value -> its name in a message for the model
_JSON_KINDS = {
    list: "an array",
    str: "a text",
    int: "a number",
    float: "a number",
    bool: "true or false",
    type(None): "null",
}


class Scan:
    """Follows the JSON text of calls across chunks.

    `sigil`: the first character of a marker. `level`: how many brackets are around a call object
    (0: none, 1: an array). `index`: the number of the first call. `live`: whether to yield
    arguments as they grow.
    """

    def __init__(self, sigil: str, level: int, *, index: int = 0, live: bool = True) -> None:
        self.depth = 0
        self.deepest = 0
        # keys and names of calls are strings at depth `level + 1`; deeper, only brackets matter
        self._level = level
        self._sigil = sigil
        self._index = index - 1
        self._yield_args = live
        self._in_string = False
        # the pieces of the open string; None: that string can be neither a key nor a name
        self._string_pieces: list[str] | None = None
        self._key = ""
        self._expects_key = True
        self._name = ""
        self._in_args = False
        self._emitted = 0  # position in the text up to which arguments were yielded
        # find the next character that matters: among the members of a call, and inside a value
        self._shallow = re.compile(rf'["\\\[\]{{}},:{sigil}]').search
        self._deep = re.compile(rf'["\\\[\]{{}}{sigil}]').search

    @property
    def calls(self) -> int:
        """The index of the next call object."""
        return self._index + 1

    def run(self, text: str, pos: int, out: list[Part]) -> tuple[Stop, int]:
        """Continue at `pos`; return why and where scanning stopped.

        `more`: at the end of the text, or at half an escape there. `sigil`: at a sigil outside a
        string; continue after it if no marker begins there. `broken`: at invalid JSON. `done`: the
        outermost bracket has closed.
        """
        self._emitted = pos
        stop, pos = self._scan(text, pos, out)
        self._emit(text, pos, out)
        return stop, pos

    def _scan(self, text: str, pos: int, out: list[Part]) -> tuple[Stop, int]:
        size = len(text)
        while pos < size:
            if self._in_string:
                pos, closed = self._continue_string(text, pos)
                if not closed:
                    return ("more" if text[pos:] in ("", "\\") else "broken"), pos
                continue
            match = (self._shallow if self.depth <= self._level + 1 else self._deep)(text, pos)
            if match is None:
                return "more", size
            pos = match.start()
            char = text[pos]
            if char == '"':
                self._in_string = True
                self._string_pieces = [] if self.depth == self._level + 1 else None
            elif char == self._sigil:
                return "sigil", pos
            elif char == "\\":
                return "broken", pos
            elif char in "[{":
                self._open_bracket(char, pos)
            elif char in "]}":
                if self._close_bracket(text, pos, out):
                    return "done", pos + 1
            elif self.depth == self._level + 1:
                self._expects_key = char == ","
            pos += 1
        return "more", size

    def _continue_string(self, text: str, pos: int) -> tuple[int, bool]:
        """Continue in a string; return the position where it stopped and whether it closed."""
        end = _STRING(text, pos).end()  # type: ignore[union-attr]  # the pattern matches everywhere
        if self._string_pieces is not None:
            self._string_pieces.append(text[pos:end])
        if text[end : end + 1] != '"':
            return end, False
        self._end_string()
        return end + 1, True

    def _open_bracket(self, bracket: str, pos: int) -> None:
        if bracket == "{" and self.depth == self._level:
            self._index += 1
            self._name, self._expects_key = "", True
        elif (
            bracket == "{"
            and self.depth == self._level + 1
            and self._key == "args"
            and self._name  # a preview needs the tool
            and not self._expects_key
        ):
            self._in_args, self._emitted = self._yield_args, pos
        self.depth += 1
        self.deepest = max(self.deepest, self.depth)

    def _close_bracket(self, text: str, pos: int, out: list[Part]) -> bool:
        """Close the bracket at `pos`; return whether it was the outermost one."""
        self.depth = max(self.depth - 1, 0)
        if self._in_args and self.depth == self._level + 1:
            self._emit(text, pos + 1, out)
            self._in_args = False
        return self.depth == 0

    def _end_string(self) -> None:
        self._in_string = False
        if self._string_pieces is None:
            return
        word, self._string_pieces = "".join(self._string_pieces), None
        if self._expects_key:
            self._key = word
        elif self._key == "name":
            self._name = _unescape(word)

    def _emit(self, text: str, end: int, out: list[Part]) -> None:
        if self._in_args and end > self._emitted:
            out.append(CallDelta(text[self._emitted : end], self._index, name=self._name))
        self._emitted = end


def _unescape(word: str) -> str:
    if "\\" not in word:
        return word
    try:
        return str(_decode(f'"{word}"'))
    except (msgspec.MsgspecError, UnicodeError):
        return ""


def read_batch(text: str, index: int = 0) -> list[Call]:
    """Return the calls of a JSON array; the first gets `index`.

    All or nothing: raises ValueError with a message for the model if anything in it is wrong.
    """
    items = _decode_strictly(_decode_batch, text)
    return [_make_call(item, index + n, f"item {n + 1}") for n, item in enumerate(items)]


def read_call(text: str, index: int = 0) -> Call:
    """Return the call of one JSON object. Raises ValueError with a message for the model."""
    return _make_call(_decode_strictly(_decode_call, text), index, "the object")


def read_args(text: str) -> dict[str, Any]:
    """Return arguments as an object, {} for an empty text.

    Raises ValueError with a message for the model.
    """
    value = _decode_strictly(_decode, text) if text.strip() else {}
    if not isinstance(value, dict):
        raise ValueError(f"it is {_JSON_KINDS.get(type(value), type(value).__name__)}")  # noqa: TRY004  (the text is wrong, not a type)
    return value


def check_depth(depth: int) -> None:
    """Raise ValueError if JSON is nested too deeply."""
    if depth > DEEPEST:
        raise ValueError(f"it is nested deeper than {DEEPEST} levels")


def _make_call(item: dict[str, msgspec.Raw], index: int, where: str) -> Call:
    missing = [f'"{key}"' for key in ("name", "args") if key not in item]
    if missing:
        raise ValueError(f"{where} has no {' and no '.join(missing)}")
    name, args = _decode_member(item, "name"), _decode_member(item, "args")
    if not isinstance(name, str) or not name:
        raise ValueError(f'"name" of {where} is not a text with a tool\'s name')
    if not isinstance(args, dict):
        raise ValueError(f'"args" of {where} is not an object')  # noqa: TRY004
    call_id = _decode_member(item, "id")
    if not isinstance(call_id, str | int) or isinstance(call_id, bool):
        call_id = ""
    return Call(name, args, bytes(item["args"]).decode(), str(call_id), index)


def _decode_member(item: dict[str, msgspec.Raw], key: str) -> Any:
    return _decode_strictly(_decode, item[key]) if key in item else None


def _decode_strictly(decode: Any, text: Any) -> Any:
    try:
        return decode(text)
    except UnicodeError:
        raise ValueError(
            "it holds one half of a surrogate pair, which is not a character"
        ) from None
    except RecursionError:
        raise ValueError(f"it is nested deeper than {DEEPEST} levels") from None
    except msgspec.MsgspecError as fault:
        raise ValueError(str(fault)) from None
