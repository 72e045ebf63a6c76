"""The common part of drawers that return pieces: lines of text, or blocks of markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from .. import nodes
from ..nodes import Node

Pieces = Callable[[Any], list[str]]


def each(pieces: Pieces, children: Iterable[Node]) -> list[str]:
    """Return the pieces of several nodes, one after the other."""
    return [piece for child in children for piece in pieces(child)]


def structure(pieces: Pieces) -> dict[type[Node], Pieces]:
    """Return the table for nodes that only hold others, or that only the live view shows."""

    def child(node: nodes.Step | nodes.Section) -> list[str]:
        return pieces(node.child)

    def hidden(node: Node) -> list[str]:
        return []

    return {
        nodes.Stack: lambda node: each(pieces, node.children),
        **dict.fromkeys((nodes.Step, nodes.Section), child),
        **dict.fromkeys((nodes.Lane, nodes.Button, nodes.Buttons, nodes.Editor), hidden),
    }
