"""The steps of a run: panels, their rows, thoughts and bars.

Rules: a step that stops moving becomes one HTML widget. A thought is opened or closed only when its
node says something new, so that what a reader opened stays open.
"""

from __future__ import annotations

from typing import Any

import ipywidgets as w

from .. import nodes
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
        self.widgets = self._slot.widgets
        tint = (f"agent-nb-{node.tone}",) if node.tone else ()
        # a row without a marker is indented by its width
        line = () if node.marked else ("agent-nb-line",)
        self.kit.set(self.widgets[0], "_dom_classes", (*self._slot.classes, *line, *tint))


class Thought(Slot):
    """A fold as an accordion, such as a thought: open while it grows, then closed once."""

    classes = ("agent-nb-thought",)

    def __init__(self, kit: Kit) -> None:
        super().__init__(kit)
        self._body = Several(kit)
        self._open: bool | None = None  # what the last node said; None before the first

    def update(self, node: Any) -> None:
        """Show the fold."""
        self._body.show(nodes.Stack(node.body))
        if not self.widgets:
            self.kit.sent += 1  # the accordion, which the kit does not make
            inner = self.kit.box(self._body.widgets, "agent-nb-scroll")
            index = 0 if node.open else None
            self.widgets = [
                w.Accordion(
                    [inner],
                    titles=(node.title,),
                    selected_index=index,
                    layout=self.kit.layout,
                    _dom_classes=self.classes,
                )
            ]
        self.kit.set(self.widgets[0], "titles", (node.title,))
        if self._open is not None and self._open != node.open:
            self.kit.set(self.widgets[0], "selected_index", 0 if node.open else None)
        self._open = node.open


class Drawn(Slot):
    """A chart or a widget, drawn by the front end from its MIME bundle.

    The output is set by its trait: `with output:` would take what other code of the cell displays.
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
    """A progress bar; its label is in the static part below it (`slots`)."""

    def update(self, node: Any) -> None:
        """Move the bar."""
        value = round(max(0.0, min(1.0, node.fraction or 0.0)), 3)
        if not self.widgets:
            self.kit.sent += 2  # the bar and its style
            self.widgets = [
                w.FloatProgress(
                    value=value, min=0.0, max=1.0, layout=self.kit.layout, tooltip=node.name
                )
            ]
        self.kit.set(self.widgets[0], "value", value)
