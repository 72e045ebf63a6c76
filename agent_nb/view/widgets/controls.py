"""The controls: buttons, the header with its buttons, the editor of arguments.

Rules: a control stays the same widget while its label and state change. Its messages arrive while
the cell works (`beside_cell`).
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
    """A row of buttons, which are found again by their keys."""

    classes = ("agent-nb-buttons",)

    def __init__(self, kit: Kit) -> None:
        super().__init__(kit)
        self._buttons: dict[str, Any] = {}  # widgets by key
        self._nodes: dict[str, nodes.Button] = {}

    def update(self, node: Any) -> None:
        """Show the buttons."""
        buttons = {b.key: self._button(b) for b in node.children}
        dropped = [b for key, b in self._buttons.items() if key not in buttons]
        self._buttons = buttons
        if not self.widgets:
            self.widgets = [self.kit.box(list(buttons.values()), *self.classes, across=True)]
        self.kit.set(self.widgets[0], "children", tuple(buttons.values()))
        self.kit.retire(dropped)

    def _button(self, node: nodes.Button) -> Any:
        button = self._buttons.get(node.key)
        self._nodes[node.key] = node  # the payload of a press is that of the latest node
        if button is None:
            self.kit.sent += 2  # the button and its style
            style = {"ok": "success", "bad": "danger"}.get(node.tone, "")
            # Enabled below, after `on_click`: a press before that would be lost.
            button = w.Button(
                description=node.label,
                disabled=True,
                tooltip=node.hint,
                layout=self.kit.layout,
                button_style=style,
            )
            acknowledge = beside_cell(button)
            button.on_click(lambda _: (acknowledge(), self.kit.press(self._nodes[node.key])))
        self.kit.set(button, "description", node.label)
        self.kit.set(button, "disabled", not node.enabled)
        return button


class Head(Slot):
    """The header: a line and its buttons."""

    classes = ("agent-nb-head",)

    def __init__(self, kit: Kit) -> None:
        super().__init__(kit)
        self._buttons = Buttons(kit)

    def update(self, node: Any) -> None:
        """Show the row; what did not change is not sent, since the node is new with every event."""
        value = html.draw_html(node)
        if not self.widgets:
            self._line = self.kit.html(value)
            self._buttons.update(nodes.Buttons(node.buttons))
            self.widgets = [
                self.kit.box([self._line, *self._buttons.widgets], *self.classes, across=True)
            ]
        self.kit.set(self._line, "value", value)
        self._buttons.update(nodes.Buttons(node.buttons))


class Editor(Slot):
    """A text area with the arguments of a call."""

    def update(self, node: Any) -> None:
        """Set the text once, since typed text must stay; show the note every time."""
        if not self.widgets:
            self.kit.sent += 2  # the area and its style
            rows = min(16, max(4, node.text.count("\n") + 2))
            # Its text is sent when it loses focus: before the press of the button that reads it.
            area = w.Textarea(
                value=node.text, rows=rows, layout=self.kit.layout, continuous_update=False
            )
            acknowledge = beside_cell(area)
            area.observe(lambda _: acknowledge(), "value")
            self._note = self.kit.html("")
            self.widgets = [area, self._note]
            self.kit.editors[node.call_id] = area
        note = (
            html.draw_html(nodes.Row((nodes.T(node.note, tone="bad"),), wrap=True))
            if node.note
            else ""
        )
        self.kit.set(self._note, "value", note)
