"""The prompt of `%%agent --fix`: the code and the traceback of the cell that failed last.

Why: users ask about the error that they have just seen, without copying it.

Rules
- A replay finds the record by the prompt, so text that differs from run to run is left out.
- A cell counts as failed until it runs again and ends. A stopped cell has not failed.
- A cell tagged `agent-exclude` is never sent.
- If no cell has failed, the cell's record is only replayed, even if variables have changed: a
  notebook whose mistake is mended still runs from top to bottom.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ...errors import UsageError
from ...events import User
from ...models import collect_secrets
from ...record import Provenance, events_of
from ...wire import cut_end, cut_middle, redact_text
from ..file_text import fence
from ..files.library import Library
from ..identity import Cell
from .context_cells import CODE, TRACEBACK, readable_cells
from .ran_cells import RanCell

NOTHING = (
    "--fix found no cell that has failed in this session. Run the cell that fails, then this one."
)
REPLAYED = "no cell has failed here"  # why a recorded prompt is replayed
LINE = 200  # characters of the error in the first line of the prompt
_WORD = r"(?<![^\s\"'])[^\s\"']*"  # the beginning of a path
# text that differs from run to run -> its placeholder in a prompt
_VOLATILE: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\b0x[0-9a-fA-F]+\b"), "0x…"),
    (re.compile(r"\bCell In ?\[\d+\]"), "Cell"),
    (re.compile(r"<ipython-input-\d+-\w+>"), "<cell>"),
    (re.compile(rf"{_WORD}ipykernel_\d+[\\/]\d+\.py"), "<cell>"),
    (re.compile(rf"{_WORD}[\\/](?=(?:site-packages|python3\.\d+)[\\/])"), "…/"),
)


class CellPrompt(msgspec.Struct, frozen=True):
    """The prompt of a cell: `text` with the values of its `{{ }}`, and the `pictures` of values.

    `written`: the cell's text without its `{{ }}`; an `@name` counts only there. `recorded`: no
    cell has failed (`--fix`), so the text comes from the cell's record.
    """

    text: str
    written: str = ""
    recorded: bool = False
    pictures: Sequence[Mapping[str, str]] = ()

    def restrict_mode(self, mode: str) -> str:
        """Return the rerun mode of the cell: `replay` for a recorded prompt, else `mode`.

        Raises UsageError for a recorded prompt in the mode `live`.
        """
        if self.recorded and mode == "live":
            raise UsageError(NOTHING)
        return "replay" if self.recorded else mode

    @property
    def remark(self) -> str:
        """A remark for the header of a replay, or ""."""
        return REPLAYED if self.recorded else ""


def failure_prompt(shell: Any, cell: Cell, library: Library, remark: str) -> CellPrompt:
    """Return the prompt of a cell with `--fix`. Raises UsageError if no cell has failed."""
    file = library.file(cell.runner_options)
    failed = next((c for c in readable_cells(shell, cell, file) if c.traceback), None)
    if failed is not None:
        return CellPrompt(_format_prompt(failed, remark))
    for record in library.records_of(cell):
        if record.get("conversation") == Provenance.NO_CONVERSATION:
            continue  # a run that code in the cell began
        prompt = next((e for e in events_of(record) if isinstance(e, User) and not e.span), None)
        if prompt is not None and prompt.content.endswith(remark):
            return CellPrompt(prompt.content, recorded=True)
    raise UsageError(NOTHING)


def _format_prompt(failed: RanCell, remark: str) -> str:
    """Return the prompt about a failed cell: error, code, traceback, and the user's remark."""
    traceback = stabilize(_redact(failed.traceback))
    parts = (
        f"This cell fails: {cut_end(traceback.rpartition(chr(10))[2], LINE)}",
        fence(cut_middle(_redact(failed.code), CODE), "python"),
        fence(cut_middle(traceback, TRACEBACK)),
        "Find the cause, and say how to fix it.",
        remark,
    )
    return "\n\n".join(filter(None, parts))


def _redact(text: str) -> str:
    return redact_text(text, collect_secrets())


def stabilize(traceback: str) -> str:
    """Return a traceback with placeholders for text that differs from run to run."""
    for pattern, placeholder in _VOLATILE:
        traceback = pattern.sub(placeholder, traceback)
    return "\n".join(line.rstrip() for line in traceback.strip().splitlines())
