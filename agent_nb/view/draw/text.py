"""Nodes → plain text for terminals, diffs and front ends that show nothing else.

Rules: no colour, no width (a terminal wraps); one line per step, what it opens to indented below
and bounded; thoughts are one line; hostile characters are made visible (`safe`).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from .. import nodes
from ..format import plural
from ..nodes import Node
from . import visible

INDENT = "    "
CLOSED, OPENED = 8, 40  # lines of a fold that is closed or open
LONGEST = 400  # characters of a line


def draw(node: Node) -> str:
    """Return the text of a node, without a line end after the last line."""
    return "\n".join(lines(node))


def lines(node: Node) -> list[str]:
    """Return the lines of a node."""
    return DRAW[type(node)](node)


def _all(children: tuple[Node, ...]) -> list[str]:
    return [line for child in children for line in lines(child)]


def words(runs: tuple[nodes.T, ...]) -> str:
    """Return runs of text as they stand."""
    return visible.visible("".join(t.text for t in runs)).strip()


def row(node: nodes.Row) -> list[str]:
    """Return a line: left, then right after a gap."""
    text = "   ".join(p for p in (words(node.left), words(node.right)) if p)
    return [line[:2000] for line in text.split("\n")] if text else []


def fold(node: nodes.Fold) -> list[str]:
    """Return the summary, and below it the beginning of what it opens to; of a thought only the
    summary.
    """
    head = _all(node.summary)
    if node.accordion and not node.open:
        return head
    most = OPENED if node.open else CLOSED
    body = [
        line
        for part in node.body
        for line in (
            _all(part.summary) if isinstance(part, nodes.Fold) and not part.open else lines(part)
        )
    ]
    return [*head, *(INDENT + line for line in capped(body, most))]


def capped(found: list[str], most: int) -> list[str]:
    """Return the first `most` lines, and one that counts the rest."""
    more = [f"… {plural(len(found) - most, 'more line')}"] if len(found) > most else []
    return [*found[:most], *more]


def box(node: nodes.Box) -> list[str]:
    """Return what belongs together."""
    return _all(node.children)


def panel(node: nodes.Panel) -> list[str]:
    """Return the steps in order."""
    return [line for step in node.steps for line in lines(step.child)]


def page(node: nodes.Page) -> list[str]:
    """Return the sections with an empty line between."""
    out: list[str] = []
    for section in node.sections:
        part = lines(section.child)
        out.extend(["", *part] if out and part else part)
    return out


def _text(text: str) -> list[str]:
    return [_short(line) for line in visible.output(text).rstrip("\n").split("\n")]


def _short(line: str) -> str:
    more = len(line) - LONGEST
    return line if more <= 0 else f"{line[:LONGEST]} … {plural(more, 'more character')}"


def bar(node: nodes.Bar) -> list[str]:
    """Return a bar of twenty characters and its words."""
    full = round(20 * min(1.0, max(0.0, node.fraction or 0.0)))
    return [f"[{'█' * full}{'·' * (20 - full)}] {visible.visible(node.label)}"]


def json_lines(node: nodes.Json) -> list[str]:
    """Return a JSON value indented; a small one on one line."""
    flat = json.dumps(node.value, ensure_ascii=False, default=str)
    return _text(
        flat
        if len(flat) <= 100
        else json.dumps(node.value, ensure_ascii=False, indent=2, default=str)
    )


def tree(node: nodes.Tree) -> list[str]:
    """Return branches with lines that lead to them."""
    return [line for item in node.branches for line in branch(item)]


def branch(node: nodes.Branch) -> list[str]:
    """Return one line with its figure, and the branches below."""
    right = (
        (*node.row.right, nodes.T(f"  {node.figure}" if node.row.right else node.figure))
        if node.figure
        else node.row.right
    )
    out = row(nodes.Row(node.row.left, right))
    for place, item in enumerate(node.branches):
        last = place == len(node.branches) - 1
        first, *rest = branch(item) or [""]
        out += [
            ("└─ " if last else "├─ ") + first,
            *(("   " if last else "│  ") + line for line in rest),
        ]
    return out


def table(node: nodes.Table) -> list[str]:
    """Return a table in columns."""
    rows = [tuple(visible.visible(c) for c in row) for row in (node.columns, *node.rows)]
    most = 60 if node.sides else 40
    widths = [min(most, max(len(row[i]) for row in rows)) for i in range(len(node.columns))]
    made = [
        "  ".join(
            cell[:most].ljust(width) for cell, width in zip(row, widths, strict=True)
        ).rstrip()
        for row in rows
    ]
    return [*made, *([node.note] if node.note else [])]


def prose(node: nodes.Prose) -> list[str]:
    """Return markdown as it was written: it reads well."""
    return visible.prose(str(node.text)).strip("\n").split("\n")


DRAW: dict[type[Node], Callable[[Any], list[str]]] = {
    nodes.T: lambda node: [words((node,))],
    nodes.Row: row,
    nodes.Lane: lambda node: [],
    nodes.Fold: fold,
    nodes.Stack: box,
    nodes.Box: box,
    nodes.Step: lambda node: lines(node.child),
    nodes.Panel: panel,
    nodes.Section: lambda node: lines(node.child),
    nodes.Page: page,
    nodes.Pre: lambda node: _text(node.text),
    nodes.Code: lambda node: _text(node.text),
    nodes.Bar: bar,
    nodes.Prose: prose,
    nodes.Json: json_lines,
    nodes.Tree: tree,
    nodes.Branch: branch,
    nodes.Table: table,
    nodes.Image: lambda node: [
        f"({visible.visible(node.alt)}, {node.media_type}, {len(node.data) * 3 // 4:,} bytes)"
    ],
    nodes.Diff: lambda node: _text(node.text),
    nodes.Html: lambda node: _text(node.text) if node.text else ["(HTML)"],
    nodes.Button: lambda node: [],
    nodes.Buttons: lambda node: [],
    nodes.Editor: lambda node: [],
}
