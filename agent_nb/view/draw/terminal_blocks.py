"""Blocks of markdown as lines of a terminal: wrapped, indented, with styles or the marks for them.

Rules
- Every text is sanitised when it becomes a line (`visible`), since markdown decodes entities.
- Each line ends its own styles, so that the next output is not coloured.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from itertools import chain, zip_longest

import msgspec
from markdown_it.tree import SyntaxTreeNode

from .. import visible
from ..markdown.highlight import color_runs
from ..markdown.html import language_of
from .cells import cell_width, pad

NARROWEST, WIDEST = 24, 100  # columns of a line
NARROWEST_BLOCK = 8  # columns, in lists and quotes
RULE = 40  # columns at most
CODE_INDENT = 4  # columns
# part of a line, or family of tokens of code -> parameters of its escape sequence
STYLES = {
    "strong": "1",
    "em": "3",
    "s": "9",
    "heading": "1",
    "code": "36",
    "address": "4",
    "keyword": "35",
    "string": "32",
    "number": "36",
    "comment": "90",
    "name": "34",
    "deleted": "31",
    "inserted": "32",
}
# part of a line -> its mark in markdown, in place of missing styles
MARKS = {"strong": "**", "em": "*", "s": "~~", "code": "`"}
Run = tuple[str, str]  # a text and the parameters of its style


class Terminal(msgspec.Struct, frozen=True):
    """What a terminal can show: its width, and whether it has styles."""

    width: int = 80
    styled: bool = True

    @classmethod
    def find(cls) -> Terminal | None:
        """Return the terminal behind stdout; None if stdout is a pipe, a file or a kernel's."""
        try:
            if not sys.stdout.isatty():
                return None
        except (AttributeError, ValueError):
            return None
        width = min(WIDEST, max(NARROWEST, shutil.get_terminal_size().columns - 1))
        plain = os.environ.get("NO_COLOR") or os.environ.get("TERM", "") in ("", "dumb")
        return cls(width, not plain)


class BlockDrawer:
    """Draws one block; `number`: the number of its first item, if it continues an ordered list."""

    def __init__(self, terminal: Terminal, number: int | None) -> None:
        self._styled = terminal.styled
        self._number = number

    def blocks(self, nodes: Sequence[SyntaxTreeNode], width: int) -> list[str]:
        """Return the lines of blocks below one another."""
        return [line for node in nodes for line in self._block(node, max(NARROWEST_BLOCK, width))]

    def _block(self, node: SyntaxTreeNode, width: int) -> list[str]:
        if node.type in ("fence", "code_block"):
            return self._code(node)
        if node.type == "hr":
            return ["─" * min(width, RULE)]
        if node.type == "table":
            return self._table(node, width)
        if node.type in ("bullet_list", "ordered_list"):
            return self._list(node, width)
        if node.type == "blockquote":
            return [f"│ {line}" for line in self.blocks(node.children, width - 2)]
        if node.type == "heading":
            hashes = "" if self._styled else f"{'#' * int(node.tag[1])} "
            runs = self._inline(node, STYLES["heading"])
            return self._wrap([(hashes, ""), *runs], width)
        if node.type == "math_block":
            return visible.show_output(node.content).rstrip("\n").split("\n")
        return self._wrap(self._inline(node, ""), width)

    def _code(self, node: SyntaxTreeNode) -> list[str]:
        """Return lines of code unwrapped: the terminal breaks them, and a copy has them whole."""
        text = visible.show_output(node.content).rstrip("\n")
        lines = [""] if text else []
        for value, family in color_runs(text, language_of(node.info)) if text else ():
            first, *rest = value.split("\n")
            lines[-1] += self._style(first, STYLES.get(family, ""))
            lines += [self._style(line, STYLES.get(family, "")) for line in rest]
        fence = [] if self._styled else ["```"]
        return [*fence, *(f"{' ' * CODE_INDENT}{line}".rstrip() for line in lines), *fence]

    def _list(self, node: SyntaxTreeNode, width: int) -> list[str]:
        number = self._number if node.level == 0 else None
        start = number if number is not None else int(node.attrs.get("start", 1))
        out: list[str] = []
        for n, item in enumerate(node.children, start):
            mark = f"{n}. " if node.type == "ordered_list" else "• "
            lines = self.blocks(item.children, width - len(mark)) or [""]
            out += [f"{mark}{lines[0]}", *(" " * len(mark) + line for line in lines[1:])]
        return out

    def _table(self, node: SyntaxTreeNode, width: int) -> list[str]:
        rows = [row for section in node.children for row in section.children]
        cells = [
            [self._inline(c, STYLES["strong"] if n == 0 else "") for c in row.children]
            for n, row in enumerate(rows)
        ]
        rights = ["right" in str(c.attrs.get("style", "")) for c in rows[0].children]
        widths = _share_columns(cells, width)
        head, *body = (self._table_row(row, widths, rights) for row in cells)
        rule = "  ".join("─" * w for w in widths)
        return [*head, rule, *chain.from_iterable(body)]

    def _table_row(self, row: list[list[Run]], widths: list[int], rights: list[bool]) -> list[str]:
        """Return the lines of a row, whose cells may be wrapped."""
        columns = [self._wrap(c, w) for c, w in zip(row, widths, strict=True)]
        return [
            "  ".join(
                pad(cell, w, right=right)
                for cell, w, right in zip(parts, widths, rights, strict=True)
            ).rstrip()
            for parts in zip_longest(*columns, fillvalue="")
        ]

    def _inline(self, node: SyntaxTreeNode, style: str) -> list[Run]:
        return [run for child in node.children for run in self._runs(child, style)]

    def _runs(self, node: SyntaxTreeNode, style: str) -> list[Run]:
        kind = node.type
        if kind in ("text", "math_inline", "text_special"):
            return [(visible.show_prose(node.content), style)]
        if kind == "softbreak":
            return [(" ", style)]
        if kind == "hardbreak":
            return [("\n", style)]
        if kind == "code_inline":
            return self._add_marks("code", [(visible.show_hidden(node.content), "code")], style)
        if kind in ("strong", "em", "s"):
            inner_style = ";".join(filter(None, (style, STYLES[kind])))
            return self._add_marks(kind, self._inline(node, inner_style), style)
        if kind == "image":
            alt = visible.show_prose(node.content) or "image"
            return [(f"[{alt}]", style), *_address(str(node.attrs.get("src", "")), alt)]
        if kind == "link":
            label = self._inline(node, style)
            text = "".join(text for text, _ in label)
            return [*label, *_address(str(node.attrs.get("href", "")), text)]
        return self._inline(node, style)

    def _add_marks(self, kind: str, runs: list[Run], style: str) -> list[Run]:
        if self._styled:
            return [(t, STYLES["code"] if s == "code" else s) for t, s in runs]
        return [(MARKS[kind], style), *runs, (MARKS[kind], style)]

    def _style(self, text: str, style: str) -> str:
        return f"\x1b[{style}m{text}\x1b[0m" if style and text and self._styled else text

    def _wrap(self, runs: Sequence[Run], width: int) -> list[str]:
        """Return the lines of a paragraph; a word that is too long is cut."""
        lines, column, space = [""], 0, ""
        for word in _words(runs):
            if word == [("\n", "")]:
                lines, column, space = [*lines, ""], 0, ""
                continue
            columns = cell_width("".join(text for text, _ in word))
            if column and column + 1 + columns > width:
                lines, column, space = [*lines, ""], 0, ""
            if columns <= width:
                lines[-1] += space + "".join(self._style(*piece) for piece in word)
                column += len(space) + columns
            else:
                column = self._cut(lines, word, width)
            space = " "
        return [line for line in lines if line] if len(lines) > 1 else lines

    def _cut(self, lines: list[str], word: list[Run], width: int) -> int:
        """Add a word that is longer than a line to `lines`; return the columns of the last one."""
        column = 0
        for text, style in word:
            piece = ""
            for c in text:
                if column + cell_width(c) > width:
                    lines[-1] += self._style(piece, style)
                    lines.append("")
                    piece, column = "", 0
                piece, column = piece + c, column + cell_width(c)
            lines[-1] += self._style(piece, style)
        return column


def _share_columns(rows: Sequence[Sequence[list[Run]]], width: int) -> list[int]:
    """Return the widths of a table's columns: the widest shrink, to 4 at least, until it fits."""
    widths = [
        max(cell_width("".join(text for text, _ in cell)) for cell in column)
        for column in zip(*rows, strict=True)
    ]
    while sum(widths) + 2 * len(widths) - 2 > width and max(widths) > 4:
        widths[widths.index(max(widths))] -= 1
    return widths


def _words(runs: Sequence[Run]) -> Iterator[list[Run]]:
    """Yield the words of runs: pieces without a space between them; a line break is a word."""
    word: list[Run] = []
    for text, style in runs:
        for part in re.split(r"( |\n)", text.replace("\t", " ")):
            if part in (" ", "\n"):
                if word:
                    yield word
                word = []
                if part == "\n":
                    yield [("\n", "")]
            elif part:
                word.append((part, style))
    if word:
        yield word


def _address(href: str, text: str) -> list[Run]:
    """Return the address behind a link; [] if it is empty, inline data or the link's own text."""
    if not href or href.startswith("data:") or text in (href, href.removeprefix("mailto:")):
        return []
    return [(" (", ""), (visible.show_hidden(href), STYLES["address"]), (")", "")]
