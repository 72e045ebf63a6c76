"""Markdown for a terminal: lines in the terminal's width, written once, as the text grows.

Why our own: libraries for terminals redraw a text that still grows, and let its escape sequences
through.

Rule: a line is written as soon as later text cannot change it; only the definition of a link, or
the underline of a heading, may come too late. So of the open end, the first block is drawn without
its last line, up to the last place where no emphasis, code, link or formula is open.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec
from markdown_it.rules_inline import StateInline
from markdown_it.rules_inline.state_inline import Scanned
from markdown_it.tree import SyntaxTreeNode

from .. import visible
from ..markdown.formulas import LONGEST_FORMULA, find_formula_end
from ..markdown.html import parser
from ..markdown.split import Segment, Splitter, parse_segment
from .terminal_blocks import BlockDrawer, Terminal

GROWTH = 20  # the open end is drawn again once 1/GROWTH of it is new
# a fence, or an indented block
_begins_code = re.compile(r"\n*(?: {0,3}(?:```|~~~|\t)| {4})").match
# what later text may give another meaning: an escape or formula, code, marks, a bracket, a dollar;
# and an address, in which no mark has a meaning
_MARK = re.compile(r"\\.|`+|<[A-Za-z][\w+.-]*:[^\s<>]*>|\*+|_+|~~+|\[|\$", re.DOTALL)
# a bracket with a whole link, or with text after it that excludes a link
_DECIDED_BRACKET = re.compile(r"\[[^\[\]]*\](?:\((?:[^()]|\([^()]*\))*\)|\[[^\[\]]*\]|[^(\[])")
# a dollar that begins no formula, whatever follows
_PRICE = re.compile(r"\$(?:\s|(?!\$)(?:[^$\\\n]|\\.)*[$\n])")
_UNMARKED = re.compile(r"[^\\`*_~\[<&$\n]*\Z")


class MarkdownWriter:
    """Markdown in, finished lines out; each line is returned once."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._splitter = Splitter()
        self._written = 0  # lines of the open block that are returned already
        self._drawn = 0  # characters of the open end when it was last looked at
        self._blocks = 0  # blocks of which a line has been returned

    def feed(self, text: str) -> list[str]:
        """Add text; return the lines that it finishes."""
        self._splitter.feed(visible.show_prose(text))
        return [*self._take(final=False), *self._open_lines()]

    def close(self) -> list[str]:
        """End the text; return the lines that were not returned yet."""
        return list(self._take(final=True))

    def _take(self, *, final: bool) -> Iterator[str]:
        for segment in self._splitter.finished(final=final):
            lines = self._draw(segment)
            yield from self._select_new(lines, first=segment.first)
            self._written = 0 if segment.last else max(0, self._written - len(lines))
            self._drawn = 0

    def _select_new(self, lines: Sequence[str], *, first: bool) -> list[str]:
        """Return the lines that were not returned yet, after an empty line between blocks."""
        new = list(lines[self._written :])
        if not new:
            return []
        space = [""] if first and not self._written and self._blocks else []
        self._blocks += first and not self._written
        return [*space, *new]

    def _open_lines(self) -> list[str]:
        """Return the new lines of the open end that no later text can change."""
        tail = self._splitter.tail()
        size = len(tail.source)
        # a long open end is drawn at each growth by a fixed share: linear time in all
        if size - self._drawn < size // GROWTH:
            return []
        self._drawn = size
        source = _select_settled(tail.source)
        if not source:
            return []
        # only the first block: another one may have begun in the same lines (a list below a text)
        lines = self._draw(msgspec.structs.replace(tail, source=source), most_blocks=1)
        if not _begins_code(source) or not self._terminal.styled:
            lines = lines[:-1]  # the last line may get another word, or is the closing fence
        new = self._select_new(lines, first=tail.first)
        self._written = max(self._written, len(lines))
        return new

    def _draw(self, segment: Segment, *, most_blocks: int | None = None) -> list[str]:
        tokens = parse_segment(segment, self._splitter.references)
        drawer = BlockDrawer(self._terminal, segment.number)
        try:
            blocks = SyntaxTreeNode(tokens).children[:most_blocks]
            return drawer.blocks(blocks, self._terminal.width)
        except RecursionError:  # thousands of emphases in one another
            return visible.show_output(segment.source).rstrip("\n").split("\n")


def _select_settled(source: str) -> str:
    """Return the longest beginning of an open block that later text does not change, or ""."""
    if _begins_code(source):
        return source[: source.rfind("\n") + 1]
    has_row = "|" in source.partition("\n")[0]
    if has_row or source.lstrip().startswith(("$$", "\\[", "\\begin")):
        return ""  # a table needs its last row for the widths, a formula its end
    whole_words = source[: _end_of_words(source, 0, len(source))]
    return whole_words[: _end_of_decided(whole_words)]


def _end_of_words(source: str, begin: int, end: int) -> int:
    """Return the position after the last space or line end between two positions, 0 if none."""
    return max(source.rfind(" ", begin, end), source.rfind("\n", begin, end)) + 1


def _end_of_decided(source: str) -> int:
    """Return the end of the last word behind which no emphasis, code, link or formula is open."""
    line = StateInline(source, parser(), {}, [])  # decides as the parser which marks open or close
    decided, at, opened = 0, 0, ""  # `opened`: the marks of emphasis that are open
    while True:
        match = _MARK.search(source, at)
        begin = match.start() if match else len(source)
        if not opened:
            decided = max(decided, _end_of_words(source, at, begin))
        if match is None:
            return decided
        mark, at = match[0][0], match.end()
        if mark in "*_~":
            opened = _track_emphasis(opened, mark, line.scanDelims(begin, mark != "_"))
        elif mark != "<":
            at = _find_decided_end(source, match)
            if not at:
                return decided


def _track_emphasis(opened: str, mark: str, run: Scanned) -> str:
    """Return the open marks after a run of one mark: it closes open ones, else opens its own."""
    unused = run.length
    while unused and run.can_close and mark in opened:
        opened, unused = opened[: opened.rindex(mark)], unused - 1
    return opened + mark * unused if run.can_open else opened


def _find_decided_end(source: str, match: re.Match[str]) -> int:
    """Return the end of code, an escape, a formula or its opener; 0 if later text decides it."""
    begin, mark = match.start(), match[0]
    if mark[0] == "`":
        close = re.compile(f"(?<!`){mark}(?!`)").search(source, match.end())
        return close.end() if close else 0
    if mark == "[":
        return match.end() if _DECIDED_BRACKET.match(source, begin) else 0
    if mark not in ("$", "\\(", "\\["):
        return match.end()
    formula_end = find_formula_end(source, begin, len(source))
    if formula_end:
        return formula_end
    is_text = len(source) - begin > LONGEST_FORMULA + 4 or _PRICE.match(source, begin)
    looks_alike = mark == "$" and _UNMARKED.match(source, match.end())  # as text and as a formula
    return match.end() if is_text or looks_alike else 0
