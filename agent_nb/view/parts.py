"""Divide a page at its charts and widgets, each of which becomes an output of its own.

Why: stored HTML runs no script, so a chart inside it would be a picture. A front end draws it from
an output with its own MIME type. A chart inside a fold stays a picture, so cards take the charts of
nested runs out of their folds (`separate_charts`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import Any

from msgspec import structs

from .nodes import Box, Interactive, Node, Page, Panel, Section, Stack, Step

CONTINUED = " (continued)"  # ends the label of every page but the first


def split_page(page: Page, most: int = 0) -> list[Page | Interactive]:
    """Return the parts of a page in order: pages, and the charts and widgets between them.

    The first part is a page with the label of the whole. `most`: how many parts there may be (0:
    any number); the last one has the rest of the page.
    """
    parts = [part for part in _split(page) if isinstance(part, Page | Interactive)]
    if not isinstance(parts[0], Page):
        parts.insert(0, Page(page.label, ()))
    if most and len(parts) > most:
        # of two parts, the second would hold every chart: the page may as well stay whole
        return [page] if most < 3 else [*parts[: most - 1], _join(page.label, parts[most - 1 :])]
    return [
        Page(page.label + CONTINUED, part.sections) if isinstance(part, Page) and n else part
        for n, part in enumerate(parts)
    ]


def _join(label: str, parts: Iterable[Page | Interactive]) -> Page:
    """Return one page made of several parts, with their charts inside."""
    sections: list[Section] = []
    for part in parts:
        sections += part.sections if isinstance(part, Page) else [Section("chart", part)]
    return Page(label + CONTINUED, tuple(sections))


def separate_charts(children: Iterable[Node]) -> tuple[tuple[Node, ...], tuple[Interactive, ...]]:
    """Return the nodes without dividing charts and widgets, and those charts and widgets."""
    pieces = [piece for child in children for piece in _split(child)]
    charts = tuple(piece for piece in pieces if isinstance(piece, Interactive))
    return tuple(piece for piece in pieces if not isinstance(piece, Interactive)), charts


def _split(node: Node) -> Iterator[Node]:
    """Yield the pieces of a node, nodes of its type, and between them the charts and widgets."""
    if isinstance(node, Stack | Box):
        yield from _group(node.children, lambda c: _replace_fields(node, children=c))
    elif isinstance(node, Panel):
        yield from _group(node.steps, Panel)
    elif isinstance(node, Page):
        yield from _group(node.sections, lambda sections: Page(node.label, sections))
    elif isinstance(node, Step | Section):
        for piece in _split(node.child):
            yield piece if isinstance(piece, Interactive) else _replace_fields(node, child=piece)
    else:
        yield node


def _replace_fields(node: Any, **fields: Any) -> Any:
    """Return a node with other fields, or itself if they are the same."""
    if all(getattr(node, name) == value for name, value in fields.items()):
        return node
    return structs.replace(node, **fields)


def _group(children: Iterable[Any], make: Callable[[tuple[Any, ...]], Node]) -> Iterator[Node]:
    """Yield the charts and widgets in children; `make` joins the pieces between two of them."""
    pieces = (piece for child in children for piece in _split(child))
    for are_charts, group in groupby(pieces, lambda piece: isinstance(piece, Interactive)):
        run = tuple(group)
        yield from run if are_charts else (make(run),)
