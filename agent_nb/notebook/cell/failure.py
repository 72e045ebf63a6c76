"""How a cell fails: one clean line instead of a traceback through our code.

Why: a cell whose run could not start or ended in an error must count as failed (Run All stops, CI
is red), but the frames of this package do not help the user.
"""

from __future__ import annotations

from ..notices import make_printable


class AgentCellError(Exception):
    """The cell has failed; the message says why and what to do.

    `shown` is a short line for the cell's output where a card above it gives the reason. The
    exception's value stays the whole message, for CI and for code that catches it.
    """

    def __init__(self, message: str, shown: str = "") -> None:
        super().__init__(make_printable(message))
        self._shown = shown

    def _render_traceback_(self) -> list[str]:
        """Return the lines that IPython shows instead of a traceback."""
        return [f"agent: {self._shown or self}"]
