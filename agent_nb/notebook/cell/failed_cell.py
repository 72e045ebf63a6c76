"""The question of `%%agent --fix`: the code and the traceback of the cell that failed last.

Rules
- The question is the prompt: it stands in the record as it was sent, and finds the record again.
  Numbers of cells, addresses and the folders of libraries and kernels are taken out of it, since
  they differ from run to run.
- What the cell itself says is added as the user's remark.
- A cell counts as failed until it runs again and ends. A stopped cell has not failed. A cell tagged
  `agent-exclude` is never sent.
- If no cell has failed here, the record of the cell gives the question, for its replay only: a
  notebook whose mistake has been mended still runs from top to bottom. Nothing is asked anew then.
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
from ..files.library import Library
from ..identity import Cell
from .context_cells import CODE, TRACEBACK, readable_cells
from .ran_cells import RanCell

NOTHING = (
    "--fix found no cell that has failed in this session. Run the cell that fails, then this one."
)
REPLAYED = "no cell has failed here"
LINE = 200  # characters of the error in the first line
_WORD = r"(?<![^\s\"'])[^\s\"']*"  # the beginning of a path
_VOLATILE: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\b0x[0-9a-fA-F]+\b"), "0x…"),
    (re.compile(r"\bCell In ?\[\d+\]"), "Cell"),
    (re.compile(r"<ipython-input-\d+-\w+>"), "<cell>"),
    (re.compile(rf"{_WORD}ipykernel_\d+[\\/]\d+\.py"), "<cell>"),
    (re.compile(rf"{_WORD}[\\/](?=(?:site-packages|python3\.\d+)[\\/])"), "…/"),
)


class Question(msgspec.Struct, frozen=True):
    """What a cell asks. `recorded`: the record of the cell says so, since no cell has failed.
    `pictures`: those that the prompt names.
    """

    prompt: str
    recorded: bool = False
    pictures: Sequence[Mapping[str, str]] = ()

    def only_replayed(self, mode: str) -> str:
        """Return the mode in which the cell may run. Raises UsageError for a live run of a recorded
        question.
        """
        if self.recorded and mode == "live":
            raise UsageError(NOTHING)
        return "replay" if self.recorded else mode

    @property
    def remark(self) -> str:
        """A remark for the header of a replay."""
        return REPLAYED if self.recorded else ""


def failure_question(shell: Any, cell: Cell, library: Library, remark: str) -> Question:
    """Return the question of a cell with `--fix`. Raises UsageError if there is none."""
    file = library.file(cell.sent)
    failed = next((c for c in readable_cells(shell, cell, file) if c.failed), None)
    if failed is not None:
        return Question(_asked(failed, remark))
    own = (r for r in library.of(cell) if r.get("conversation") != Provenance.NO_CONVERSATION)
    for record in own:
        prompt = next((e for e in events_of(record) if isinstance(e, User) and not e.span), None)
        if prompt is not None and prompt.content.endswith(remark):
            return Question(prompt.content, recorded=True)
    raise UsageError(NOTHING)


def _asked(failed: RanCell, remark: str) -> str:
    traceback = steady(_clean(failed.failed))
    parts = (
        f"This cell fails: {cut_end(traceback.rpartition(chr(10))[2], LINE)}",
        _fenced(cut_middle(_clean(failed.code), CODE), "python"),
        _fenced(cut_middle(traceback, TRACEBACK)),
        "Find the cause, and say how to fix it.",
        remark,
    )
    return "\n\n".join(filter(None, parts))


def _clean(text: str) -> str:
    return redact_text(text, collect_secrets())


def steady(traceback: str) -> str:
    """Return a traceback without what differs from run to run."""
    for pattern, plain in _VOLATILE:
        traceback = pattern.sub(plain, traceback)
    return "\n".join(line.rstrip() for line in traceback.strip().splitlines())


def _fenced(text: str, language: str = "") -> str:
    ticks = max((len(run) for run in re.findall(r"`{3,}", text)), default=2) + 1
    return f"{'`' * ticks}{language}\n{text}\n{'`' * ticks}"
