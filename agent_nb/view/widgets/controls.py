"""The controls: buttons, the header with its buttons, the editor of arguments.

Rules: a control stays the same widget while its label and state change; its messages arrive while
the cell works.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import ipywidgets as w

from .. import nodes
from ..draw import html
from .kit import Kit
from .slots import Slot


class Buttons(Slot):
    """A row of buttons that are kept while their labels and states change."""

    classes = ("agent-nb-buttons",)

    def __init__(self, kit: Kit) -> None:
        super().__init__(kit)
        self._made: dict[str, Any] = {}
        self._nodes: dict[str, nodes.Button] = {}

    def update(self, node: Any) -> None:
        """Show the buttons."""
        made = {b.key: self._button(b) for b in node.children}
        gone = [b for key, b in self._made.items() if key not in made]
        self._made = made
        if not self.widgets:
            self.widgets = [self.kit.box(list(made.values()), *self.classes, across=True)]
        self.kit.set(self.widgets[0], "children", tuple(made.values()))
        self.kit.retire(gone)

    def _button(self, node: nodes.Button) -> Any:
        made = self._made.get(node.key)
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
            heard = _beside_the_cell(made)
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
        value = html.draw(node)
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
            heard = _beside_the_cell(area)
            area.observe(lambda _: heard(), "value")
            self._note = self.kit.html("")
            self.widgets = [area, self._note]
            self.kit.editors[node.call_id] = area
        said = (
            html.draw(nodes.Row((nodes.T(node.note, tone="bad"),), wrap=True)) if node.note else ""
        )
        self.kit.set(self._note, "value", said)


def _beside_the_cell(widget: Any) -> Callable[[], None]:
    """Have a widget's messages arrive in order while the cell works.

    Returns a function to call at each message.

    - ipykernel 7.4 passes them to the thread that made the widget, busy or not; here they take the
      way that the front end chose (a subshell).
    - It does not report that a message arrived beside a running cell, and the front end holds back
      the next change until then.
    - On a subshell, 7.x attributes later prints of the user's plain threads to the message; here
      they stay with the cell.

    There are no public ways to do this. Without a kernel or subshells this does nothing.
    """
    kernel: Any = getattr(getattr(widget, "comm", None), "kernel", None)
    if not getattr(kernel, "_supports_kernel_subshells", False):
        return lambda: None
    cell = kernel.get_parent("shell")
    widget.comm._reply_subshell_for = None  # noqa: SLF001

    def heard() -> None:
        with suppress(Exception):
            kernel.shell.set_parent(cell)
            kernel._publish_status("idle", "shell")  # noqa: SLF001

    return heard
