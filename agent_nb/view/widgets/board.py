"""A whole page as widgets: displayed once, drawn again and again, and closed.

Why a style sheet decides what shows when the kernel is gone: only the front end can act then.
"""

from __future__ import annotations

import math
import re
from functools import cache
from pathlib import Path
from typing import Any

from .. import nodes, theme
from ..draw import html
from ..folds import MOST_LINES, PACE, STEP
from ..markdown.stylesheet import css
from ..nodes import Node
from .controls import Buttons, Form, Head
from .editor import Editor
from .kit import Kit, Press
from .prose import Prose
from .root import Root, Watch
from .slots import Part, Slot, Stack, needs_widgets
from .steps import Bar, Fold, Interactive, Panel, Step

# type of a node -> the class of the slot that shows it
SLOTS: dict[type[Node], type[Slot]] = {
    nodes.Stack: Stack,
    nodes.Box: Stack,
    nodes.Panel: Panel,
    nodes.Step: Step,
    nodes.Fold: Fold,
    nodes.Prose: Prose,
    nodes.Bar: Bar,
    nodes.Buttons: Buttons,
    nodes.Editor: Editor,
    nodes.Interactive: Interactive,
    nodes.Form: Form,
    nodes.Row: Head,
}

SHEET = Path(__file__).parent.parent / "live.css"


@cache
def style_sheet() -> str:
    """Return the style sheet: `live.css` without comments, heights of folds, then markdown's."""
    live = re.sub(r"/\*.*?\*/\n", "", SHEET.read_text(encoding="utf-8"), flags=re.DOTALL)
    # `$NAME` in the file is a declaration of `theme`
    with_values = re.sub(r"\$([A-Z_]+)", lambda name: str(getattr(theme, name[1])), live)
    steps = range(1, round(MOST_LINES / STEP) + 1)
    # one class for each height that a body has, and the time that it takes to fold (see `folds`)
    rooms = (
        f".agent-nb .agent-nb-room-{n}{{{theme.height(n * STEP)};--agent-nb-fold:{n * PACE:g}s}}"
        for n in steps
    )
    return "\n".join((with_values, *rooms, css()))


class Board(Stack):
    """A whole page as widgets; `root` is the widget to display, made with the board.

    The style sheet shows the node of `gone` instead of what needs a kernel, once the kernel
    restarted or sent no `beat` for `theme.SILENCE` seconds. `press` gets each pressed button,
    `watch` the number of views.
    """

    # `jp-RenderedHTMLCommon`: the front end styles texts as it does in a static page
    classes = ("agent-nb", "jp-RenderedHTMLCommon")

    def __init__(self, press: Press, watch: Watch | None = None) -> None:
        super().__init__(Kit(press, SLOTS))
        self._style = self.kit.html(f"<style>{style_sheet()}</style>")
        self._gone = self.kit.html("", "agent-nb-gone")
        self._second, self._beats = -1, 0  # the second of the last beat, the number of beats
        self.root: Any = Root(
            [self._style, self._gone], layout=self.kit.layout, _dom_classes=self.classes
        )
        self.widgets = [self.root]
        if watch is not None:
            self.root.begin(watch)

    def list_parts(self, node: nodes.Page) -> list[tuple[object, Part]]:
        """Return the sections by key.

        A section that has a slot of its own keeps it when it stops moving: front ends recreate
        every child after a new one.
        """
        parts: list[tuple[object, Part]] = []
        for section in node.sections:
            key = (section.key, type(section.child))
            if needs_widgets(section.child) or key in self._slots:
                parts.append((key, section.child))
            else:
                parts.append(((section.key, "static"), (section,)))
        return parts

    def draw(self, page: nodes.Page) -> int:
        """Show a page; return the number of messages it took."""
        before = self.kit.sent
        self.kit.set(self.root, "children", (self._style, self._gone, *self.show_parts(page)))
        self.kit.sweep()
        return self.kit.sent - before

    def gone(self, node: Node) -> None:
        """Set the node that replaces the header when the kernel is gone."""
        self.kit.set(self._gone, "value", html.draw_html(node))

    def beat(self, now: float | None) -> None:
        """Show once a second that the kernel lives: another class restarts a CSS animation.

        `now`: epoch seconds, or None when the page is final and needs no kernel.
        """
        second = -1 if now is None else math.floor(now)
        if second != self._second:
            self._second, self._beats = second, self._beats + 1
            beat = () if now is None else (theme.BEATS[self._beats % 2],)
            self.kit.set(self.root, "_dom_classes", (*self.classes, *beat))

    def typed(self, about: str) -> list[tuple[nodes.Field, Any]]:
        """Return the fields of the editor of a question, with what they hold."""
        editor = self.kit.editors.get(about)
        return [] if editor is None else editor.read()

    def close(self) -> None:
        """Close every widget, and the models they share."""
        self.kit.close(self.root)
        self.kit.close_shared()
