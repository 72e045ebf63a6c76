"""Slots: each holds the widgets of one node, and changes them when a new node takes its place.

Why: a front end that gets a new widget loses the scroll position and what the user typed. A moving
node, whose widgets change or take input (`needs_widgets`), has a slot of its own; its static
neighbours share one HTML widget, but for images. Front ends also recreate every child of a box
below the first changed one: a question, and what is above one, has an outermost widget that stays.

Rule: `Kit.slots` maps types of nodes to classes of slots, so that slots need not import each other.
"""

from __future__ import annotations

from collections import Counter
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
        """Show a part of the same type as the one before, unless it is the same object."""
        if node is not self._shown:
            self._shown = node
            self.update(node)

    def update(self, node: Any) -> None:
        """Make or change the widgets so that they show a part."""

    def hold_place(self) -> None:
        """Keep the outermost widgets from now on, whatever the slot shows."""

    def close(self) -> None:
        """Retire the widgets."""
        self.kit.retire(self.widgets)


class Static(Slot):
    """Static nodes in one HTML widget."""

    def __init__(self, kit: Kit) -> None:
        super().__init__(kit)
        self._nodes: tuple[Node, ...] = ()
        self._html: Any = None  # a widget, from the first `update` on
        self._typesets = False
        self._box: Any = None  # around the widget, once `hold_place` was called

    def update(self, node: tuple[Node, ...]) -> None:
        """Show the nodes, unless they are shown already, perhaps in another tuple."""
        if self.widgets and self._nodes == node:
            return
        self._nodes = node
        value = f"<div {html.NO_MATH}>{html.draw_nodes(node)}</div>"
        # only markdown (`MATH`) is typeset, from its first formula on (one new widget), not other
        # texts that look like a formula
        typeset = self._typesets or (html.MATH in value and has_formula(value))
        if self._html is None or typeset != self._typesets:
            self.kit.retire([] if self._html is None else [self._html])
            self._html, self._typesets = self.kit.html(value, typeset=typeset), typeset
            if self._box is None:
                self.widgets = [self._html]
            else:
                self.kit.set(self._box, "children", (self._html,))
        self.kit.set(self._html, "value", value)

    def hold_place(self) -> None:
        """Put the widget in a box, which stays when another widget takes its place."""
        if self._box is None:
            self._box = self.kit.box(self.widgets)
            self.widgets = [self._box]


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
        numbers: Counter[type] = Counter()  # a part keeps its key when one of another type comes
        # a picture has its own widget: it is not sent again when its neighbours change
        for is_apart, children in groupby(
            node.children, lambda child: needs_widgets(child) or isinstance(child, nodes.Image)
        ):
            group = tuple(children)
            apart = [(type(child), as_part(child)) for child in group]
            for kind, part in apart if is_apart else [(tuple, group)]:
                numbers[kind] += 1
                parts.append(((kind, numbers[kind]), part))
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
        above: list[Slot] = []  # the slots above `part`, and below the question before
        for key, part in self.list_parts(node):
            slot = self._slots.get(key) or make_slot(part, self.kit)
            slot.show(part)
            slots[key] = slot
            above.append(slot)
            if not isinstance(part, tuple) and _has_question(part):
                for each in above:
                    each.hold_place()
                above.clear()
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


def needs_widgets(node: Node) -> bool:
    """Return whether a node needs widgets of its own in the live view."""
    if isinstance(node, nodes.Row):
        return bool(node.buttons)
    if isinstance(node, nodes.Fold):
        # a run inside a call stands in a fold without a key, and takes no input unless it asks
        return bool(node.key or node.accordion) or _has_question(node)
    if isinstance(node, nodes.Prose):
        return bool(node.key)
    if isinstance(node, nodes.Stack | nodes.Box):
        return any(needs_widgets(child) for child in node.children)
    return isinstance(node, (_CHANGING, _INPUTS))


def _has_question(node: Node) -> bool:
    """Return whether a node is a question, or holds one at any depth."""
    inside: tuple[Node, ...] = ()
    if isinstance(node, nodes.Step):
        inside = (node.child,)
    elif isinstance(node, nodes.Fold):
        inside = node.body
    elif isinstance(node, nodes.Panel):
        inside = node.steps
    elif isinstance(node, nodes.Stack | nodes.Box):
        inside = node.children
    return isinstance(node, nodes.Form) or any(map(_has_question, inside))
