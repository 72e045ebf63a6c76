"""Data as static HTML: JSON values, tables and diffs.

Why bounded: a page with a tree of a million members does not open. JSON is bounded here
(`MOST_ENTRIES`, `MOST_LEVELS`), tables and diffs by the cards.
"""

from __future__ import annotations

import json
from html import escape
from typing import Any

from ...record import SideBySide
from ...wire import cut_end
from .. import nodes, theme, visible
from ..format import count_noun
from .markup import LETTERS, LINES, style, tab_stop, text

MOST_LEVELS = 6  # of a JSON value that open; below them, a value is one line
MOST_ENTRIES = 60  # of an object or list that are shown
MOST_OPENED = 5  # entries of a member that is open at first
LONGEST_SCALAR = 2000  # characters of JSON
# letters of a cell that stays on one line, at most: without spaces, and with spaces to wrap at
LONGEST_WORD, LONGEST_PHRASE = 32, 16
LETTER_PX, PADDING_PX = 7, 26  # width of a letter in a table, about, and of a cell's padding


def json_tree(node: nodes.Json) -> str:
    """Return a JSON value as a tree of folds."""
    tree = _tree(node.value, MOST_LEVELS)
    return f"<div{style('margin:4px 0 0', theme.SMALL_TEXT, 'line-height:1.5')}>{tree}</div>"


def _tree(value: Any, depth: int) -> str:
    """Return the members of a value, or a scalar, as HTML; `depth`: levels that may still open."""
    if not isinstance(value, dict | list) or not value:
        return _leaf(value)
    pairs = list(value.items() if isinstance(value, dict) else enumerate(value))
    lines = [_entry(key, item, depth) for key, item in pairs[:MOST_ENTRIES]]
    if len(pairs) > MOST_ENTRIES:
        lines.append(f"<div{style(theme.ink('muted'))}>… {len(pairs) - MOST_ENTRIES:,} more</div>")
    return "".join(lines)


def _entry(key: Any, item: Any, depth: int) -> str:
    """Return a member as a line, or as a fold if it has members itself."""
    name = f"<code{style(theme.MONO, theme.syntax('name'))}>{text(str(key))}</code>"
    if not isinstance(item, dict | list) or not item or depth <= 0:
        return f"<div>{name} {_leaf(item)}</div>"
    count = count_noun(len(item), "field" if isinstance(item, dict) else "item")
    size = f"<span{style(theme.ink('muted'))}>{count}</span>"
    summary = f"<summary{style(theme.SUMMARY)}>{name} {size}</summary>"
    open_attribute = " open" if depth == MOST_LEVELS and len(item) <= MOST_OPENED else ""
    body = f"<div{style('margin-left:16px')}>{_tree(item, depth - 1)}</div>"
    return f"<details{open_attribute}>{summary}{body}</details>"


def _leaf(value: Any) -> str:
    """Return a value in one line, as JSON coloured by its type."""
    # a bool is an int, too
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    family = "string" if isinstance(value, str) else "number" if is_number else "keyword"
    source = cut_end(json.dumps(value, ensure_ascii=False, default=str), LONGEST_SCALAR)
    wrap = "white-space:pre-wrap;overflow-wrap:break-word"
    return f"<code{style(theme.MONO, theme.syntax(family), wrap)}>{text(source)}</code>"


def table(node: nodes.Table) -> str:
    """Return a table, in a box that scrolls where it is too large, and below it its note."""
    head = "".join(
        f'<th scope="col"{_cell_style(node, n, c, "font-weight:600")}>{text(c)}</th>'
        for n, c in enumerate(node.columns)
    )
    body = "".join("<tr>" + "".join(_cells(node, row)) + "</tr>" for row in node.rows)
    css = style(theme.TABLE, theme.SHARED if node.cut else "")
    html = f"<table{css}><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    muted = style(theme.SMALL_TEXT, theme.ink("muted"))
    note = f"<div{muted}>{text(node.note)}</div>" if node.note else ""
    return f"<div{_box_attributes(node)}>{html}</div>{note}"


def _box_attributes(node: nodes.Table) -> str:
    """Return the attributes of the box around a table: its style, and a tab stop if it scrolls."""
    letters = [sum(map(len, row)) for row in (node.columns, *node.rows)]
    # with its padding a cell is about twice as wide as its letters, and a row as tall as two lines
    wide = max(letters) > LETTERS // 2
    stop = ' tabindex="0"' if wide or len(node.rows) > LINES // 2 else ""
    short = len(node.rows) <= LINES and sum(letters[1:]) <= 2 * LINES * LETTERS
    # two letters of padding a column: on most pages such a table scrolls
    scrolls = max(letters) + 2 * len(node.columns) > LETTERS
    edge = theme.EDGE if scrolls and not node.cut else ""
    return style("overflow:auto", "" if short else theme.HEIGHT, edge) + stop


def _cells(node: nodes.Table, row: tuple[str, ...]) -> list[str]:
    """Return the cells of a row; a comparison of two sides colours a changed line."""
    if not node.sides:
        return [f"<td{_cell_style(node, n, c)}>{text(c)}</td>" for n, c in enumerate(row)]
    # the cells of a comparison: a mark, the recorded line, the new line (`SideBySide.rows`)
    colours = ("", "deleted", "inserted") if row[0] == SideBySide.CHANGED else ("",) * len(row)
    return [
        f"<td{style(theme.SIDE, theme.syntax(kind) if kind else '')}>{text(c)}</td>"
        for c, kind in zip(row, colours, strict=False)
    ]


def _cell_style(node: nodes.Table, column: int, cell: str, *more: str) -> str:
    """Return the `style` attribute of a cell of a table without sides."""
    alignment = theme.NUMERIC if column in node.figures else ""
    return style(theme.CELL, *more, alignment, _width_style(node, column, cell))


def _width_style(node: nodes.Table, column: int, cell: str) -> str:
    """Return the style of a cell's width: a date stays on one line, a long text has room.

    A table that cuts some columns shares its width among these; the others fit their longest
    cell, up to `theme.SCROLLS` letters.
    """
    if column in node.cut:
        return theme.CUT
    if node.cut:
        letters = max(len(row[column]) for row in (node.columns, *node.rows))
        width = f"width:{LETTER_PX * min(letters, theme.SCROLLS) + PADDING_PX}px"
        return f"{theme.SHORT if len(cell) <= theme.SCROLLS else theme.BROKEN};{width}"
    longest_short = LONGEST_PHRASE if " " in cell else LONGEST_WORD
    if len(cell) <= longest_short:
        return theme.SHORT
    longest = max(map(len, cell.split()), default=0)
    return theme.LONG if longest <= theme.SCROLLS else theme.BROKEN


def diff(node: nodes.Diff) -> str:
    """Return a diff, its lines coloured."""
    plain = visible.show_output(node.text).rstrip("\n")
    lines = "\n".join(_diff_line(line) for line in plain.split("\n"))
    return f"<pre{style(theme.PRE, theme.HEIGHT, 'white-space:pre')}{tab_stop(plain)}>{lines}</pre>"


# first character of a line of a diff -> the family of tokens that gives its colour
_DIFF_FAMILIES = {"+": "inserted", "-": "deleted", "@": "name"}


def _diff_line(line: str) -> str:
    is_head = line.startswith(("+++", "---", "diff "))
    family = "comment" if is_head else _DIFF_FAMILIES.get(line[:1], "")
    return f"<span{style(theme.syntax(family))}>{escape(line)}</span>" if family else escape(line)
