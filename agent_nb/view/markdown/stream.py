"""Markdown that grows: finished parts are rendered once, and only the open end again and again.

Why: the time and messages of an answer must grow with its length, not with its square.

Rules
- `frozen`, the finished parts, only grows until `close`, which renders parts again that use a link
  defined further down.
- All HTML is sanitised here; MathML, filled in afterwards, has the allow-lists of `mathml`. So the
  result may be put into a page unchanged.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .. import visible
from ..state.text import Text
from .open_end import complete_source
from .sanitize import clean
from .split import Segment, Splitter, parse_segment

if TYPE_CHECKING:
    from .mathml import Formulas

# a text without any of these has no formula
_OPENER = re.compile(r"\$|\\[(\[]|\\begin\{")
# an end tag that HTML allows to omit, or another tag of a block; and the line end after it
_SPARE = re.compile(
    r"(?:</(?:li|t[dhr]|thead|tbody)>"
    r"|(</(?:p|h[1-6]|[uo]l|blockquote|pre|table|div)>|<(?:[uo]l|li|blockquote|t(?:able|head|body|r)|hr)\b[^>]*>))\n?"
)


class MarkdownStream:
    """Markdown text in, HTML of finished parts (`frozen`) and of the open end (`tail`) out.

    `changed`: the index of the first part that `close` rendered again, because a link in it was
    defined later. `formulas`: makes formulas MathML (None: they stay TeX for the front end).
    """

    def __init__(self, formulas: Formulas | None = None) -> None:
        self._formulas = formulas
        self.fed = 0  # characters
        self.closed = False
        self.frozen: list[str] = []
        self.changed: int | None = None
        self._splitter = Splitter()
        # finished parts that may use a link definition yet to come
        self._linked: dict[int, Segment] = {}
        self._with_tex: dict[int, Segment] = {}  # finished parts that may hold TeX

    def feed(self, text: str) -> None:
        """Add text; the next call of another method renders it."""
        self.fed += len(text)
        self._splitter.feed(visible.show_prose(text))

    def advance(self, *, final: bool = False) -> None:
        """Freeze the finished parts; `final`: also the open end."""
        for segment in self._splitter.finished(final=final):
            # without tokens: rendering changes them, and they take much memory
            source = Segment(segment.source, segment.first, segment.last, segment.number)
            if "[" in segment.source:
                self._linked[len(self.frozen)] = source
            if _OPENER.search(segment.source):
                self._with_tex[len(self.frozen)] = source
            self.frozen.append(self._html(segment))

    def close(self) -> None:
        """Freeze everything and apply late link definitions."""
        self.closed = True
        self.advance(final=True)
        for index, segment in self._linked.items() if self._splitter.references else ():
            html = self._html(segment)
            if html != self.frozen[index]:
                self.frozen[index] = html
                self.changed = index if self.changed is None else self.changed

    def tail(self, *, caret: bool = False) -> str:
        """Return the HTML of the open end, with its formulas as code.

        `caret` marks where the text will continue.
        """
        self.advance()
        segment = self._splitter.tail()
        if not self._splitter.rest.strip():
            return ""
        source = complete_source(segment.source, caret=caret)
        completed = Segment(source, segment.first, True, segment.number)
        return self._html(completed, tex_as_code=True)

    def untypeset_html(self, start: int) -> str:
        """Return the HTML of the finished parts from `start` on, with their formulas as code."""
        return "".join(
            self._html(self._with_tex[n], tex_as_code=True) if n in self._with_tex else html
            for n, html in enumerate(self.frozen[start:], start)
        )

    def html(self, *, caret: bool = False) -> str:
        """Return the HTML of the whole text as it looks now."""
        tail = self.tail(caret=caret)  # first, since it finishes some parts
        return "".join(self.frozen) + tail

    def _html(self, segment: Segment, *, tex_as_code: bool = False) -> str:
        from .html import FORMULAS, TEX_AS_CODE, tokens_html

        tokens = parse_segment(segment, self._splitter.references)
        env = {TEX_AS_CODE: tex_as_code} if self._formulas is None else {FORMULAS: self._formulas}
        raw = tokens_html(
            tokens, env, first=segment.first, last=segment.last, number=segment.number
        )
        html = drop_spare_tags(clean(raw))
        return html if self._formulas is None else self._formulas.fill(html)


def drop_spare_tags(html: str) -> str:
    """Return rendered markdown without optional end tags and without line ends between blocks.

    A notebook would keep them, and a growing answer would send them many times.
    """
    return _SPARE.sub(r"\1", html)


def stream_of(text: Text, *, closed: bool) -> MarkdownStream:
    """Return the stream of a growing text, fed with all of it; `closed`: no more will come."""
    stream = text.memo(MarkdownStream)
    if stream.fed < len(text):
        stream.feed(text.tail(len(text) - stream.fed))
    if closed and not stream.closed:
        stream.close()
    return stream


def render(text: str, formulas: Formulas | None = None) -> str:
    """Return the sanitised HTML of a whole markdown text; `formulas`: see `MarkdownStream`."""
    stream = MarkdownStream(formulas)
    stream.feed(text)
    stream.close()
    return "".join(stream.frozen)
