"""The content of a notebook file, as far as a kernel needs it: records, cells and their tags.

Why: a kernel sees only the cells that it runs; their order and their records are in the file. A
file that cannot be read counts as an empty notebook.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ...record import (
    NotebookRuns,
    Record,
    UsedCalls,
    cell_id,
    list_cells,
    metadata_of,
    read_notebook,
    source_hash,
    source_of,
    with_ids,
)
from ...wire import as_list
from ..identity import Cell
from .tool_names import find_tool_names

EXCLUDE = "agent-exclude"  # tag of a cell that is never sent to a model


class NotebookFile(msgspec.Struct, frozen=True):
    """A notebook as it was saved last; empty if the file is unknown or cannot be read.

    `made_up_ids`: the file has no cell ids. The ids here are then made from the positions of the
    cells, and differ from ids that a front end makes up and sends.
    """

    runs: Mapping[str, Sequence[Record]] = {}  # whole records by cell id
    used_calls: UsedCalls = UsedCalls()
    cell_ids: Sequence[str] = ()  # in the order of the cells
    sources: Mapping[str, str] = {}  # of code cells, by cell id
    cleared_ids: Sequence[str] = ()  # of cells with a record and without output
    possible_tools: Collection[str] = ()  # names in the code that may be tools
    excluded_ids: Collection[str] = ()  # of cells whose tag keeps them from models
    saved_at: float = 0.0  # epoch seconds
    made_up_ids: bool = False

    def id_of(self, cell: Cell) -> str:
        """Return the id under which the file holds a cell.

        Without ids in the file, that is the id made for the cell with the same text; if several
        cells have this text, `cell.occurrence` says which. Returns "" if none is found.
        """
        if not self.made_up_ids or cell.id in self.cell_ids:
            return cell.id
        digest = cell.text_hash
        ids = [id_ for id_, source in self.sources.items() if source_hash(source) == digest]
        # `occurrence` counts from 1
        return ids[cell.occurrence - 1] if cell.occurrence <= len(ids) else ""

    def find_records(self, cell: Cell) -> list[Record]:
        """Return the records of a cell, found by its id, else by its text.

        Of several cells with this text, `cell.occurrence` says which if the cell has no true id.
        (Some front ends send no ids, and some tools renumber the cells.)
        """
        if by_id := self.runs.get(self.id_of(cell)):
            return list(by_id)
        has_true_id = bool(cell.id) and not self.made_up_ids
        occurrence = 1 if has_true_id else cell.occurrence
        position = {name: n for n, name in enumerate(self.cell_ids)}
        ordered = sorted(self.runs, key=lambda name: position.get(name, len(position)))
        digest = cell.text_hash
        of_text = ([r for r in self.runs[name] if r.get("source") == digest] for name in ordered)
        matching = [listed for listed in of_text if listed]
        return matching[occurrence - 1] if occurrence <= len(matching) else []

    def is_turn_of(self, id_: str, record: Record) -> bool:
        """Return whether a recorded run counts as the turn of the cell with the id `id_`.

        A run counts for the cell that made it. If that cell has lost the run, it counts for
        every cell that has it. A run that a pasted cell repeats is thus one turn.
        """
        maker = str(record.get("cell", ""))
        return maker == id_ or all(
            r.get("id") != record.get("id") for r in self.runs.get(maker, ())
        )


NO_FILE = NotebookFile()


def read_notebook_file(path: Path) -> NotebookFile:
    """Return the content of a notebook file; `NO_FILE` if the file cannot be read."""
    try:
        return _parse_notebook(read_notebook(path), path.stat().st_mtime)
    except (OSError, ValueError, RecursionError):
        return NO_FILE


def _parse_notebook(notebook: Mapping[str, Any], saved_at: float) -> NotebookFile:
    # asked before `with_ids`, which gives every cell an id
    made_up_ids = not any(cell.get("id") for cell in list_cells(notebook))
    notebook = with_ids(notebook)
    recorded = NotebookRuns(notebook)
    cells = list_cells(notebook)
    code = [(cell_id(c), source_of(c)) for c in cells if c.get("cell_type") == "code"]
    return NotebookFile(
        runs=recorded.all_by_cell(),
        used_calls=recorded.used_calls(),
        cell_ids=[cell_id(c) for c in cells],
        sources=dict(code),
        cleared_ids=recorded.cleared_cells(),
        possible_tools=find_tool_names(source for _, source in code),
        excluded_ids=frozenset(
            cell_id(c) for c in cells if EXCLUDE in as_list(metadata_of(c).get("tags"))
        ),
        saved_at=saved_at,
        made_up_ids=made_up_ids,
    )
