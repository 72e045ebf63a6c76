"""The steps of a run: panels, their rows, and the folds, charts and bars in them.

Why: most steps of a long run have ended, and only those that move may cost messages. So a step that
stops moving becomes one HTML widget.

A fold opens or closes only if `open` of the new node differs from the fold's state. A reader's
press changes that state, and by `Presses.folds` the following nodes.
"""

from __future__ import annotations

from typing import Any

import ipywidgets as w
from ipywidgets.widgets.widget_bool import ToggleButtonStyle

from .. import nodes
from ..draw import html
from ..folds import STEP
from .beside_cell import hear_beside_cell
from .kit import Kit
from .slots import Part, Slot, Stack, as_part, make_slot


class Panel(Stack):
    """Steps, each found again by its key."""

    classes = ("agent-nb-panel",)

    def list_parts(self, node: nodes.Panel) -> list[tuple[object, Part]]:
        """Return the steps by key."""
        return [((step.key, "step"), step) for step in node.steps]


class Step(Slot):
    """One row of a panel."""

    def __init__(self, kit: Kit) -> None:
        super().__init__(kit)
        self._slot = Slot(kit)  # an empty one, until the first update
        self._part_type: type | None = None  # of the part in the slot; `tuple` if it is static
        self._box: Any = None  # around the widgets of a text, or once `hold_place` was called
        self._holds = False

    def update(self, node: nodes.Step) -> None:
        """Show the step; it gets another widget, or content, when it starts or stops moving."""
        part = as_part(node.child)
        if type(part) is not self._part_type:
            self._slot.close()
            self._slot, self._part_type = make_slot(part, self.kit), type(part)
            self._box = self._box if self._holds else None
        self._slot.show(part)
        if isinstance(part, nodes.Prose):  # in a box, since the text has a padding of its own
            self._box = self._box or self.kit.box(self._slot.widgets)
        self._arrange(node)

    def hold_place(self) -> None:
        """Put the widgets in a box, which stays when others take their place."""
        self._holds = True
        if self._box is None:
            self.kit.set(self._slot.widgets[0], "_dom_classes", self._slot.classes)
            self._box = self.kit.box(self._slot.widgets)
            self._arrange(self._shown)

    def _arrange(self, node: nodes.Step) -> None:
        """Set the widgets, the indent and the tint of the step."""
        self.widgets = self._slot.widgets if self._box is None else [self._box]
        if self._box is not None:
            self.kit.set(self._box, "children", tuple(self._slot.widgets))
        indent = () if node.marked else ("agent-nb-line",)  # as wide as the marker of a fold
        tint = (f"agent-nb-{node.tone}",) if node.tone else ()
        classes = self._slot.classes if self._box is None else ()
        self.kit.set(self.widgets[0], "_dom_classes", (*classes, *indent, *tint))


class Fold(Slot):
    """A line that opens: an invisible button over the line, and the body below it.

    The style sheet shows the body while the button is down, so a reader need not wait for the
    kernel, which gets the press as the action `fold` with the key of the node.
    """

    classes = ("agent-nb-fold",)

    def __init__(self, kit: Kit) -> None:
        super().__init__(kit)
        self._body = Stack(kit)
        self._open = False  # as the last node or the reader set it
        self._folds = False  # it closes or has closed by itself
        self._key = ""
        self._button: Any = None  # a widget, from the first update on, as the next two
        self._summary: Any = None
        self._body_box: Any = None

    def update(self, node: nodes.Fold) -> None:
        """Show the fold."""
        self._body.show(nodes.Stack(node.body))
        self._key = node.key
        if not self.widgets:
            self._make_widgets(node)
        self.kit.set(self._button, "description", node.title)
        self.kit.set(self._summary, "value", html.summary_line(node))
        if not node.closing:  # the page animates the body from the height that it has
            height = (f"agent-nb-room-{round(node.lines / STEP)}",) if node.lines else ()
            self.kit.set(self._body_box, "_dom_classes", ("agent-nb-body", *height))
        self._set_button(node)

    def _set_button(self, node: nodes.Fold) -> None:
        """Set whether the button is down, and in the same message how the page closes the body."""
        self._folds = node.closing or (self._folds and not node.open)
        state = f"agent-nb-{'closing' if node.closing else 'closed'}"
        classes = (state,) if self._folds else ()
        self._open = node.open  # before the button changes, which calls `_on_toggle`
        with self._button.hold_sync():
            self.kit.set(self._button, "_dom_classes", classes)
            self.kit.set(self._button, "value", node.open)

    def _make_widgets(self, node: nodes.Fold) -> None:
        kit, title = self.kit, node.title
        kit.sent += 1  # the button, which the kit does not make
        self._open = node.open
        self._button = w.ToggleButton(
            value=node.open,
            description=title,
            tooltip="",
            layout=kit.layout,
            style=kit.shared_style(ToggleButtonStyle),
        )
        self._acknowledge = hear_beside_cell(self._button)
        self._button.observe(self._on_toggle, "value")
        self._summary = kit.html(html.summary_line(node))
        self._body_box = kit.box(self._body.widgets, "agent-nb-body")
        self.widgets = [kit.box([self._button, self._summary, self._body_box], *self.classes)]

    def _on_toggle(self, change: Any) -> None:
        """Pass on that the reader opened or closed the body; a change by `update` does nothing."""
        if change.new != self._open:
            self._acknowledge()
            self._open = change.new
            self.kit.press(nodes.Button("fold", "", {"key": self._key, "open": self._open}))


class Interactive(Slot):
    """A chart or a widget, drawn by the front end from its MIME bundle.

    The trait `outputs` is set, since `with output:` would capture displays of the cell's code.
    """

    classes = ("agent-nb-drawn",)

    def update(self, node: nodes.Interactive) -> None:
        """Show the bundle."""
        outputs = ({"output_type": "display_data", "data": node.data, "metadata": {}},)
        if not self.widgets:
            self.kit.sent += 1
            output = w.Output(outputs=outputs, layout=self.kit.layout, _dom_classes=self.classes)
            self.widgets = [output]
        self.kit.set(self.widgets[0], "outputs", outputs)


class Bar(Slot):
    """A progress bar and its label."""

    def update(self, node: nodes.Bar) -> None:
        """Move the bar."""
        value = round(max(0.0, min(1.0, node.fraction or 0.0)), 3)
        label = html.bar_words(node)
        if not self.widgets:
            self.kit.sent += 2  # the bar and its style
            bar = w.FloatProgress(
                value=value, min=0.0, max=1.0, layout=self.kit.layout, tooltip=node.name
            )
            self.widgets = [bar, self.kit.html(label)]
        self.kit.set(self.widgets[0], "value", value)
        self.kit.set(self.widgets[1], "value", label)
