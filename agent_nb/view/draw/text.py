"""Nodes → plain text for git, mail, terminals and front ends that show nothing else.

One function draws one type of node as lines (`DRAW`). `draw_containers` serves `markdown` too.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from ...wire import cut_end, describe_size
from .. import nodes, visible
from ..format import count_noun
from ..nodes import Node
from .cells import cell_width, fit, pad

INDENT = "    "
CLOSED, OPENED = 8, 40  # lines of a body that are shown, in a closed and in an open fold
LONGEST = 400  # characters of a line of output, code or JSON
LONGEST_ROW = 2000  # characters of a line of a row, or of the words of a bar
LONGEST_FLAT = 100  # characters of JSON on one line; longer JSON is indented
BAR = 20  # characters of a bar
# columns of the terminal that a cell takes at most: in a comparison, in the last column, in others
WIDEST_SIDE, WIDEST_LAST, WIDEST = 60, 80, 40
#: A function that draws a node as pieces: lines of text, or blocks in `markdown`.
DrawFunction = Callable[[Any], list[str]]


def draw(node: Node) -> str:
    """Return the text of a node, without a line end after the last line."""
    return "\n".join(lines(node))


def lines(node: Node) -> list[str]:
    """Return the lines of a node."""
    return DRAW[type(node)](node)


def draw_each(draw_child: DrawFunction, children: Iterable[Node]) -> list[str]:
    """Return the lines or blocks of several nodes, one after the other."""
    return [piece for child in children for piece in draw_child(child)]


def draw_containers(draw_child: DrawFunction) -> dict[type[Node], DrawFunction]:
    """Return, by type, the functions that draw nodes which only hold others.

    Buttons and editors of the live view are left out, and an interactive chart is drawn as its
    still picture.
    """
    hidden = (nodes.Button, nodes.Buttons, nodes.Editor)
    return {
        **dict.fromkeys((nodes.Stack, nodes.Form), lambda n: draw_each(draw_child, n.children)),
        **dict.fromkeys((nodes.Step, nodes.Section), lambda n: draw_child(n.child)),
        **dict.fromkeys(hidden, lambda _: []),
        nodes.Interactive: lambda n: draw_each(draw_child, n.still),
    }


def join_runs(runs: tuple[nodes.T, ...]) -> str:
    """Return runs of text as one text, with hidden characters made visible."""
    return visible.show_hidden("".join(t.text for t in runs)).strip()


def row(node: nodes.Row) -> list[str]:
    """Return a row as lines of bounded length: left, then right after a gap."""
    text = "   ".join(p for p in (join_runs(node.left), join_runs(node.right)) if p)
    return [line[:LONGEST_ROW] for line in text.split("\n")] if text else []


def fold(node: nodes.Fold) -> list[str]:
    """Return the summary and the first lines of the body; of a closed accordion, the summary.

    Of a closed fold directly in the body, only the summary is shown. A `line` shows all of a fold.
    """
    if node.line:
        return row(node.line)
    summary = draw_each(lines, node.summary)
    if node.accordion and node.folded:
        return summary
    most = CLOSED if node.folded else OPENED
    body = draw_each(_draw_in_fold, node.body)
    return [*summary, *(INDENT + line for line in cap_lines(body, most))]


def _draw_in_fold(node: Node) -> list[str]:
    return draw_each(
        lines, node.summary if isinstance(node, nodes.Fold) and node.folded else (node,)
    )


def cap_lines(rows: list[str], most: int) -> list[str]:
    """Return the first `most` lines; if there are more, a line says how many."""
    note = [f"… {count_noun(len(rows) - most, 'more line')}"] if len(rows) > most else []
    return [*rows[:most], *note]


def page(node: nodes.Page) -> list[str]:
    """Return the sections, with an empty line between."""
    out: list[str] = []
    for section in node.sections:
        section_lines = lines(section.child)
        out.extend(["", *section_lines] if out and section_lines else section_lines)
    return out


def _text(text: str) -> list[str]:
    return [
        cut_end(line, LONGEST, f" … {count_noun(len(line) - LONGEST, 'more character')}")
        for line in visible.show_output(text).rstrip("\n").split("\n")
    ]


def bar(node: nodes.Bar) -> list[str]:
    """Return a bar and its words: `[███·····] 3 of 8`."""
    full = round(BAR * min(1.0, max(0.0, node.fraction or 0.0)))
    return [f"[{'█' * full}{'·' * (BAR - full)}] {visible.show_hidden(node.label[:LONGEST_ROW])}"]


def json_lines(node: nodes.Json) -> list[str]:
    """Return a JSON value, indented unless it fits one short line."""
    flat = json.dumps(node.value, ensure_ascii=False, default=str)
    if len(flat) <= LONGEST_FLAT:
        return _text(flat)
    return _text(json.dumps(node.value, ensure_ascii=False, indent=2, default=str))


def tree(node: nodes.Tree) -> list[str]:
    """Return the branches of a tree."""
    return [line for item in node.branches for line in branch(item)]


def branch(node: nodes.Branch) -> list[str]:
    """Return a line with its figure and the branches below, connected by lines; no `detail`."""
    right = node.row.right
    if node.figure:
        right = (*right, nodes.T(f"  {node.figure}" if right else node.figure))
    out = row(nodes.Row(node.row.left, right))
    for number, item in enumerate(node.branches, 1):
        last = number == len(node.branches)
        first, *following = branch(item) or [""]
        out += [
            ("└─ " if last else "├─ ") + first,
            *(("   " if last else "│  ") + line for line in following),
        ]
    return out


def table(node: nodes.Table) -> list[str]:
    """Return a table in columns, each as wide as its longest cell, up to a limit."""
    rows = [tuple(visible.show_hidden(c) for c in row) for row in (node.columns, *node.rows)]
    limits = [WIDEST_SIDE if node.sides else WIDEST] * len(node.columns)
    if limits and not node.sides:
        limits[-1] = WIDEST_LAST
    widths = [
        min(limit, max(map(cell_width, cells))) for limit, *cells in zip(limits, *rows, strict=True)
    ]
    drawn = [
        "  ".join(
            pad(fit(cell, width), width, right=n in node.figures)
            for n, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    return [*drawn, *([node.note] if node.note else [])]


def prose(node: nodes.Prose) -> list[str]:
    """Return markdown as it is, since it reads as text; only hostile characters change."""
    return visible.show_prose(str(node.text)).strip("\n").split("\n")


# type of a node -> the function that draws it
DRAW: dict[type[Node], DrawFunction] = {
    **draw_containers(lines),
    nodes.T: lambda node: [join_runs((node,))],
    nodes.Row: row,
    nodes.Fold: fold,
    nodes.Box: lambda node: draw_each(lines, node.children),
    nodes.Panel: lambda node: draw_each(lines, node.steps),
    nodes.Page: page,
    nodes.Pre: lambda node: _text(node.text),
    nodes.Code: lambda node: _text(node.text[node.begin :]),
    nodes.Bar: bar,
    nodes.Prose: prose,
    nodes.Json: json_lines,
    nodes.Tree: tree,
    nodes.Branch: branch,
    nodes.Table: table,
    nodes.Image: lambda node: [f"[picture {describe_size({'data': node.data})}".rstrip() + "]"],
    nodes.Diff: lambda node: _text(node.text),
    nodes.Html: lambda node: _text(node.text) if node.text else ["(HTML)"],
}
