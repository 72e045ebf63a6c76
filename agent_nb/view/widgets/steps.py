"""The steps of a run: panels, their rows, folds and bars.

Why: most steps of a long run have ended, and only those that move may cost messages.

Rules
- A step that stops moving becomes one HTML widget.
- A fold opens or closes only if `open` of the new node differs from its own state; a reader's
  choice reaches the node by `Presses.folds`.
"""

from __future__ import annotations

from typing import Any

import ipywidgets as w

from .. import nodes
from ..draw import html
from ..folds import STEP
from .beside_cell import hear_beside_cell
from .kit import Kit
from .slots import Several, Slot, Still, make_slot, moves


class Panel(Several):
    """Steps, each found again by its key."""

    classes = ("agent-nb-panel",)

    def parts(self, node: Any) -> list[tuple[object, Any]]:
        """Return the steps by key."""
        return [((step.key, "step"), step) for step in node.steps]


class Step(Slot):
    """One row of a panel."""

    def __init__(self, kit: Kit) -> None:
        super().__init__(kit)
        self._slot: Slot | None = None
        self._kind: object = None  # the type of the moving node, or "still"

    def update(self, node: Any) -> None:
        """Show the step; its widget changes when it starts or stops moving."""
        kind: object = type(node.child) if moves(node.child) else "still"
        if kind != self._kind or self._slot is None:
            if self._slot is not None:
                self._slot.close()
            self._slot = make_slot(node.child, self.kit) if kind != "still" else Still(self.kit)
            self._kind = kind
        self._slot.show((node.child,) if kind == "still" else node.child)
        if kind is nodes.Prose:  # in a box of the row, since the text has a padding of its own
            self.widgets = self.widgets or [self.kit.box(self._slot.widgets)]
        else:
            self.widgets = self._slot.widgets
        tint = (f"agent-nb-{node.tone}",) if node.tone else ()
        # a row without a fold's marker is indented by the width of one
        line = () if node.marked else ("agent-nb-line",)
        self.kit.set(self.widgets[0], "_dom_classes", (*self._slot.classes, *line, *tint))


class Fold(Slot):
    """A line that opens: an invisible button over the line, and the body below it.

    The style sheet shows the body while the button is down, so a reader need not wait for the
    kernel. A reader's press is passed on as the action `fold` with the key of the node.
    """

    classes = ("agent-nb-fold",)

    def __init__(self, kit: Kit) -> None:
        super().__init__(kit)
        self._body = Several(kit)
        self._open = False  # as the last node or the reader set it
        self._key = ""

    def update(self, node: Any) -> None:
        """Show the fold."""
        self._body.show(nodes.Stack(node.body))
        self._key = node.key
        if not self.widgets:
            self._begin(node)
        if self._open != node.open:
            self._open = node.open
            self.kit.set(self._button, "value", node.open)
        self.kit.set(self._button, "description", node.title)
        self.kit.set(self._line, "value", html.summary_line(node))
        room = (f"agent-nb-room-{round(node.lines / STEP)}",) if node.lines else ()
        self.kit.set(self._room, "_dom_classes", ("agent-nb-body", *room))

    def _begin(self, node: Any) -> None:
        self.kit.sent += 1  # the button, which the kit does not make
        self._open = node.open
        self._button = w.ToggleButton(
            value=node.open,
            description=node.title,
            tooltip="",
            layout=self.kit.layout,
            style=self.kit.toggle,
        )
        self._acknowledge = hear_beside_cell(self._button)
        self._button.observe(self._toggled, "value")
        self._line = self.kit.html(html.summary_line(node))
        self._room = self.kit.box(self._body.widgets, "agent-nb-body")
        self.widgets = [self.kit.box([self._button, self._line, self._room], *self.classes)]

    def _toggled(self, change: Any) -> None:
        """Pass on that the reader opened or closed the body; changes of our own do nothing."""
        is_open = change.new
        if is_open != self._open:
            self._acknowledge()
            self._open = is_open
            self.kit.press(nodes.Button("fold", "", {"key": self._key, "open": is_open}))


class Drawn(Slot):
    """A chart or a widget, drawn by the front end from its MIME bundle.

    The trait `outputs` is set, since `with output:` would capture displays of the cell's code.
    """

    classes = ("agent-nb-drawn",)

    def update(self, node: Any) -> None:
        """Show the bundle."""
        outputs = ({"output_type": "display_data", "data": node.data, "metadata": {}},)
        if not self.widgets:
            self.kit.sent += 1
            output = w.Output(outputs=outputs, layout=self.kit.layout, _dom_classes=self.classes)
            self.widgets = [output]
        self.kit.set(self.widgets[0], "outputs", outputs)


class Bar(Slot):
    """A progress bar and its label."""

    def update(self, node: Any) -> None:
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
