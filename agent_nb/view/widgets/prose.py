"""A growing text: a few widgets of finished parts, and one with what is recent and open, so that only the end is sent again."""

from __future__ import annotations

from typing import Any

from .. import look, nodes
from ..markdown import stream_of
from ..sheet import compact
from .kit import Kit, has_formula
from .slots import Slot

RECENT = 5_000  # characters of finished HTML that are sent again with the open end
SHORT = 300  # characters of an open end that is no more than a line or two
CHUNKS = 48  # in long answers more of them, so that their widgets are not many more than that


class Prose(Slot):
    """A growing markdown text: widgets of finished parts, then one with what is recent and open.

    When there is much of it, the last widget keeps what is finished and a new one goes on: were text moved from one to the other, it
    would be seen twice, or not at all, for a moment.
    """

    def __init__(self, kit: Kit) -> None:
        super().__init__(kit)
        self._chunks: list[str] = []  # the finished parts in each widget but the last
        self._placed = 0  # finished parts in them

    def update(self, node: Any) -> None:
        """Show what is new."""
        stream = stream_of(node.text, closed=not node.open)
        tail = compact(stream.tail(caret=True)) if node.open else ""
        if not self.widgets:
            self._begin(node)
        recent = compact("".join(stream.frozen[self._placed :]))
        if self._enough(recent, tail) or (not node.open and has_formula(recent)):
            self._chunks.append(recent)
            self._placed, recent = len(stream.frozen), ""
            self._go_on(tail)
        if not node.open and "".join(self._chunks) + recent != (whole := compact("".join(stream.frozen))):
            self._again(whole)  # a link was defined below a part that refers to it
        else:
            self.kit.set(self._end, "value", self._wrapped(recent + tail))

    def _enough(self, recent: str, tail: str) -> bool:
        """Return whether to go on in a new widget: there is much, and little that is open, for that is seen twice for a moment."""
        much = max(RECENT, sum(map(len, self._chunks)) // CHUNKS)
        return len(recent) > (much if len(tail) < SHORT else 2 * much)

    def _begin(self, node: nodes.Prose) -> None:
        self._css = look.THOUGHT + ";" + look.ink("muted") if node.dim else look.ANSWER.replace("8px 0 2px", "0")
        self._end = self.kit.html("")
        self.widgets = [self.kit.box([self._end], "agent-nb-prose")]

    def _wrapped(self, inner: str) -> str:
        return f'<div style="{self._css}">{inner}</div>' if inner else ""

    def _go_on(self, tail: str) -> None:
        """Leave the newest chunk to the last widget (or to one that typesets its formulas) and open a new one with `tail`."""
        box, done, value = self.widgets[0], self._end, self._wrapped(self._chunks[-1])
        self._end = self.kit.html(self._wrapped(tail))
        kept = self.kit.html(value) if has_formula(value) else done
        self.kit.set(box, "children", (*box.children[:-1], kept, self._end))
        if kept is done:
            self.kit.set(done, "value", value)
        else:
            self.kit.retire([done])

    def _again(self, whole: str) -> None:
        """Show a closed text anew in one widget."""
        old = list(self.widgets[0].children)
        self._end = self.kit.html(self._wrapped(whole))
        self.kit.set(self.widgets[0], "children", (self._end,))
        self.kit.retire(old)
