"""How a cell fails: one clean line instead of a traceback through our code.

Why: a cell whose run could not start or ended in an error must count as failed (Run All stops, CI
is red), but the frames of this package tell the user nothing.
"""

from __future__ import annotations

from ..notices import printable


class AgentCellError(Exception):
    """The cell has failed; the message says why and what to do.

    `shown`: what happened, in a few words, where the cell's output holds a card with the reason;
    the line below it repeats only these. The message stays the exception's value, for CI and for
    whoever catches it.
    """

    def __init__(self, message: str, shown: str = "") -> None:
        super().__init__(printable(message))
        self._shown = shown

    def _render_traceback_(self) -> list[str]:
        """Return what IPython shows instead of a traceback."""
        return [f"agent: {self._shown or self}"]
