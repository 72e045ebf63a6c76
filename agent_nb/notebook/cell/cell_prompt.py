"""The prompt of a cell, as it is written and as it is sent.

Why both: an `@name` counts only where the user wrote it, not in the value of an expression. With
`--fix`, if no cell has failed in this session, the recorded prompt is taken and only replayed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from ...errors import UsageError

NO_FAILED_CELL = (
    "--fix found no cell that has failed in this session. Run the cell that fails, then this one."
)


class CellPrompt(msgspec.Struct, frozen=True):
    """The prompt of a cell: `text` with the values of its `{{ }}`, and the `pictures` of values.

    `written`: the cell's text without its `{{ }}`. `recorded`: the text comes from the cell's
    record, because no cell has failed that `--fix` could mean.
    """

    text: str
    written: str = ""
    recorded: bool = False
    pictures: Sequence[Mapping[str, str]] = ()

    def restrict_mode(self, mode: str) -> str:
        """Return `mode`, or `replay` for a recorded prompt. Raises UsageError if that is `live`."""
        if self.recorded and mode == "live":
            raise UsageError(NO_FAILED_CELL)
        return "replay" if self.recorded else mode

    @property
    def why_replayed(self) -> str:
        """Why the cell can only be replayed, for the header of the replay; else ""."""
        return "no cell has failed here" if self.recorded else ""
