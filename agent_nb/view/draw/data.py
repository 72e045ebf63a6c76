"""Data as static HTML: JSON values, tables and diffs.

Why bounded: a page with a tree of a million members does not open.

Rules
- JSON is bounded here (`ENTRIES`, `DEPTH`), tables and diffs by the cards.
- A table or diff that is too tall or too wide scrolls in a box that the keyboard reaches.
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

DEPTH, ENTRIES = 6, 60  # levels of a JSON value that open; members that a level shows
# letters of the longest cell that stays on one line: one of a single word, one of several words
WORD, WORDS = 32, 16


def json_tree(node: nodes.Json) -> str:
    """Return a JSON value as a tree of folds."""
    tree = _tree(node.value, DEPTH)
    return f"<div{style('margin:4px 0 0', theme.SMALL_TEXT, 'line-height:1.5')}>{tree}</div>"


def _tree(value: Any, depth: int) -> str:
    """Return the members of a value, or a scalar, as HTML; `depth`: levels below that may open."""
    if not isinstance(value, dict | list) or not value:
        return _leaf(value)
    pairs = list(value.items() if isinstance(value, dict) else enumerate(value))
    lines = [_entry(key, item, depth) for key, item in pairs[:ENTRIES]]
    if len(pairs) > ENTRIES:
        lines.append(f"<div{style(theme.ink('muted'))}>… {len(pairs) - ENTRIES:,} more</div>")
    return "".join(lines)


def _entry(key: Any, item: Any, depth: int) -> str:
    """Return a member as a line, or as a fold if it has members itself."""
    name = f"<code{style(theme.MONO, theme.syntax('name'))}>{text(str(key))}</code>"
    if not isinstance(item, dict | list) or not item:
        return f"<div>{name} {_leaf(item)}</div>"
    size = count_noun(len(item), "field" if isinstance(item, dict) else "item")
    size_html = f"<span{style(theme.ink('muted'))}>{size}</span>"
    if depth <= 0:
        return f"<div>{name} {_leaf(item)}</div>"
    summary = f"<summary{style(theme.SUMMARY)}>{name} {size_html}</summary>"
    open_attribute = " open" if depth == DEPTH and len(item) <= 5 else ""
    return f"<details{open_attribute}>{summary}<div{style('margin-left:16px')}>{_tree(item, depth - 1)}</div></details>"


def _leaf(value: Any) -> str:
    family = "number" if isinstance(value, int | float) else "keyword"
    family = "string" if isinstance(value, str) else family
    source = cut_end(json.dumps(value, ensure_ascii=False, default=str), 2000)
    return f"<code{style(theme.MONO, theme.syntax(family), 'white-space:pre-wrap;overflow-wrap:break-word')}>{text(source)}</code>"


def _cells(node: nodes.Table, row: tuple[str, ...]) -> list[str]:
    """Return the cells of a row; a comparison of two sides colours a changed line."""
    if not node.sides:
        return [
            f"<td{style(theme.CELL, _alignment(node, n), _width_style(node, n, c))}>{text(c)}</td>"
            for n, c in enumerate(row)
        ]
    colours = ("", "deleted", "inserted") if row[0] == SideBySide.CHANGED else ("",) * len(row)
    return [
        f"<td{style(theme.SIDE, theme.syntax(kind) if kind else '')}>{text(c)}</td>"
        for c, kind in zip(row, colours, strict=False)
    ]


def _width_style(node: nodes.Table, column: int, cell: str) -> str:
    """Return the style of a cell's width: a date stays on one line, a long text has room."""
    if column in node.cut:
        return theme.CUT
    if node.cut:
        letters = max(len(row[column]) for row in (node.columns, *node.rows))
        # about 7 px for a letter of this size, and the padding
        return f"{theme.SHORT};width:{7 * letters + 26}px"
    return theme.SHORT if len(cell) <= (WORDS if " " in cell else WORD) else theme.LONG


def _alignment(node: nodes.Table, column: int) -> str:
    return theme.NUMERIC if column in node.figures else ""


def table(node: nodes.Table) -> str:
    """Return a table."""
    head = "".join(
        f'<th scope="col"{style(theme.CELL, "font-weight:600", _alignment(node, n), _width_style(node, n, c))}>{text(c)}</th>'
        for n, c in enumerate(node.columns)
    )
    body = "".join("<tr>" + "".join(_cells(node, row)) + "</tr>" for row in node.rows)
    muted = style(theme.SMALL_TEXT, theme.ink("muted"))
    note = f"<div{muted}>{text(node.note)}</div>" if node.note else ""
    table_html = f"<table{style(theme.TABLE, theme.SHARED if node.cut else '')}><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    wide = any(sum(map(len, row)) > LETTERS // 2 for row in (node.columns, *node.rows))
    stop = ' tabindex="0"' if wide or len(node.rows) > LINES // 2 else ""
    height = "" if _fits(node) else theme.HEIGHT
    edge = theme.EDGE if wide and not node.cut else ""
    return f"<div{style('overflow:auto', height, edge)}{stop}>{table_html}</div>{note}"


def _fits(node: nodes.Table) -> bool:
    """Return whether a table is short enough to be shown whole; a long one scrolls."""
    letters = sum(len(cell) for row in node.rows for cell in row)
    return len(node.rows) <= LINES and letters <= 2 * LINES * LETTERS


def diff(node: nodes.Diff) -> str:
    """Return a diff, its lines coloured."""
    plain = visible.show_output(node.text).rstrip("\n")
    lines = "\n".join(_diff_line(line) for line in plain.split("\n"))
    return f"<pre{style(theme.PRE, theme.HEIGHT, 'white-space:pre')}{tab_stop(plain)}>{lines}</pre>"


def _diff_line(line: str) -> str:
    family = {"+": "inserted", "-": "deleted", "@": "name"}.get(line[:1], "")
    if line.startswith(("+++", "---", "diff ")):
        family = "comment"
    return f"<span{style(theme.syntax(family))}>{escape(line)}</span>" if family else escape(line)
