"""Finds keys in text: known secret values, and text in the form of a provider's key.

All text of a run passes through this search, and almost none holds a key; so one compiled pattern
finds where a key may begin. If a value and a form begin at one position, the longer counts; of two
forms, the first in `PATTERNS`.

Rule: while more text may come (`final` is False), a form that reaches the end of the text is
undecided, unless it is longer than `LONGEST_KEY`: a stream does not wait for the end of such a key.
A secret value, however long, is undecided until it is whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from .key_forms import PATTERNS, SHORTEST_VALUE, Pattern, list_written_forms

LONGEST_KEY = 4096  # characters of a key, in the form of a provider's, that a stream holds back
# characters before a position that decide whether a key may begin there: those of a JSON escape
CONTEXT_LENGTH = 6
# the letter or digit that ends an escape does not belong to the word after it
_after_escape = re.compile(r"\\(?:[bfnrt]|u[0-9a-fA-F]{4})\Z").search
# an escape that the end of the text may have cut
_CUT_ESCAPE = r"\\(?:[bfnrt]|u[0-9a-fA-F]{0,4})?\Z"
_cut_escape = re.compile(_CUT_ESCAPE).match
# matches the characters of a key from a position on, perhaps none
CharsMatcher = Callable[[str, int], Any]


class KeyMatch(msgspec.Struct, frozen=True):
    """A key from `start` to `end`, to be replaced by `label`.

    Without an `end` it is undecided: only later text can show whether it is a key. `chars` matches
    the characters with which the key may go on; None if it has a fixed end.
    """

    start: int
    end: int | None = None
    label: str = ""
    chars: CharsMatcher | None = None


class _Form(NamedTuple):
    """A form of keys with one of its starts; `chars` matches the characters after the start."""

    start: str
    pattern: Pattern
    chars: CharsMatcher


class KeySearch:
    """Finds keys: the values of `secrets` (name, value), and the forms of providers' keys.

    Creating it compiles patterns, which is slow; `search_for` caches it.
    """

    def __init__(self, secrets: Iterable[tuple[str, str]]) -> None:
        values: dict[str, str] = {}  # each written form of a value -> its name
        for name, value in secrets:
            if len(value) >= SHORTEST_VALUE:
                values |= dict.fromkeys(list_written_forms(value), name)
        self._values = sorted(values.items(), key=lambda item: -len(item[0]))
        starts = {start for pattern in PATTERNS for start in pattern.starts}
        self._forms: dict[str, list[_Form]] = {}  # by the first character of their start
        for pattern in PATTERNS:
            for start in pattern.starts:
                chars = re.compile(f"[{pattern.chars}]*+").match
                self._forms.setdefault(start[0], []).append(_Form(start, pattern, chars))
        # a beginning is enough for the search: `_find_value` decides
        prefixes = [v[:8] for v in values]
        # where a key may begin: ordinary text costs this one search, for the beginning of a key or,
        # at the end of the text, for part of one
        patterns = [
            _CUT_ESCAPE,
            *_list_start_patterns(starts, _boundary_before),
            *_list_start_patterns(prefixes),
        ]
        self.find_start = re.compile("|".join(patterns)).search

    def redact(self, text: str) -> str:
        """Return a whole text with every key replaced by its label."""
        out, pos = [], 0
        while (key := self.find(text, pos, final=True)) is not None:
            out += [text[pos : key.start], key.label]
            pos = len(text) if key.end is None else key.end
        return "".join((*out, text[pos:])) if out else text

    def find(self, text: str, start: int, *, final: bool) -> KeyMatch | None:
        """Return the next key from `start` on, or None."""
        pos = start
        while candidate := self.find_start(text, pos):
            at = candidate.start()
            key = self._find_value(text, at, final=final)
            if _may_begin(text, at):
                key = _choose_longer(self._find_form(text, at, final=final), key)
            # a JSON escape cut in two: whether a key begins after it is not known yet
            if key is None and text[at] == "\\" and not final and _cut_escape(text, at):
                key = KeyMatch(at)
            if key is not None:
                return key
            pos = at + 1
        return None

    def _find_value(self, text: str, at: int, *, final: bool) -> KeyMatch | None:
        """Return the secret value that begins at `at`; undecided if the text ends within it."""
        remaining = len(text) - at
        for value, name in self._values:
            if text.startswith(value, at):
                return KeyMatch(at, at + len(value), f"[redacted {name}]")
            if not final and remaining < len(value) and value.startswith(text[at:]):
                return KeyMatch(at)
        return None

    def _find_form(self, text: str, at: int, *, final: bool) -> KeyMatch | None:
        """Return the key in a provider's form that begins at `at`; undecided if it may go on."""
        undecided = None
        for start, pattern, chars in self._forms.get(text[at], ()):
            if text.startswith(start, at):
                end = chars(text, at + len(start)).end()
                if end == len(text) and not final and end - at <= LONGEST_KEY:
                    return KeyMatch(at, chars=chars)
                if end - at > LONGEST_KEY or _fits(pattern, text[at + len(start) : end]):
                    return KeyMatch(at, end, self._label(text[at:end], pattern, start), chars)
            elif not final and start.startswith(text[at:]):
                undecided = KeyMatch(at)
        return undecided

    def _label(self, key: str, pattern: Pattern, start: str) -> str:
        """Return what replaces a key: the name of its secret if known, else that of its form."""
        kept_start = start if pattern.keeps_start else ""
        secret = key.removeprefix(kept_start)
        name = next((name for value, name in self._values if value == secret), pattern.name)
        return f"{kept_start}[redacted {name}]"


def _choose_longer(first: KeyMatch | None, second: KeyMatch | None) -> KeyMatch | None:
    """Return the undecided candidate, else the longer one."""
    if first is None or second is None:
        return first or second
    if first.end is None:
        return first
    return second if second.end is None or second.end > first.end else first


def _may_begin(text: str, at: int) -> bool:
    """Return whether no letter or digit precedes `at`, except one that ends a JSON escape."""
    last = text[at - 1 : at]
    return (
        not (last.isascii() and last.isalnum())
        or _after_escape(text, max(0, at - CONTEXT_LENGTH), at) is not None
    )


def _fits(pattern: Pattern, body: str) -> bool:
    """Return whether `body`, the text after the start of a form, is long and varied enough."""
    if len(body) < pattern.shortest:
        return False
    if not pattern.mixed or len(body) >= 2 * pattern.shortest:
        return True
    # a short body of lower-case letters alone is an ordinary word, such as a part of an identifier
    return re.search("[A-Z0-9]", body) is not None


# the key in the tree that marks the end of a word: the search ends there, so a longer word with
# this beginning needs no branch
_WORD_END = ""


def _boundary_before(length: int) -> str:
    """Return a pattern that holds if a word may begin `length` characters back.

    It only narrows the search: `_may_begin` decides.
    """
    seen = "(?s:.)" * length
    return rf"(?:(?<![A-Za-z0-9]{seen})|(?<=\\[bfnrt]{seen})|(?<=\\u[0-9a-fA-F]{{4}}{seen}))"


def _list_start_patterns(
    texts: Iterable[str], before: Callable[[int], str] = lambda _: ""
) -> list[str]:
    """Return patterns that find each of the `texts`, or its start at the end of the searched text.

    They are made from a tree of characters: for `ab` and `ac`, `a(?:\\Z|b…|c…)`. `before(n)` is a
    pattern that must hold n characters back; it is checked late, because looking behind is slow.
    """
    tree: dict[str, Any] = {}
    for word in texts:
        node = tree
        for char in word:
            node = node.setdefault(char, {})
        node[_WORD_END] = {}
    patterns = []
    for first, below in sorted(tree.items()):
        branches = [rf"\Z{before(1)}"]
        for second, node in sorted(below.items()):
            branches.append(re.escape(second) + before(2) + _follow_node(node))
        patterns.append(f"{re.escape(first)}(?:{'|'.join(branches)})")
    return patterns


def _follow_node(node: dict[str, Any]) -> str:
    """Return a pattern for what may follow a node of the tree."""
    if _WORD_END in node:
        return ""
    branches = [re.escape(char) + _follow_node(below) for char, below in sorted(node.items())]
    return rf"(?:\Z|{'|'.join(branches)})"


_compile_search = lru_cache(maxsize=32)(KeySearch)


def search_for(secrets: Mapping[str, str] | None) -> KeySearch:
    """Return the search for `secrets` (values by name) and for the forms of keys; cached."""
    # as pairs, because the cache must hash them
    return _compile_search(tuple(sorted(secrets.items())) if secrets else ())
