"""Fields in which the user edits a call's arguments; painting never takes the typed text away."""

from __future__ import annotations

import json
from itertools import chain
from typing import Any

import ipywidgets as w

from .. import fields, nodes, visible
from ..draw import html
from .beside_cell import hear_beside_cell
from .kit import Kit
from .slots import Slot

MOST_ROWS = 24  # of a text area; a longer text scrolls
CODE_ROWS = 2  # of an area for code, at least


class Editor(Slot):
    """Input fields; a fault stands below its field, or below all fields.

    While the editor is shown, `Kit.editors` has it under the id of its question.
    """

    classes = ("agent-nb-editor",)

    def __init__(self, kit: Kit) -> None:
        super().__init__(kit)
        self._about = ""  # the id of the question
        self._fields: list[tuple[nodes.Field, Any]] = []  # each with its widget
        self._faults: list[Any] = []  # widgets: one below each field, then one below all

    def update(self, node: nodes.Editor) -> None:
        """Show the faults; keep fields of the same question, names and kinds with their text."""
        present = (self._about, [(f.name, f.kind) for f, _ in self._fields])
        if not self.widgets or present != (node.about, [(f.name, f.kind) for f in node.fields]):
            self._make_widgets(node)
        faults = [*(f.fault for f in node.fields), node.fault]
        for fault, widget in zip(faults, self._faults, strict=True):
            row = nodes.Row((nodes.T(fault, tone="bad"),), wrap=True, live=True)
            self.kit.set(widget, "value", html.draw_html(row) if fault else "")

    def _make_widgets(self, node: nodes.Editor) -> None:
        """Make the fields of a question and their faults, in place of those of another one."""
        self._about = node.about
        self._fields = [(field, make_field(field, self.kit)) for field in node.fields]
        *below_fields, below_all = self._faults = [self.kit.html("") for _ in (*node.fields, node)]
        pairs = zip((widget for _, widget in self._fields), below_fields, strict=True)
        children = (*chain.from_iterable(pairs), below_all)
        if self.widgets:
            self.kit.retire(list(self.widgets[0].children))
            self.kit.set(self.widgets[0], "children", children)
        else:
            self.widgets = [self.kit.box(list(children), *self.classes)]
        self.kit.editors[node.about] = self

    def read(self) -> list[tuple[nodes.Field, Any]]:
        """Return the fields with what they hold."""
        return [
            (field, widget.index if field.kind == "choice" else widget.value)
            for field, widget in self._fields
        ]


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
        names = (c if isinstance(c, str) else json.dumps(c) for c in field.choices)
        options = [(name, index) for index, name in enumerate(names)]
        widget = w.Dropdown(options=options, index=field.choices.index(field.value), **common)
    elif field.kind == "flag":
        widget = w.Checkbox(value=field.value, indent=False, **common)
    else:
        widget = _make_text(field, common)
    acknowledge = hear_beside_cell(widget)
    widget.observe(lambda _: acknowledge(), "index" if field.kind == "choice" else "value")
    return widget


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
