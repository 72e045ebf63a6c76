"""One opening tag with attributes, read while it arrives: `<thinking thought="a > b" />`.

Why: an attribute value may hold `>` and may be cut anywhere, and text that only looks like a tag
must be released at once.

Rules
- An attribute has a value: in double quotes, in single quotes or bare. If a name lacks its `=`, the
  whole tag is text.
- The five XML entities are decoded in values, because a quote cannot be written otherwise.
- A tag longer than `LONGEST_TAG` characters is text.
- Reading takes linear time: a whole attribute is not matched again, and an open value is only
  searched for its end.
"""

from __future__ import annotations

import re
from xml.sax.saxutils import unescape

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
        self.closed = False  # it ends with "/>"
        self._read = 1 + len(name)  # characters of the tag that are read and need no second look
        self._quote = ""  # of the value that is open
        self._length = 0  # characters of the tag that were searched for that quote

    def read(self, text: str, start: int) -> int | None:
        """Return the position after the tag at `start`, -1 if there is none, None if undecided."""
        if self._quote:
            if text.find(self._quote, start + self._length) < 0:
                return self._undecided(text, start)
            self._quote = ""
        pos = start + self._read
        while match := _ATTRIBUTE(text, pos):
            value = next(v for v in match.groups()[1:] if v is not None)
            self.attributes[match[1]] = unescape(value, _QUOTES)
            pos = match.end()
        self._read = pos - start
        if match := _END(text, pos):
            self.closed = bool(match[1])
            return match.end() if match.end() - start <= LONGEST_TAG else -1
        if match := _OPEN_VALUE(text, pos):
            self._quote = text[text.index("=", pos) + 1 :].lstrip()[0]
            return self._undecided(text, start)
        return self._undecided(text, start) if _UNFINISHED(text, pos) else -1

    def _undecided(self, text: str, start: int) -> int | None:
        self._length = len(text) - start
        return None if self._length <= LONGEST_TAG else -1
