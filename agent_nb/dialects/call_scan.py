"""Follows the JSON text of tool calls across chunks, before it is complete.

A parser must know where the block of a call ends, and people see arguments as they grow. Whether
the JSON is valid is decided later, once and on the whole text (`calls`). The unfinished text

    [{"name": "search", "args": {"query": "high ti

already yields `CallDelta('{"query": "high ti', name="search")`.

Rules
- Every character is visited once. Only the keys and texts of the call object itself, and the
  arguments that are yielded, are copied.
- Arguments are yielded as CallDelta, a preview (see `base`). A call whose name follows its
  arguments has no preview.
"""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from ..models import CallDelta, Part

Stop = Literal["more", "sigil", "broken", "done"]
# possessive (`++`, `*+`), so that a long string is never read twice
_STRING = re.compile(r'(?:[^"\\\x00-\x1f]++|\\[^\x00-\x1f])*+').match


class CallScan:
    """Follows the JSON text of calls across chunks.

    `sigil`: the first character of a marker. `level`: how many brackets are around a call object
    (0: none, 1: an array). `index`: the number of the first call. `live`: whether to yield
    arguments as they grow.
    """

    def __init__(self, sigil: str, level: int, *, index: int = 0, live: bool = True) -> None:
        self.next_index = index  # of the next call object
        self.deepest = 0  # the most brackets that were open at once
        self._depth = 0  # open brackets
        # the depth among the members of a call, where the strings are its keys and its name
        self._member_depth = level + 1
        self._sigil = sigil
        self._yields_args = live
        self._in_string = False
        # the pieces of the open string; None: that string can be neither a key nor a name
        self._string_pieces: list[str] | None = None
        # of the newest call: its tool, its newest key, and whether the next string is a key
        self._name = self._key = ""
        self._expects_key = True
        # where in this `run` the arguments begin that are not yielded yet; None: outside arguments
        self._args_start: int | None = None
        # find the next character that matters: down to the members of a call, and inside a value
        self._find_in_call = re.compile(rf'["\\\[\]{{}},:{sigil}]').search
        self._find_in_value = re.compile(rf'["\\\[\]{{}}{sigil}]').search

    def run(self, text: str, pos: int, out: list[Part]) -> tuple[Stop, int]:
        """Continue at `pos`; return why and where scanning stopped.

        `more`: at the end of the text, or at half an escape there. `sigil`: at a sigil outside a
        string; continue after it if no marker begins there. `broken`: at invalid JSON. `done`: the
        outermost bracket has closed.
        """
        if self._args_start is not None:
            self._args_start = pos
        stop, pos = self._scan(text, pos, out)
        self._emit_args(text, pos, out)
        return stop, pos

    def _scan(self, text: str, pos: int, out: list[Part]) -> tuple[Stop, int]:
        size = len(text)
        while pos < size:
            if self._in_string:
                pos, closed = self._continue_string(text, pos)
                if not closed:
                    return ("more" if text[pos:] in ("", "\\") else "broken"), pos
                continue
            in_call = self._depth <= self._member_depth
            match = (self._find_in_call if in_call else self._find_in_value)(text, pos)
            if match is None:
                return "more", size
            pos = match.start()
            char = text[pos]
            if char == '"':
                self._in_string = True
                self._string_pieces = [] if self._depth == self._member_depth else None
            elif char == self._sigil:
                return "sigil", pos
            elif char == "\\":
                return "broken", pos
            elif char in "[{":
                self._open_bracket(char, pos)
            elif char in "]}":
                if self._close_bracket(text, pos, out):
                    return "done", pos + 1
            elif self._depth == self._member_depth:
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
        in_value = self._depth == self._member_depth and not self._expects_key
        is_args = in_value and self._key == "args"
        if bracket == "{" and self._depth == self._member_depth - 1:  # a call begins
            self.next_index += 1
            self._name, self._expects_key = "", True
        elif bracket == "{" and is_args and self._name and self._yields_args:
            self._args_start = pos
        self._depth += 1
        self.deepest = max(self.deepest, self._depth)

    def _close_bracket(self, text: str, pos: int, out: list[Part]) -> bool:
        """Close the bracket at `pos`; return whether it was the outermost one."""
        self._depth = max(self._depth - 1, 0)
        if self._depth == self._member_depth:
            self._emit_args(text, pos + 1, out)
            self._args_start = None
        return self._depth == 0

    def _end_string(self) -> None:
        self._in_string = False
        if self._string_pieces is None:
            return
        word, self._string_pieces = "".join(self._string_pieces), None
        if self._expects_key:
            self._key = word
        elif self._key == "name":
            self._name = _unescape(word)

    def _emit_args(self, text: str, end: int, out: list[Part]) -> None:
        """Yield the arguments up to `end`; nothing outside arguments."""
        start = self._args_start
        if start is not None and end > start:
            out.append(CallDelta(text[start:end], self.next_index - 1, name=self._name))
            self._args_start = end


def _unescape(word: str) -> str:
    if "\\" not in word:
        return word
    try:
        return str(msgspec.json.decode(f'"{word}"'))
    except (msgspec.MsgspecError, UnicodeError):
        return ""
