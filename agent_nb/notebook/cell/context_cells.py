"""The cells above as a model reads them: code, text results and tracebacks, newest first.

Why: a question about a notebook is often about what its earlier cells did.

Rule: only cells that ran in this kernel count (`ran_cells`), but none tagged `agent-exclude` (when
it ran, or in the saved notebook). All texts pass the secret filter before they are cut.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...record import source_hash
from ...tools import count_tokens
from ...wire import cut_middle
from ..files.notebook_file import NotebookFile
from ..identity import Cell
from . import ran_cells
from .ran_cells import RanCell

LONGEST_CODE, LONGEST_RESULT, LONGEST_TRACEBACK = 4_000, 2_000, 3_000  # most characters of each
_HEADING = "Cells that ran before, newest first:"


def readable_cells(shell: Any, cell: Cell, file: NotebookFile) -> list[RanCell]:
    """Return the cells that a model may read in a run of `cell`, above or below, newest first.

    Cells deleted since then (`cell.deleted`) are first forgotten for good.
    """
    # by their texts, too: a cell that ran without an id is known by its text only
    excluded = {source_hash(file.sources.get(name, "")) for name in file.excluded_ids}
    history = ran_cells.ran_cells_of(shell)
    history.forget(cell.deleted)
    return [
        ran
        for ran in reversed(list(history))
        if not (ran.excluded or ran.id in file.excluded_ids or ran.text_hash in excluded)
    ]


def cells_above(shell: Any, cell: Cell, file: NotebookFile) -> list[RanCell]:
    """Return the `readable_cells` without `cell` and those below it in the saved notebook."""
    order = {name: position for position, name in enumerate(file.cell_ids)}
    here = order.get(cell.id, len(order))
    # -1: a cell that the saved notebook does not have counts as above
    return [
        ran
        for ran in readable_cells(shell, cell, file)
        if order.get(ran.id, -1) < here and not (ran.id and ran.id == cell.id)
    ]


def format_cells(
    cells: Sequence[RanCell], clean: Callable[[str], str], most_tokens: int
) -> tuple[str, int]:
    """Return the first cells that fit into `most_tokens`, as one text, and their number.

    `clean` removes secrets. The text says how many cells it leaves out; it is "" if none fits.
    """
    parts: list[str] = []
    tokens_left = most_tokens - count_tokens(_HEADING) - count_tokens(_count_missing(len(cells)))
    for cell in cells:
        text = describe_cell(cell, clean)
        tokens_left -= sum(map(count_tokens, text.splitlines())) + 1  # 1: the empty line above it
        if tokens_left < 0:
            break
        parts.append(text)
    missing = len(cells) - len(parts)
    paragraphs = [*parts, *([_count_missing(missing)] if missing else [])]
    return ("\n\n".join([_HEADING, *paragraphs]) if parts else ""), len(parts)


def describe_cell(cell: RanCell, clean: Callable[[str], str]) -> str:
    """Return a cell as text: its code, its result and its traceback."""
    parts = (
        (f"In [{cell.count or ' '}]:", cell.code, LONGEST_CODE),
        (f"Out[{cell.count}]:", cell.result, LONGEST_RESULT),
        (f"Error in [{cell.count}]:", cell.traceback, LONGEST_TRACEBACK),
    )
    shown = [f"{head}\n{cut_middle(clean(text), longest)}" for head, text, longest in parts if text]
    return "\n".join(shown)


def _count_missing(count: int) -> str:
    return f"… and {count:,} earlier cell{'' if count == 1 else 's'}"
