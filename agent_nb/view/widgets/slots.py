"""Slots: each holds the widgets of one node, and changes them when a new node takes its place.

Why: a front end that gets a new widget loses the scroll position and what the user typed.

Rules
- A moving node is one whose widgets change or take input (`needs_widgets`). It has a slot of its
  own. Its static neighbours share one HTML widget; only images have one each.
- `Kit.slots` maps types of nodes to classes of slots, so that slots need not import each other.
"""

from __future__ import annotations

from itertools import groupby
from typing import Any

from .. import nodes
from ..draw import html
from ..nodes import Node
from .kit import Kit, has_formula

_CHANGING = nodes.Panel | nodes.Step | nodes.Bar | nodes.Interactive
_INPUTS = nodes.Buttons | nodes.Form | nodes.Editor
Part = Node | tuple[Node, ...]  # what one slot shows: a moving node, or static ones


class Slot:
    """The widgets (in order) that show one part; a later part of the same type replaces it."""

    classes: tuple[str, ...] = ()

    def __init__(self, kit: Kit) -> None:
        self.kit = kit
        self.widgets: list[Any] = []
        self._shown: Any = None

    def show(self, node: Any) -> None:
        """Show a part of the same type as the one before, unless it is shown already."""
        if node is not self._shown:
            self._shown = node
            self.update(node)

    def update(self, node: Any) -> None:
        """Make or change the widgets so that they show a part."""

    def close(self) -> None:
        """Retire the widgets."""
        self.kit.retire(self.widgets)


class Static(Slot):
    """Static nodes in one HTML widget."""

    def __init__(self, kit: Kit) -> None:
        super().__init__(kit)
        self._nodes: tuple[Node, ...] = ()

    def update(self, node: tuple[Node, ...]) -> None:
        """Show the nodes, unless they are shown already, perhaps in another tuple."""
        if self.widgets and self._nodes == node:
            return
        self._nodes = node
        value = f"<div {html.NO_MATH}>{html.draw_nodes(node)}</div>"
        if self.widgets:
            self.kit.set(self.widgets[0], "value", value)
        else:
            # only markdown (`MATH`) is typeset, not other texts that look like a formula
            self.widgets = [self.kit.html(value, typeset=html.MATH in value and has_formula(value))]


class Stack(Slot):
    """Nodes one below the other, in a box; each part (see `list_parts`) has a slot."""

    def __init__(self, kit: Kit) -> None:
        super().__init__(kit)
        self._slots: dict[object, Slot] = {}

    def list_parts(self, node: Any) -> list[tuple[object, Part]]:
        """Return the parts of a node in order, each with a key.

        The part with the same key in the next node gets the same slot.
        """
        parts: list[tuple[object, Part]] = []
        charts = 0
        for are_static, children in groupby(node.children, _shares_widget):
            if are_static:
                parts.append(((len(parts), "static"), tuple(children)))
                continue
            for child in children:
                key: tuple[object, ...] = (len(parts), type(child))
                if isinstance(child, nodes.Interactive):  # the key is its number among the charts
                    charts += 1
                    key = ("chart", charts)
                parts.append((key, as_part(child)))
        return parts

    def update(self, node: Any) -> None:
        """Show the children."""
        children = self.show_parts(node)
        if not self.widgets:
            self.widgets = [self.kit.box(children, *self.classes)]
        self.kit.set(self.widgets[0], "children", tuple(children))

    def show_parts(self, node: Any) -> list[Any]:
        """Show each part of `node` in its slot, close the other slots, return the widgets."""
        slots: dict[object, Slot] = {}
        for key, part in self.list_parts(node):
            slot = self._slots.get(key) or make_slot(part, self.kit)
            slot.show(part)
            slots[key] = slot
        for key, slot in self._slots.items():
            if key not in slots:
                slot.close()
        self._slots = slots
        return [widget for slot in slots.values() for widget in slot.widgets]


def make_slot(part: Part, kit: Kit) -> Slot:
    """Return an empty slot for a part."""
    slot: Slot = Static(kit) if isinstance(part, tuple) else kit.slots[type(part)](kit)
    return slot


def as_part(node: Node) -> Part:
    """Return a node as a part of its own."""
    return node if needs_widgets(node) else (node,)


def _shares_widget(node: Node) -> bool:
    # a picture has its own widget: it is not sent again when its neighbours change
    return not needs_widgets(node) and not isinstance(node, nodes.Image)


def needs_widgets(node: Node) -> bool:
    """Return whether a node needs widgets of its own in the live view."""
    if isinstance(node, nodes.Row):
        return bool(node.buttons)
    if isinstance(node, nodes.Fold):
        # a run inside a call stands in a fold without a key, and takes no input unless it asks
        return bool(node.key or node.accordion) or has_question(node)
    if isinstance(node, nodes.Prose):
        return bool(node.key)
    if isinstance(node, nodes.Stack | nodes.Box):
        return any(needs_widgets(child) for child in node.children)
    return isinstance(node, (_CHANGING, _INPUTS))


def has_question(node: Node) -> bool:
    """Return whether a node is a question, or holds one at any depth."""
    if isinstance(node, nodes.Form):
        return True
    if isinstance(node, nodes.Step | nodes.Section):
        return has_question(node.child)
    below: tuple[Node, ...] = ()
    if isinstance(node, nodes.Fold):
        below = node.body
    elif isinstance(node, nodes.Panel):
        below = node.steps
    elif isinstance(node, nodes.Stack | nodes.Box):
        below = node.children
    return any(has_question(child) for child in below)
