"""The prompt of `%%agent --fix`: the code and the traceback of the cell that failed last.

A cell counts as failed until it runs again to its end. If none has failed, the record is replayed,
even if variables have changed: a notebook whose mistake is mended still runs from top to bottom.

Rule: a replay finds the record by the prompt, so text that differs from run to run is left out.
"""

from __future__ import annotations

import re
from typing import Any

from ...errors import UsageError
from ...events import User
from ...models import collect_secrets
from ...record import events_of
from ...wire import cut_end, cut_middle, redact_text
from ..file_text import fence
from ..files.library import Library
from ..identity import Cell
from .cell_prompt import NO_FAILED_CELL, CellPrompt
from .context_cells import LONGEST_CODE, LONGEST_TRACEBACK, readable_cells
from .ran_cells import RanCell
from .rerun import select_prompted

_PROMPT_START = "This cell fails:"
_LONGEST_ERROR = 200  # characters of the error in the first line of the prompt
_PATH = r"(?<![^\s\"'])[^\s\"']*"  # the beginning of a path
# a traceback up to the line that names the error, below which its message may go on; of a group too
_ERROR = re.compile(r"(?ms).*^(\w+) +Traceback \(.*?^(\1:[^\n]*)|\+ Exception G.*?^ *\| (\w[^\n]*)")
# text that differs from run to run -> its placeholder in a prompt
_VOLATILE: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\b0x[0-9a-fA-F]+\b"), "0x…"),
    (re.compile(r"\bCell In ?\[\d+\]"), "Cell"),
    (re.compile(r"<ipython-input-\d+-\w+>"), "<cell>"),
    (re.compile(rf"{_PATH}ipykernel_\d+[\\/]\d+\.py"), "<cell>"),
    (re.compile(rf"{_PATH}[\\/](?=(?:site-packages|python3\.\d+)[\\/])"), "…/"),
)


def make_fix_prompt(shell: Any, cell: Cell, library: Library, question: str) -> CellPrompt:
    """Return the prompt of a cell with `--fix`, which ends with the user's `question`.

    Raises UsageError if no cell has failed and the cell has no record of such a prompt.
    """
    file = library.read_file(cell.runner_options)
    failed = next((c for c in readable_cells(shell, cell, file) if c.traceback), None)
    if failed is not None:
        return CellPrompt(_format_prompt(failed, question))
    for record in select_prompted(library.rank_records(cell)):
        prompt = next((e for e in events_of(record) if isinstance(e, User) and not e.span), None)
        text = prompt.content if prompt is not None else ""
        if text.startswith(_PROMPT_START) and text.endswith(question):
            return CellPrompt(text, recorded=True)
    raise UsageError(NO_FAILED_CELL)


def _format_prompt(failed: RanCell, question: str) -> str:
    """Return the prompt about a failed cell: error, code, traceback, and the user's question."""
    traceback = stabilize(_redact(failed.traceback))
    named = _ERROR.match(traceback)
    error = named[named.lastindex or 0] if named else traceback.rpartition("\n")[2]
    parts = (
        f"{_PROMPT_START} {cut_end(error, _LONGEST_ERROR)}",
        fence(cut_middle(_redact(failed.code), LONGEST_CODE), "python"),
        fence(cut_middle(traceback, LONGEST_TRACEBACK)),
        "Find the cause, and say how to fix it.",
        question,
    )
    return "\n\n".join(filter(None, parts))


def _redact(text: str) -> str:
    return redact_text(text, collect_secrets())


def stabilize(traceback: str) -> str:
    """Return a traceback with placeholders for text that differs from run to run."""
    for pattern, placeholder in _VOLATILE:
        traceback = pattern.sub(placeholder, traceback)
    return "\n".join(line.rstrip() for line in traceback.strip().splitlines())
