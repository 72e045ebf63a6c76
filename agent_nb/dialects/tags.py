"""Thought tags such as `<think>`: which ones count where, and the reader of an opening tag.

An opening tag such as `<thinking thought="a > b" />` may hold `>` in a value, and may arrive in
pieces; text that only looks like a tag must be released at once. If a name lacks its `=`, or the
tag is longer than `LONGEST_TAG` characters, the whole tag is text.

Rule: reading takes linear time: a whole attribute is not matched again, and an open value is only
searched for its end.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any, Protocol, runtime_checkable
from xml.sax.saxutils import unescape

import msgspec

from .base import Parser
from .scanner import Markers


class ThoughtTags(msgspec.Struct, frozen=True):
    """Names of thought tags.

    `leading`: those that count only before the first visible character of a turn. `anywhere`: those
    that count wherever there is text, except in code fences.
    """

    leading: tuple[str, ...] = ()
    anywhere: tuple[str, ...] = ()


NO_TAGS = ThoughtTags()


@runtime_checkable
class Taggable(Protocol):
    """A dialect whose parser can also read thought tags."""

    def tagged_parser(self, tags: ThoughtTags) -> Parser:
        """Return a parser that also reads `tags` (see `thinking`) where it reads text."""


@cache
def markers_with_tags(
    pattern: str, markers: tuple[str, ...], tags: tuple[str, ...], *, fold: bool = False
) -> Markers:
    """Return the markers of a dialect with the thought tags `tags` after them."""
    if not tags:  # "(?!)" matches nothing
        return Markers(pattern or "(?!)", markers, fold=fold)
    # the longest first: a regular expression takes the first alternative that matches
    names = "|".join(sorted(map(re.escape, tags), key=len, reverse=True))
    tagged = rf"<(?P<tag>{names})(?=[\s/>])"
    texts = (*markers, *(f"<{tag}" for tag in tags))
    return Markers(f"{pattern}|{tagged}" if pattern else tagged, texts, fold=fold)


LONGEST_TAG = 8192  # characters of a tag
_NAME = r"[A-Za-z_][\w.:-]{0,63}"
_BARE = r"[^\s\"'<>=`/]"
_ATTRIBUTE = re.compile(
    rf"\s{{1,99}}({_NAME})\s{{0,99}}=\s{{0,99}}(?:\"([^\"]*)\"|'([^']*)'|({_BARE}{{1,99}})(?=[\s/>]))"
).match
_END = re.compile(r"\s{0,99}(/?)>").match
# an attribute, or the end of the tag, of which only a beginning has come
_UNFINISHED = re.compile(
    rf"\s{{0,99}}(?:{_NAME}(?:\s{{0,99}}(?:=\s{{0,99}}(?:([\"'])[^\"']*|{_BARE}{{0,99}})?)?)?)?/?\Z"
).match
# an attribute whose closing quote has not come
_OPEN_VALUE = re.compile(rf"\s{{1,99}}{_NAME}\s{{0,99}}=\s{{0,99}}(?:\"[^\"]*\Z|'[^']*\Z)").match
_QUOTES = {"&quot;": '"', "&apos;": "'"}  # the XML entities that `unescape` does not know


class TagReader:
    """Reads the tag that begins with `<name`; call `read` again when more text has come."""

    def __init__(self, name: str) -> None:
        self.attributes: dict[str, str] = {}
        self.is_empty = False  # it ends with "/>": no text and no closing tag follow
        # from the "<" on, the number of characters up to the end of the last whole attribute
        self._matched = 1 + len(name)
        self._quote = ""  # the closing quote of the open value
        self._searched = 0  # how many characters after the "<" do not hold that quote

    def read(self, text: str, start: int) -> int | None:
        """Return the position after the tag at `start`, -1 if there is none, None if undecided."""
        if self._quote:
            if text.find(self._quote, start + self._searched) < 0:
                return self._undecided(text, start)
            self._quote = ""
        pos = start + self._matched
        while match := _ATTRIBUTE(text, pos):
            value = next(v for v in match.groups()[1:] if v is not None)
            self.attributes[match[1]] = unescape(value, _QUOTES)
            pos = match.end()
        self._matched = pos - start
        if match := _END(text, pos):
            self.is_empty = bool(match[1])
            return match.end() if match.end() - start <= LONGEST_TAG else -1
        if match := _OPEN_VALUE(text, pos):
            self._quote = text[text.index("=", pos) + 1 :].lstrip()[0]
            return self._undecided(text, start)
        return self._undecided(text, start) if _UNFINISHED(text, pos) else -1

    def _undecided(self, text: str, start: int) -> int | None:
        self._searched = len(text) - start
        return None if self._searched <= LONGEST_TAG else -1

    def split_thought(self) -> tuple[str, dict[str, Any] | None]:
        """Return the thought in the attributes ("" for none), and the other attributes, if any.

        The thought is the attribute `thought`, else `content`. A numeric `confidence` is a float.
        """
        attributes: dict[str, Any] = dict(self.attributes)
        thought = attributes.pop("thought", "") or attributes.pop("content", "")
        confidence = attributes.get("confidence", "")
        if re.fullmatch(r"-?\d{1,9}(\.\d{1,17})?", confidence, re.ASCII):
            attributes["confidence"] = float(confidence)
        return thought, attributes or None
