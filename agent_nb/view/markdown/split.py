"""Growing markdown source → finished segments, each a source that can be rendered alone.

Why: a view that renders and sends the whole text with each letter becomes slower with its length.
So the complete lines of the *open end*, the text that is not finished yet, are parsed. Every
top-level block but the last is finished, since a later line can only change the last block; the
last is finished too if an empty line ends its kind. Long lists, tables, code and paragraphs are cut
into *pages*, which repeat the *head* of their block: the header of a table, the opening fence. Of
`# A\\n\\nSome text.\\n\\n- one\\n- t`, the heading and the text are finished, and the list is open.

Rule: the segments depend on the text alone, not on the pieces in which it arrives.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import msgspec
from markdown_it.token import Token

from .formulas import OPEN_END
from .html import parser

WINDOW = 48_000  # characters parsed at once, unless a block is longer
LINE = 4_000  # characters after which a line is broken
# kind of block: units (items, rows, lines) and characters after which a page ends
LIMITS = {"list": (30, 3_000), "table": (60, 6_000), "fence": (60, 6_000)}
LIMIT = (10**9, 6_000)  # other kinds
ENDED = frozenset({"paragraph", "heading", "math_block", "table"})  # kinds that an empty line ends


class Segment(msgspec.Struct, frozen=True):
    """A finished block, or a page of one.

    `first`, `last`: whether it begins, or ends, its block. `number`: the number of its first item,
    in an ordered list that is cut. `tokens`: those of `source`, None if it is not parsed yet.
    """

    source: str
    first: bool = True
    last: bool = True
    number: int | None = None
    tokens: list[Token] | None = None


class Block:
    """A top-level block of a parsed source; lines count from the start of the source."""

    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens
        self.start, self.end = tokens[0].map or [0, 0]
        kind = tokens[0].type
        self.kind = "list" if kind.endswith("_list_open") else kind.removesuffix("_open")

    def units(self) -> list[int]:
        """Return the lines at which items, rows or lines begin: the block may be cut there."""
        if self.kind == "list":
            return [
                t.map[0]
                for t in self.tokens
                if t.type == "list_item_open" and t.level == 1 and t.map
            ]
        # the first unit has the head and one line
        return [self.start, *range(self.start + self.head_lines + 1, self.end)]

    @property
    def head_lines(self) -> int:
        """The number of lines that every page of the block repeats."""
        return {"table": 2, "fence": 1}.get(self.kind, 0)


class OpenBlock(msgspec.Struct, frozen=True):
    """The block that the open end continues.

    `cut`: earlier pages of the block are finished, so `head` goes before the open end. `number`:
    the number of the open end's first item, in an ordered list.
    """

    head: str = ""
    cut: bool = False
    number: int | None = None


class Page(NamedTuple):
    """A page of a block; `open`: that of an open end which begins with this page."""

    segment: Segment
    first_line: int
    open: OpenBlock


class Splitter:
    """Text in, finished segments out. `rest` is the open end, `open` the block that it continues.

    `references`: the link definitions so far, as markdown-it keeps them.
    """

    def __init__(self) -> None:
        self.rest = ""
        self.open = OpenBlock()
        self.references: dict[str, Any] = {}
        self._column = 0  # characters of the line that has no end yet
        self._unfinished = 0  # characters of the window that finished nothing when it was parsed

    def feed(self, text: str) -> None:
        """Add text; lines that are too long are broken."""
        end = text.rfind("\n")
        if len(text) + self._column < LINE:
            self._column = len(text) - end - 1 if end >= 0 else self._column + len(text)
            self.rest += text
            return
        out: list[str] = []
        for line in lines_of(text):
            while self._column + len(line.rstrip("\n")) > LINE:
                room = LINE - self._column
                out.extend((line[:room], "\n"))
                line, self._column = line[room:], 0  # noqa: PLW2901
            out.append(line)
            self._column = 0 if line.endswith("\n") else self._column + len(line)
        self.rest += "".join(out)

    def finished(self, *, final: bool = False) -> Iterator[Segment]:
        """Yield the segments finished since the last call; `final`: also the open end.

        The caller must exhaust the iterator: what it does not take is lost.
        """
        goes_on = True
        while goes_on:
            out: list[Segment] = []
            goes_on = self._parse_window(out, final)
            yield from out

    def tail(self) -> Segment:
        """Return the open end, with its head, as a segment."""
        return Segment(self.open.head + self.rest, first=not self.open.cut, number=self.open.number)

    def _parse_window(self, out: list[Segment], final: bool) -> bool:
        """Parse one window of the open end, add what is finished; return whether to go on."""
        # the whole open end, or the complete lines that fit the window, which doubles if they
        # finished nothing: a block that cannot be cut, such as one item, may be of any length
        size = max(WINDOW, 2 * self._unfinished)
        takes_all = final and len(self.rest) <= size
        window = self.rest if takes_all else self.rest[: self.rest.rfind("\n", 0, size) + 1]
        if not window or (not takes_all and len(window) == self._unfinished):
            return False
        head = self.open.head
        source = head + window
        blocks, definitions = parse(source, self.references, open_end=not takes_all)
        lines = [0, *accumulate(len(line) for line in lines_of(source))]
        ended = takes_all or (bool(blocks) and blocks[-1].kind in ENDED and source.endswith("\n\n"))
        for block in blocks if ended else blocks[:-1]:
            out.extend(page.segment for page in self._cut_pages(block, source, lines))
            self.open = OpenBlock()
        if ended:
            self.references.update(definitions)
            self.rest, self._unfinished = self.rest[len(window) :], 0
            return not takes_all
        start = 0  # the line at which the open end begins
        for block in blocks[-1:]:
            *finished, last = self._cut_pages(block, source, lines)
            out.extend(page.segment for page in finished)
            start, self.open = last.first_line, last.open if finished else self.open
        taken = max(0, lines[start] - len(head))  # characters; the head is not in `rest`
        # definitions below `start` stay in the open end, which is parsed again
        self.references.update({k: v for k, v in definitions.items() if v["map"][1] <= start})
        self.rest, self._unfinished = self.rest[taken:], 0 if taken else len(window)
        return True

    def _cut_pages(self, block: Block, source: str, lines: list[int]) -> list[Page]:
        """Return the pages of a block, one if it is short; `lines`: where each line begins."""
        open_block = self.open if block.start == 0 else OpenBlock()
        units = block.units()
        cut_lines = find_cuts(units, block.end, lines, LIMITS.get(block.kind, LIMIT))
        if not cut_lines:
            text = source[lines[block.start] : lines[block.end]]
            tokens = None if open_block.cut else block.tokens
            segment = Segment(text, not open_block.cut, True, open_block.number, tokens)
            return [Page(segment, block.start, open_block)]
        head = source[lines[block.start] : lines[block.start + block.head_lines]]
        first = open_block.number if open_block.number is not None else _first_number(block)
        pages = []
        for begin, end in zip([block.start, *cut_lines], [*cut_lines, block.end], strict=True):
            # the number of the item that begins at `begin`, counted from the block's first item
            number = None if first is None else first + bisect_right(units, begin) - 1
            opened = open_block if begin == block.start else OpenBlock(head, True, number)
            text = ("" if opened is open_block else head) + source[lines[begin] : lines[end]]
            pages.append(
                Page(Segment(text, not opened.cut, end == block.end, number), begin, opened)
            )
        return pages


def find_cuts(
    units: Sequence[int], end: int, lines: Sequence[int], limit: tuple[int, int]
) -> list[int]:
    """Return the lines at which a block is cut: before the first unit after a full page."""
    most, size = limit
    cut_lines: list[int] = []
    begin, count = units[0], 0
    for after in units[1:]:
        count += 1
        if after < end and (count >= most or lines[after] - lines[begin] >= size):
            cut_lines.append(after)
            begin, count = after, 0
    return cut_lines


def parse(
    source: str, references: dict[str, Any], *, open_end: bool = False
) -> tuple[list[Block], dict[str, Any]]:
    """Return the top-level blocks of a source, and its link definitions missing in `references`.

    `open_end`: more lines will come, so a formula that is not closed yet is one block.
    """
    env: dict[str, Any] = {"references": dict(references), OPEN_END: open_end}
    blocks: list[Block] = []
    group: list[Token] = []
    for token in parser().parse(source, env):
        group.append(token)
        if token.level == 0 and token.nesting <= 0:
            blocks.append(Block(group))
            group = []
    return blocks, {k: v for k, v in env["references"].items() if k not in references}


def parse_segment(segment: Segment, references: dict[str, Any]) -> list[Token]:
    """Return the tokens of a segment, which is parsed now if it has none."""
    if segment.tokens:
        return segment.tokens
    blocks, _ = parse(segment.source, references)
    return [token for block in blocks for token in block.tokens]


def _first_number(block: Block) -> int | None:
    """Return the number of an ordered list's first item, None for another block."""
    if block.tokens[0].type != "ordered_list_open":
        return None
    number = block.tokens[0].attrGet("start")
    return int(number) if number is not None else 1


def lines_of(text: str) -> list[str]:
    """Return the lines with their ends; only a line feed ends a line."""
    parts = text.split("\n")
    return [part + "\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])
