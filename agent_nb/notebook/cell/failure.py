"""The error of a failed cell: one line instead of a traceback through this package.

Why: a cell must count as failed if its run could not start or ended in an error: Run All stops, CI
is red. The frames of this package would not help the user.
"""

from __future__ import annotations

from ..notices import make_printable


class AgentCellError(Exception):
    """The cell has failed; the message says why and what to do.

    `short` is the line for the cell's output where a card above it gives the reason. The exception
    keeps the whole message, for CI and for code that catches it.
    """

    def __init__(self, message: str, short: str = "") -> None:
        super().__init__(make_printable(message))
        self._short = short

    def _render_traceback_(self) -> list[str]:
        """Return the lines that IPython shows instead of a traceback."""
        return [f"agent: {self._short or self}"]
