"""A growing text as widgets, of which only the last is sent again.

Why: with the whole text in one widget, each letter would send all of it. So the last widget has the
*recent* finished HTML and the open end. Long recent HTML stays there as a *part*, and a new widget
follows. `FAN` parts are merged into one of the next level, so a text of any length needs few
widgets, and a letter is sent once per level.

Rules
- Merged parts go to the end of the box, because front ends recreate every child after the first
  changed one.
- Parts with formulas are HTMLMath widgets, which typeset them, and are never merged, since that
  would typeset them again. The last widget of a growing text shows formulas as code.
"""

from __future__ import annotations

from typing import Any

import msgspec

from .. import nodes
from ..markdown.stream import stream_of
from ..markdown.stylesheet import compact
from .kit import Kit, has_formula
from .slots import Slot

RECENT = 4_000  # characters of finished HTML that are sent again with the open end
SHORT = 300  # characters of an open end that is a line or two
FAN = 40  # parts of one level that are merged into one of the next
# recent HTML with formulas moves to its own widget when it exceeds 1/SHARE of what moved before
SHARE = 8
MERGED = ("agent-nb-merged",)  # class of parts that `live.css` always lays out


class FinishedPart(msgspec.Struct, frozen=True):
    """Finished HTML in a widget.

    `level`: how often it was merged; -1: it is never merged, because it has formulas.
    """

    html: str
    level: int


class Prose(Slot):
    """A growing markdown text."""

    def __init__(self, kit: Kit) -> None:
        super().__init__(kit)
        self._text: Any = None
        self._end: Any = None  # the last widget, from the first `update` on
        self._parts: list[FinishedPart] = []  # one per widget but the last
        self._placed = 0  # pieces of the stream's `frozen` that are in `_parts`
        self._formulas = 0  # characters of the parts with formulas

    def update(self, node: nodes.Prose) -> None:
        """Show the new part of the text."""
        stream = stream_of(node.text, closed=not node.open)
        tail = compact(stream.tail(caret=True)) if node.open else ""
        if not self.widgets:
            self._end = self.kit.html("")
            tone = "agent-nb-dim" if node.dim else "agent-nb-answer"
            self.widgets = [self.kit.box([self._end], "agent-nb-prose", tone)]
        elif node.text is not self._text:  # another text, not a longer one
            self._start_over("")
            self._parts, self._placed, self._formulas = [], 0, 0
        self._text = node.text
        # a link that a part in place uses was defined further down
        if not node.open and stream.changed is not None and stream.changed < self._placed:
            self._start_over(compact("".join(stream.frozen)))
            return
        recent = compact("".join(stream.frozen[self._placed :]))
        if self._fills_part(recent, tail, node.open):
            self._placed = len(stream.frozen)
            self._begin_widget(recent, tail)
        # nothing typesets formulas in the last widget, so there they are code
        self.kit.set(self._end, "value", compact(stream.untypeset_html(self._placed)) + tail)

    def _fills_part(self, recent: str, tail: str, growing: bool) -> bool:
        """Return whether the recent text is long enough to continue in a new widget.

        A long open end delays the new widget, because both widgets show it for a moment. Formulas
        are moved early, since only the move typesets them.
        """
        enough = RECENT if len(tail) < SHORT else 2 * RECENT
        if has_formula(recent):
            enough = self._formulas // SHARE  # a share, so that the moves stay few in a long text
        return len(recent) > enough or (not growing and has_formula(recent))

    def _begin_widget(self, recent: str, tail: str) -> None:
        """Make the recent text a part, and begin a new last widget with `tail`.

        The part stays where it is, except if it is typeset or merged: that takes another widget.
        """
        box, last = self.widgets[0], self._end
        typeset = has_formula(recent)
        self._formulas += len(recent) if typeset else 0
        merges = self._add(FinishedPart(recent, -1 if typeset else 0))
        value = self._parts[-1].html
        self._end = self.kit.html(tail)
        before = box.children[: len(self._parts) - 1]
        if typeset or merges:
            replaced = box.children[len(before) :]
            self.kit.set(
                box,
                "children",
                (*before, self.kit.html(value, *MERGED, typeset=typeset), self._end),
            )
            self.kit.retire(list(replaced))
        else:
            # in this order the open end is seen twice for a moment; in the other, not at all
            self.kit.set(box, "children", (*before, last, self._end))
            self.kit.set(last, "value", value)

    def _add(self, part: FinishedPart) -> int:
        """Add a part and merge while `FAN` share a level; return the number of merges."""
        self._parts.append(part)
        merged = 0
        # as in a counter with digits up to `FAN`: a merge may fill up the next level too
        while self._is_level_full():
            merging = self._parts[-FAN:]
            html = "".join(part.html for part in merging)
            self._parts[-FAN:] = [FinishedPart(html, merging[0].level + 1)]
            merged += 1
        return merged

    def _is_level_full(self) -> bool:
        """Return whether the last `FAN` parts have one level, at which parts are merged."""
        levels = [part.level for part in self._parts[-FAN:]]
        return levels[-1] >= 0 and levels == levels[-1:] * FAN

    def _start_over(self, whole: str) -> None:
        """Show `whole` in one new widget instead of all that is there.

        That is needed for another text, and when a link is defined below a part that uses it.
        """
        old = list(self.widgets[0].children)
        self._end = self.kit.html(whole, typeset=has_formula(whole))
        self.kit.set(self.widgets[0], "children", (self._end,))
        self.kit.retire(old)
