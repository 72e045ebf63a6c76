"""Markdown that grows: finished parts are rendered once, and only the open end again and again.

Why: the time and messages of an answer must grow with its length, not with its square.

Rules
- The finished parts (`frozen`) depend on the text alone, not on the pieces in which it arrives.
- `frozen` only grows until `close`; then parts that use a link defined further down change in
  place.
- For display, the open end is completed (an open fence, half a table, an unclosed `**`); a frozen
  part is rendered from the text as it came.
- All HTML is sanitised here; the result may be put into a page unchanged.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .. import visible
from ..state.text import Text, in_fence
from .sanitize import clean
from .split import Segment, Splitter, parse

if TYPE_CHECKING:
    from .mathml import Formulas

CARET = "▍"  # where the text will continue
# a text without any of these has no formula
_OPENER = re.compile(r"\$|\\[(\[]|\\begin\{")


class MarkdownStream:
    """Markdown text in, HTML of finished parts (`frozen`) and of the open end (`tail`) out.

    `changed`: the index of the first part that `close` rendered again, because a link in it was
    defined later. `formulas`: makes formulas MathML (None: they stay TeX for the front end).
    """

    def __init__(self, formulas: Formulas | None = None) -> None:
        self._formulas = formulas
        self.frozen: list[str] = []
        self.changed: int | None = None
        self._splitter = Splitter()
        # finished parts that may use a link definition yet to come
        self._linked: dict[int, Segment] = {}
        self._with_tex: dict[int, Segment] = {}  # finished parts that may hold TeX

    def feed(self, text: str) -> None:
        """Add text; the next call of another method renders it."""
        self._splitter.feed(visible.show_prose(text))

    def advance(self) -> None:
        """Freeze the finished parts."""
        self._freeze(final=False)

    def close(self) -> None:
        """Freeze everything and apply late link definitions."""
        self._freeze(final=True)
        labels = [f"[{label}" for label in self._splitter.references]  # markdown-it's: upper case
        for index, segment in self._linked.items() if labels else ():
            upper = segment.source.upper()
            if any(label in upper for label in labels):
                self.frozen[index] = self._html(segment)
                self.changed = index if self.changed is None else self.changed

    def tail(self, *, caret: bool = False) -> str:
        """Return the HTML of the open end, with its formulas as code.

        `caret` marks where the text will continue.
        """
        self.advance()
        segment = self._splitter.tail()
        if not self._splitter.rest.strip():
            return ""
        return self._html(
            Segment(sensible(segment.source, caret=caret), segment.first, True, segment.number),
            unset=True,
        )

    def unset(self, start: int) -> str:
        """Return the HTML of the finished parts from `start` on, with their formulas as code."""
        rest = range(start, len(self.frozen))
        return "".join(
            self._html(self._with_tex[n], unset=True) if n in self._with_tex else self.frozen[n]
            for n in rest
        )

    def html(self, *, caret: bool = False) -> str:
        """Return the HTML of the whole text as it looks now."""
        tail = self.tail(caret=caret)  # first, since it finishes some parts
        return "".join(self.frozen) + tail

    def _freeze(self, *, final: bool) -> None:
        for segment in self._splitter.finished(final=final):
            # without tokens: rendering changes them, and they take much memory
            source = Segment(segment.source, segment.first, segment.last, segment.number)
            if "[" in segment.source:
                self._linked[len(self.frozen)] = source
            if _OPENER.search(segment.source):
                self._with_tex[len(self.frozen)] = source
            self.frozen.append(self._html(segment))

    def _html(self, segment: Segment, *, unset: bool = False) -> str:
        from .html import FORMULAS, UNSET, tokens_html

        references = self._splitter.references
        tokens = segment.tokens or [
            t for block in parse(segment.source, references)[0] for t in block.tokens
        ]
        env = {UNSET: unset} if self._formulas is None else {FORMULAS: self._formulas}
        html = clean(
            tokens_html(tokens, env, first=segment.first, last=segment.last, number=segment.number)
        )
        html = without_spare(html)
        return html if self._formulas is None else self._formulas.fill(html)


# an end tag that HTML allows to omit, or another tag of a block; and the line end after it
_SPARE = re.compile(
    r"(?:</(?:li|t[dhr]|thead|tbody)>"
    r"|(</(?:p|h[1-6]|[uo]l|blockquote|pre|table|div)>|<(?:[uo]l|li|blockquote|t(?:able|head|body|r)|hr)\b[^>]*>))\n?"
)


def without_spare(html: str) -> str:
    """Return rendered markdown without optional end tags and without line ends between blocks.

    A notebook would keep them, and a growing answer would send them many times.
    """
    return _SPARE.sub(r"\1", html)


class _Memo:
    """The rendering that a `Text` keeps: the stream, and how many characters it was fed."""

    def __init__(self) -> None:
        self.stream = MarkdownStream()
        self.fed = 0
        self.closed = False


def stream_of(text: Text, *, closed: bool) -> MarkdownStream:
    """Return the stream of a growing text, fed with all of it; `closed`: no more will come."""
    memo = text.memo(_Memo)
    if memo.fed < len(text):
        memo.stream.feed(text.tail(len(text) - memo.fed))
        memo.fed = len(text)
    if closed and not memo.closed:
        memo.stream.close()
        memo.closed = True
    return memo.stream


def render(text: str, formulas: Formulas | None = None) -> str:
    """Return the sanitised HTML of a whole markdown text; `formulas`: see `MarkdownStream`."""
    stream = MarkdownStream(formulas)
    stream.feed(text)
    stream.close()
    return "".join(stream.frozen)


# The unfinished end of a text.

# marks alone on a line may become a list, a heading, a rule or a fence
_UNDECIDED = re.compile(r"^ {0,3}(?:[-=*_+#~`>|:]{1,6}|\d{1,9}[.)]?)[ \t]*\Z")
# a link, or only its text, without an end
_LINK = re.compile(r"!?\[([^\[\]\n]*)\]\([^()\s]*\Z")
_OPEN_TEXT = re.compile(r"!?\[([^\[\]\n]*)\Z")
# the row of delimiters below a table's header, complete or not
_DELIMITERS = re.compile(r"^ {0,3}\|?[ \t]*:?-*:?[ \t|:-]*\Z")


def sensible(source: str, *, caret: bool = False) -> str:
    """Return an unfinished source as it will most probably read.

    Half a marker is hidden; open emphasis, code and formulas are closed; a new table is drawn.
    """
    head, line = source[: source.rfind("\n") + 1], source[source.rfind("\n") + 1 :]
    if in_fence(source):
        return source
    if (completed := _complete_table(source)) or (completed := _close_display(source)):
        return completed
    if _UNDECIDED.match(line):
        return head
    start = head.rfind("\n\n") + 2 if "\n\n" in head else 0
    closed = _close_marks(head[start:] + line)
    mark = CARET if caret and closed.strip() and "|" not in line else ""
    return head[:start] + closed + mark


def _complete_table(source: str) -> str:
    """Return a source that ends in a new table, with its delimiter row completed; else ""."""
    lines = source.rstrip("\n").split("\n")
    last = len(lines) - 1
    if (
        last >= 1
        and lines[last - 1].lstrip().startswith("|")
        and _DELIMITERS.match(lines[last])
        and (last < 2 or "|" not in lines[last - 2])
    ):
        top = last - 1
    elif lines[last].lstrip().startswith("|") and (last < 1 or "|" not in lines[last - 1]):
        top = last
    else:
        return ""
    header = _LONE.sub("", _close_formula(lines[top].strip()))
    cells = max(1, header.strip("|").count("|") + 1)
    closed = header if header.endswith("|") and len(header) > 1 else header + " |"
    return "\n".join([*lines[:top], closed, "|" + "---|" * cells])


def _close_display(source: str) -> str:
    """Return a source that ends in an open display formula, with the formula closed; else ""."""
    start = source.rfind("\n\n") + 2 if "\n\n" in source else 0
    opened = _DISPLAY.match(source, start)
    if opened is None:
        return ""
    formula = opened[2].rstrip().rstrip("\\$")
    if formula.strip():
        return f"{source[:start]}{opened[1]}{formula}{_CLOSE[opened[1].strip()]}"
    return source[:start]


# opener of a formula -> its end
_CLOSE = {"$$": "$$", "\\[": "\\]", "\\(": "\\)", "$": "$"}
# a display formula that is open to the end
_DISPLAY = re.compile(r"( {0,3}(?:\$\$|\\\[))((?:(?!\$\$|\\\]).)*)\Z", re.DOTALL)
# code spans and formulas that are closed
_WHOLE = re.compile(
    r"`[^`]*`|\$\$[^$]+\$\$|(?<!\$)\$(?![\s$])(?:[^$\\\n]|\\.)+?(?<!\s)\$(?!\d)|\\\((?:(?!\\\)).)*\\\)|\\\[(?:(?!\\\]).)*\\\]",
    re.DOTALL,
)
# a formula that is open to the end; the group that matched is its opener
_OPEN_FORMULA = re.compile(
    r"(?:(?P<two>\$\$)[^$]{0,999}\$?|(?P<paren>\\[(\[])(?:(?!\\[()[\]]).){0,999}"
    r"|(?<![\w\\$])(?P<one>\$)(?![\s\d])(?:(?!\\[()[\]])[^$\n]){0,80})\Z",
    re.DOTALL,
)
# a dollar before words is a price, unless these characters make it a formula
_WORDS = re.compile(r"[A-Za-z]{3,},? [A-Za-z]{2,}")
_TEX = re.compile(r"[\\^_{}=+<>]")
_LONE = re.compile(r"(?<!\\)\\\Z")  # a backslash at the end may become anything


def _close_formula(text: str) -> str:
    """Return running text with its open formula closed, or hidden if it is still empty.

    A price and `$HOME` are text.
    """
    masked = _WHOLE.sub(lambda m: " " * len(m.group()), text)
    opened = _OPEN_FORMULA.search(masked)
    if opened is None:
        return text
    opener, start = opened[opened.lastgroup or 0], opened.end(opened.lastgroup or 0)
    formula = text[start:].rstrip("\\$ \n")
    if (
        opener == "$"
        and _WORDS.search(masked, start)
        and not _TEX.search(masked.rstrip("\\"), start)
    ):
        return text
    if formula.strip():
        return f"{text[: opened.start()]}{opener}{formula}{_CLOSE[opener]}"
    return text[: opened.start()]


def _close_marks(text: str) -> str:
    """Return running text with open code, formulas, emphasis and links closed."""
    if text.count("`") % 2:
        return text + "`"
    text = _LONE.sub("", _close_formula(text))
    text = _LINK.sub(r"\1", text)
    text = _OPEN_TEXT.sub(r"\1", text)
    bare = _WHOLE.sub("", text)
    stripped = text.rstrip(" ")
    if bare.count("**") % 2:
        if stripped.endswith("**"):
            return stripped.removesuffix("**")
        return stripped.removesuffix("*") + "**"
    if re.search(r"(?<![*\w])\*[^*\s][^*\n]*\Z", bare):
        return stripped + "*"
    return text
