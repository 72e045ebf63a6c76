"""Widgets that take input: buttons, the header with its buttons, editors, the form of a question.

Why: the page is painted while the user types or presses, and must not take the control away.

Rules
- A control stays the same widget while its label and state change.
- Its messages arrive also while the cell runs, if each is acknowledged (`beside_cell`).
"""

from __future__ import annotations

import json
from itertools import chain
from typing import Any

import ipywidgets as w

from .. import fields, nodes, visible
from ..draw import html
from .beside_cell import hear_beside_cell
from .keys import ACTION, FORM, KEYS
from .kit import Kit
from .slots import Slot, Stack

MOST_ROWS = 24  # of a text area; a longer text scrolls
CODE_ROWS = 2  # of an area for code, at least


class Buttons(Slot):
    """A row of buttons; a button keeps its widget, tone and hint while its key stays in the row."""

    classes = ("agent-nb-buttons",)

    def __init__(self, kit: Kit) -> None:
        super().__init__(kit)
        self._buttons: dict[str, Any] = {}  # widgets by key
        self._nodes: dict[str, nodes.Button] = {}

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
        button = self._buttons.get(node.key)
        self._nodes[node.key] = node  # the payload of a press is that of the latest node
        if button is None:
            self.kit.sent += 2  # messages: the button and its style
            style = {"ok": "primary", "bad": "danger"}.get(node.tone, "")
            # Enabled below, after `on_click`: a press before that would be lost.
            button = w.Button(
                description=node.label,
                disabled=True,
                tooltip=node.hint,
                layout=self.kit.layout,
                button_style=style,
                _dom_classes=(f"{ACTION}{node.action}",),
            )
            acknowledge = hear_beside_cell(button)
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

    def below(self, node: nodes.Form) -> list[Any]:
        """Return the widget that listens to keys, then those of the controls."""
        return [self._keys, *super().below(node)]

    def close(self) -> None:
        """Retire the widgets; the fields of the form's editor can no longer be read."""
        super().close()
        for slot in self._slots.values():
            if isinstance(slot, Editor):
                slot.forget()


class Editor(Slot):
    """Input fields; a fault stands below its field, or below all fields."""

    classes = ("agent-nb-editor",)

    def __init__(self, kit: Kit) -> None:
        super().__init__(kit)
        self._about = ""
        self._fields: list[tuple[nodes.Field, Any]] = []
        self._faults: list[Any] = []  # widgets: one below each field, then one below all

    def update(self, node: nodes.Editor) -> None:
        """Show the faults; keep fields of the same question, names and kinds with their text."""
        present = (self._about, [(f.name, f.kind) for f, _ in self._fields])
        if not self.widgets or present != (node.about, [(f.name, f.kind) for f in node.fields]):
            self._make(node)
        faults = [*(f.fault for f in node.fields), node.fault]
        for fault, widget in zip(faults, self._faults, strict=True):
            row = nodes.Row((nodes.T(fault, tone="bad"),), wrap=True, live=True)
            self.kit.set(widget, "value", html.draw_html(row) if fault else "")

    def _make(self, node: nodes.Editor) -> None:
        self.forget()
        self._about = node.about
        self._fields = [(field, make_field(field, self.kit)) for field in node.fields]
        self._faults = [self.kit.html("") for _ in range(len(node.fields) + 1)]
        pairs = zip((widget for _, widget in self._fields), self._faults, strict=False)
        children = (*chain.from_iterable(pairs), self._faults[-1])
        if self.widgets:
            self.kit.retire(list(self.widgets[0].children))
            self.kit.set(self.widgets[0], "children", children)
        else:
            self.widgets = [self.kit.box(list(children), *self.classes)]
        self.kit.editors[node.about] = self.read

    def read(self) -> list[tuple[nodes.Field, Any]]:
        """Return the fields with what they hold."""
        return [
            (field, widget.index if field.kind == "choice" else widget.value)
            for field, widget in self._fields
        ]

    def forget(self) -> None:
        """Remove this editor from `Kit.editors`, so that its fields can no longer be read."""
        self.kit.editors.pop(self._about, None)

    def close(self) -> None:
        """Retire the widgets."""
        self.forget()
        super().close()


def make_field(field: nodes.Field, kit: Kit) -> Any:
    """Return the widget of a field; a typed text is sent when the focus leaves it for a button."""
    kit.sent += 2  # messages: the widget and its style
    label = visible.show_hidden(field.name) or '""'
    if field.name == fields.OTHERS:
        label = "other arguments"
    common: dict[str, Any] = {
        "description": "" if field.kind == "line" else label,
        "layout": kit.layout,
        "_dom_classes": ("agent-nb-field", f"agent-nb-{field.kind}"),
    }
    if field.kind == "choice":
        widget = _make_choice(field, common)
    elif field.kind == "flag":
        widget = w.Checkbox(value=field.value, indent=False, **common)
    else:
        widget = _make_text(field, common)
    acknowledge = hear_beside_cell(widget)
    widget.observe(lambda _: acknowledge(), "index" if field.kind == "choice" else "value")
    return widget


def _make_choice(field: nodes.Field, traits: dict[str, Any]) -> Any:
    names = (c if isinstance(c, str) else json.dumps(c) for c in field.choices)
    options = [(name, index) for index, name in enumerate(names)]
    return w.Dropdown(options=options, index=field.choices.index(field.value), **traits)


def _make_text(field: nodes.Field, traits: dict[str, Any]) -> Any:
    """Return an input of one line, or a text area that shows the whole text if it is not long."""
    text = fields.text_of(field)
    traits = {**traits, "placeholder": field.hint, "continuous_update": False}
    if field.kind in ("line", "number"):
        return w.Text(text, **traits)
    lines = text.count("\n") + 1
    least = CODE_ROWS if field.kind == "code" else 1
    # a long text has room for some lines more
    rows = min(MOST_ROWS, max(least, lines + lines // 8))
    return w.Textarea(text, rows=rows, **traits)
