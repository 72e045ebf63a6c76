"""Slots: each holds the widgets of one node and takes the next node of its kind.

Why: a widget that is replaced loses its place, its focus and whether it was open; so a slot changes
its widgets instead.

Rules: a moving node has its own slot; static neighbours share one HTML widget. The board's table
maps nodes to slots, so that slots need not know each other.
"""

from __future__ import annotations

from typing import Any

from .. import nodes
from ..draw import html
from ..nodes import Node
from .kit import Kit, has_formula


class Slot:
    """The widgets of one node that may change; `widgets` are in order."""

    classes: tuple[str, ...] = ()

    def __init__(self, kit: Kit) -> None:
        self.kit = kit
        self.widgets: list[Any] = []
        self._shown: Any = None

    def show(self, node: Any) -> None:
        """Show `node`, of the same kind as before, unless it is already shown."""
        if node is not self._shown:
            self._shown = node
            self.update(node)

    def update(self, node: Any) -> None:
        """Make or change the widgets so that they show `node`."""

    def close(self) -> None:
        """Retire the widgets."""
        self.kit.retire(self.widgets)


class Still(Slot):
    """Static nodes in one HTML widget."""

    def __init__(self, kit: Kit) -> None:
        super().__init__(kit)
        self._nodes: tuple[Node, ...] = ()

    def update(self, node: Any) -> None:
        """Show a tuple of nodes."""
        if self.widgets and self._nodes == node:
            return
        self._nodes = node
        value = f"<div {html.NO_MATH}>{html.draw_nodes(node)}</div>"
        if self.widgets:
            self.kit.set(self.widgets[0], "value", value)
        else:
            self.widgets = [self.kit.html(value, typeset=html.MATH in value and has_formula(value))]


class Several(Slot):
    """Nodes one below the other: moving ones have slots, static ones are gathered."""

    def __init__(self, kit: Kit) -> None:
        super().__init__(kit)
        self._slots: dict[object, Slot] = {}

    def parts(self, node: Any) -> list[tuple[object, Any]]:
        """Return (key, node or tuple of static nodes) in order."""
        out: list[tuple[object, Any]] = []
        gathered: list[Node] = []
        for child in _flat(node.children):
            if not moves(child) and not isinstance(child, nodes.Image):
                gathered.append(child)
                continue
            if gathered:
                out.append(((len(out), "still"), tuple(gathered)))
                gathered = []
            # a picture has its own widget: it is not sent again when its neighbours change
            out.append(((len(out), type(child)), child if moves(child) else (child,)))
        return [*out, *([((len(out), "still"), tuple(gathered))] if gathered else [])]

    def update(self, node: Any) -> None:
        """Show the children, keeping the slots whose keys remain."""
        children = self.below(node)
        if not self.widgets:
            self.widgets = [self.kit.box(children, *self.classes)]
        self.kit.set(self.widgets[0], "children", tuple(children))

    def below(self, node: Any) -> list[Any]:
        """Return the current widgets of the children."""
        slots: dict[object, Slot] = {}
        for key, part in self.parts(node):
            slot = self._slots.get(key) or (
                Still(self.kit) if isinstance(part, tuple) else make(part, self.kit)
            )
            slot.show(part)
            slots[key] = slot
        for key, slot in self._slots.items():
            if key not in slots:
                slot.close()
        self._slots = slots
        return [widget for slot in slots.values() for widget in slot.widgets]


def make(node: Node, kit: Kit) -> Slot:
    """Return an empty slot for a moving node."""
    slot: Slot = kit.slots[type(node)](kit)
    return slot


def moves(node: Node) -> bool:
    """Return whether a node needs its own widgets in the live view."""
    if isinstance(node, nodes.Row):
        return bool(node.buttons)
    if isinstance(node, nodes.Fold):
        return node.accordion
    if isinstance(node, nodes.Prose):
        return bool(node.key)
    if isinstance(node, nodes.Stack | nodes.Box):
        return any(moves(child) for child in node.children)
    return isinstance(node, nodes.Panel | nodes.Step | nodes.Bar | nodes.Buttons | nodes.Editor)


def _flat(children: tuple[Node, ...]) -> list[Node]:
    """Return the children, with the words of each bar as a separate static part."""
    out: list[Node] = []
    for child in children:
        out.append(child)
        if isinstance(child, nodes.Bar):
            out.append(nodes.Row((nodes.T(child.label, tone="muted"),)))
    return out
