"""The runs of cells that were split, merged or renumbered.

Why: when a front end splits a cell, the lower part keeps id and outputs; the upper part, with the
magic, gets a new id. Merging makes a new cell without outputs. nbstripout (without `--keep-id`)
renumbers all cells from 0. By id alone, a record would belong to the wrong cell or to none.

Rules
- Split: an agent cell without runs inherits those of the first cell with runs among the plain code
  cells below it, if the recorded prompt begins with its text.
- Merged: else it inherits those of a deleted cell, if its text begins with the recorded prompt.
- Renumbered: a code cell takes over the runs of another id, if its text made one of them and the
  cell that has this id now, if any, made none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from ..wire import as_dict, as_list
from .agent_cells import agent_cell, source_hash
from .ipynb import Cell, cell_id, source_of
from .ranking import CellRecords, read_start_time
from .record import Record

Runs = Mapping[str, Sequence[Record]]
HOMELESS = "~"  # the end of ids under which runs without a cell are kept; no cell id has it


def reassign_runs(cells: Sequence[Cell], runs: Runs) -> dict[str, list[Record]]:
    """Return the runs by the ids that their cells have now."""
    moves = find_moves(cells, runs)
    moved: dict[str, list[Record]] = {}
    for cell, listed in runs.items():
        moved.setdefault(moves.get(cell, cell), []).extend(listed)
    return moved


def find_moves(cells: Sequence[Cell], runs: Runs) -> dict[str, str]:
    """Return old id -> present id of the cells whose ids have changed.

    If a cell takes over an id whose former runs fit no cell, these get the id with HOMELESS added.
    """
    texts = {
        cell_id(c): source_hash(source_of(c))
        for c in cells
        if cell_id(c) and c.get("cell_type") == "code"
    }
    unmatched_ids = sorted(
        (i for i, listed in runs.items() if listed and not _made_one(listed, texts.get(i))),
        key=lambda i: _sort_key(i, runs[i]),
    )
    unmatched_cells = [
        cell for cell, text in texts.items() if not _made_one(runs.get(cell, ()), text)
    ]
    newest_runs = {i: CellRecords(runs[i]).newest_first()[:1] for i in unmatched_ids}
    moves: dict[str, str] = {}
    # first the cells whose text made the newest run of an id, then those that made an older one
    for candidates in (newest_runs, runs):
        for cell in [c for c in unmatched_cells if c not in moves.values()]:
            free_ids = (i for i in unmatched_ids if i not in moves)
            old_id = next((i for i in free_ids if _made_one(candidates[i], texts[cell])), None)
            if old_id is not None:
                moves[old_id] = cell
    # runs that lose their id to another cell are kept under an id that no cell has
    moved_cells = set(moves.values())
    homeless = {i: f"{i}{HOMELESS}" for i in runs if i in moved_cells and i not in moves}
    return homeless | moves


def inherit_runs(cells: Sequence[Cell], runs: Runs) -> dict[str, list[Record]]:
    """Return the runs that agent cells without runs inherit, by cell id."""
    present = {cell_id(cell) for cell in cells}
    orphans = [listed for cell, listed in runs.items() if listed and cell not in present]
    inherited: dict[str, list[Record]] = {}
    for cell in _list_agent_cells(cells):
        if not cell.id or not cell.body or runs.get(cell.id):
            continue
        below_runs = next((runs[c] for c in cell.below if runs.get(c)), ())
        is_split = below_runs and _read_prompt(below_runs).startswith(cell.body)
        cell_runs = below_runs if is_split else _find_merged_runs(cell.body, orphans)
        if cell_runs:
            inherited[cell.id] = list(cell_runs)
    return inherited


def find_leaving_runs(cells: Sequence[Cell], runs: Runs) -> dict[str, set[str]]:
    """Return, by cell id, the run ids that plain cells give up to the agent cell above them."""
    return {
        plain_cell: {r["id"] for r in runs[cell.id]}
        for cell in _list_agent_cells(cells)
        if runs.get(cell.id)
        for plain_cell in cell.below
    }


class _AgentCell(msgspec.Struct):
    """An agent cell; `below`: the ids of the other code cells before the next agent cell."""

    id: str
    body: str
    below: list[str] = []


def _list_agent_cells(cells: Sequence[Cell]) -> list[_AgentCell]:
    """Return the agent cells in the order of the notebook."""
    listed: list[_AgentCell] = []
    for cell in cells:
        if cell.get("cell_type") != "code":
            continue
        parts = agent_cell(source_of(cell))
        if parts is not None:
            listed.append(_AgentCell(cell_id(cell), parts[1].replace("\r\n", "\n").strip()))
        elif listed and cell_id(cell):
            listed[-1].below.append(cell_id(cell))
    return listed


def _find_merged_runs(body: str, orphans: Sequence[Sequence[Record]]) -> Sequence[Record]:
    """Return the runs of the gone cell whose prompt is the longest beginning of this text."""
    longest = ""
    merged: Sequence[Record] = ()
    for listed in orphans:
        prompt = _read_prompt(listed)
        if len(prompt) > len(longest) and f"{body}\n".startswith(f"{prompt}\n"):
            longest, merged = prompt, listed
    return merged


def _made_one(listed: Sequence[Record], text: str | None) -> bool:
    """Return whether a cell with this text made one of the runs, not only followed it."""
    return text is not None and any(
        r.get("source") == text and (r.get("conversation") != "" or r.get("execution"))
        for r in listed
    )


def _sort_key(cell: str, listed: Sequence[Record]) -> tuple[bool, float]:
    """Sort ids by number, as nbstripout gives them, then others by the start of their first run."""
    number = cell.rstrip(HOMELESS)
    if number.isdecimal() and len(number) < 10:
        return False, float(number)
    return True, min(map(read_start_time, listed), default=0.0)


def _read_prompt(listed: Sequence[Record]) -> str:
    """Return the prompt of the newest run in its packed form; "" if unknown, or kept as payload."""
    newest = CellRecords(listed).newest_first()[0]
    events = map(as_dict, as_list(newest.get("events")))
    first = next((e.get("content") for e in events if e.get("type") == "user"), "")
    return first.strip() if isinstance(first, str) else ""
