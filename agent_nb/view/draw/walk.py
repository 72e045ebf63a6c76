"""How the drawers of text and of markdown treat nodes that only hold other nodes.

Why: both walk down such nodes in the same way, so the rules stand once.

Both drawers return lists of pieces: lines of text, or blocks of markdown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from .. import nodes
from ..nodes import Node

#: A function that draws a node as lines of text, or as blocks of markdown.
DrawFunction = Callable[[Any], list[str]]


def each(pieces: DrawFunction, children: Iterable[Node]) -> list[str]:
    """Return the pieces of several nodes, one after the other."""
    return [piece for child in children for piece in pieces(child)]


def structure(pieces: DrawFunction) -> dict[type[Node], DrawFunction]:
    """Return, by type of node, how nodes that only hold others are drawn, in any format.

    `pieces` draws a child. Buttons and editors of the live view are left out, and an interactive
    chart is drawn as its still picture.
    """

    def child(node: nodes.Step | nodes.Section) -> list[str]:
        return pieces(node.child)

    def hidden(node: Node) -> list[str]:
        return []

    return {
        nodes.Stack: lambda node: each(pieces, node.children),
        nodes.Interactive: lambda node: each(pieces, node.still),
        **dict.fromkeys((nodes.Step, nodes.Section), child),
        nodes.Form: lambda node: each(pieces, node.children),
        **dict.fromkeys((nodes.Button, nodes.Buttons, nodes.Editor), hidden),
    }
