"""Buttons as widgets: rows of them, the header with its buttons, the form of a question.

Why: the page is painted while the user types or presses, and must not take the control away. So a
control stays the same widget while its label and state change.
"""

from __future__ import annotations

from typing import Any

import ipywidgets as w

from .. import nodes
from ..draw import html
from .beside_cell import hear_beside_cell
from .keys import ACTION, FORM, KEYS
from .kit import Kit
from .slots import Slot, Stack

# tone of a button -> its style in ipywidgets
STYLES = {"ok": "primary", "bad": "danger"}


class Buttons(Slot):
    """A row of buttons; a button keeps its widget, tone and hint while its key stays in the row."""

    classes = ("agent-nb-buttons",)

    def __init__(self, kit: Kit) -> None:
        super().__init__(kit)
        self._buttons: dict[str, Any] = {}  # widgets by key
        self._nodes: dict[str, nodes.Button] = {}  # the latest by key: a press has its payload

    def update(self, node: nodes.Buttons) -> None:
        """Show the buttons."""
        buttons = {b.key: self._button(b) for b in node.children}
        removed = [b for key, b in self._buttons.items() if key not in buttons]
        self._buttons = buttons
        if not self.widgets:
            self.widgets = [self.kit.box(list(buttons.values()), *self.classes, across=True)]
        self.kit.set(self.widgets[0], "children", tuple(buttons.values()))
        self.kit.retire(removed)

    def _button(self, node: nodes.Button) -> Any:
        """Return the widget of a button, a new one if its key is new."""
        self._nodes[node.key] = node
        button = self._buttons.get(node.key) or self._make_button(node)
        self.kit.set(button, "description", node.label)
        self.kit.set(button, "disabled", not node.enabled)
        return button

    def _make_button(self, node: nodes.Button) -> Any:
        """Return a new button, which `_button` enables: a press before `on_click` would be lost."""
        self.kit.sent += 2  # messages: the button and its style
        button = w.Button(
            description=node.label,
            disabled=True,
            tooltip=node.hint,
            layout=self.kit.layout,
            button_style=STYLES.get(node.tone, ""),
            _dom_classes=(f"{ACTION}{node.action}",),
        )
        acknowledge = hear_beside_cell(button)
        button.on_click(lambda _: (acknowledge(), self.kit.press(self._nodes[node.key])))
        return button


class Head(Slot):
    """The header: a line and its buttons."""

    classes = ("agent-nb-head",)

    def __init__(self, kit: Kit) -> None:
        super().__init__(kit)
        self._buttons = Buttons(kit)
        self._line: Any = None  # a widget, from the first `update` on

    def update(self, node: nodes.Row) -> None:
        """Show the row; what did not change is not sent, since the node is new with every event."""
        value = html.draw_html(node)
        self._buttons.update(nodes.Buttons(node.buttons))
        if not self.widgets:
            self._line = self.kit.html(value)
            children = [self._line, *self._buttons.widgets]
            self.widgets = [self.kit.box(children, *self.classes, across=True)]
        self.kit.set(self._line, "value", value)


class Form(Stack):
    """The controls of a question, which keys press too (see `keys`)."""

    classes = (FORM,)

    def __init__(self, kit: Kit) -> None:
        super().__init__(kit)
        self._keys = kit.html(KEYS, "agent-nb-keys")

    def show_parts(self, node: nodes.Form) -> list[Any]:
        """Return the widget that listens to keys, then those of the controls."""
        return [self._keys, *super().show_parts(node)]
