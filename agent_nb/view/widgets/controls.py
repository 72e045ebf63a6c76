"""The controls: buttons, the header with its buttons, the editor of arguments.

Rules: a control stays the same widget while its label and state change; its messages arrive while
the cell works.
"""

from __future__ import annotations

from typing import Any

import ipywidgets as w

from .. import nodes
from ..draw import html
from .beside_cell import beside_cell
from .kit import Kit
from .slots import Slot


class Buttons(Slot):
    """A row of buttons that are kept while their labels and states change."""

    classes = ("agent-nb-buttons",)

    def __init__(self, kit: Kit) -> None:
        super().__init__(kit)
        self._buttons: dict[str, Any] = {}
        self._nodes: dict[str, nodes.Button] = {}

    def update(self, node: Any) -> None:
        """Show the buttons."""
        made = {b.key: self._button(b) for b in node.children}
        gone = [b for key, b in self._buttons.items() if key not in made]
        self._buttons = made
        if not self.widgets:
            self.widgets = [self.kit.box(list(made.values()), *self.classes, across=True)]
        self.kit.set(self.widgets[0], "children", tuple(made.values()))
        self.kit.retire(gone)

    def _button(self, node: nodes.Button) -> Any:
        made = self._buttons.get(node.key)
        self._nodes[node.key] = node
        if made is None:
            self.kit.sent += 2
            style = {"ok": "success", "bad": "danger"}.get(node.tone, "")
            # Enabled below, after `on_click`: a press before that would be lost.
            made = w.Button(
                description=node.label,
                disabled=True,
                tooltip=node.hint,
                layout=self.kit.layout,
                button_style=style,
            )
            heard = beside_cell(made)
            made.on_click(lambda _: (heard(), self.kit.press(self._nodes[node.key])))
        self.kit.set(made, "description", node.label)
        self.kit.set(made, "disabled", not node.enabled)
        return made


class Head(Slot):
    """The header: a line and its buttons."""

    classes = ("agent-nb-head",)

    def __init__(self, kit: Kit) -> None:
        super().__init__(kit)
        self._buttons = Buttons(kit)

    def update(self, node: Any) -> None:
        """Show the row; its HTML is compared, since the node is new with every event."""
        value = html.draw_html(node)
        if not self.widgets:
            self._end = self.kit.html(value)
            self._buttons.update(nodes.Buttons(node.buttons))
            self.widgets = [
                self.kit.box([self._end, *self._buttons.widgets], *self.classes, across=True)
            ]
        self.kit.set(self._end, "value", value)
        self._buttons.update(nodes.Buttons(node.buttons))


class Editor(Slot):
    """A text area with the arguments of a call."""

    def update(self, node: Any) -> None:
        """Set the text once, since typed text must stay; show the note every time."""
        if not self.widgets:
            self.kit.sent += 2
            rows = min(16, max(4, node.text.count("\n") + 2))
            # It is sent when it loses focus, so before the press of a button that reads it.
            area = w.Textarea(
                value=node.text, rows=rows, layout=self.kit.layout, continuous_update=False
            )
            heard = beside_cell(area)
            area.observe(lambda _: heard(), "value")
            self._note = self.kit.html("")
            self.widgets = [area, self._note]
            self.kit.editors[node.call_id] = area
        said = (
            html.draw_html(nodes.Row((nodes.T(node.note, tone="bad"),), wrap=True))
            if node.note
            else ""
        )
        self.kit.set(self._note, "value", said)
