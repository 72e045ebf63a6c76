"""The runs of cells that were split, merged or renumbered.

Why: when a front end splits a cell, the lower part keeps id and outputs; the upper part, with the
magic, gets a new id. Merging makes a new cell without outputs. nbstripout (without `--keep-id`)
renumbers all cells from 0. By id alone, a record would belong to the wrong cell or to none.

Rules
- Split or merged: only an agent cell without runs inherits runs.
- Split: it takes them from the first cell with runs among the plain code cells below it, if the
  recorded prompt begins with its own text.
- Merged: it takes them from a deleted cell, if its own text begins with the recorded prompt.
- Renumbered: any code cell takes the runs of another id, if its text made one of them and the cell
  that has this id now, if any, made none.
- A cell that is not an agent cell gives up runs that the agent cell above it has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ..wire import as_dict, as_list
from .agent_cells import agent_cell, source_hash
from .ipynb import Cell, cell_id, source_of
from .record import Record

Runs = Mapping[str, Sequence[Record]]
HOMELESS = "~"  # the end of ids under which runs without a cell are kept; no cell id has it


def reassign_runs(cells: Sequence[Cell], runs: Runs) -> dict[str, list[Record]]:
    """Return the runs by the ids that their cells have now."""
    moves = find_moves(cells, runs)
    return {moves.get(cell, cell): list(listed) for cell, listed in runs.items()}


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
        (i for i, listed in runs.items() if listed and not _made_any(listed, texts.get(i))),
        key=lambda i: _sort_key(i, runs[i]),
    )
    unmatched_cells = [
        cell for cell, text in texts.items() if not _made_any(runs.get(cell, ()), text)
    ]
    moved: dict[str, str] = {}  # present id -> old id
    # first the cells whose text made the newest run of an id, then those that made an older one
    for candidates in (_select_newest, list[Record]):
        for cell in unmatched_cells:
            if cell in moved:
                continue
            fitting = (i for i in unmatched_ids if _made_any(candidates(runs[i]), texts[cell]))
            old_id = next(fitting, None)
            if old_id is not None:
                unmatched_ids.remove(old_id)
                moved[cell] = old_id
    # runs that lose their id to another cell are kept under an id that no cell has
    homeless = {i: f"{i}{HOMELESS}" for i in runs if i in moved and i not in moved.values()}
    return homeless | {old: new for new, old in moved.items()}


def _made_any(listed: Sequence[Record], text: str | None) -> bool:
    """Return whether a cell with this text made one of the runs, not only followed it."""
    return text is not None and any(
        r.get("source") == text and (r.get("conversation") != "" or r.get("execution"))
        for r in listed
    )


def _select_newest(listed: Sequence[Record]) -> Sequence[Record]:
    """Return the record of the newest run alone."""
    return [max(listed, key=_read_start)]


def _read_start(record: Record) -> float:
    """Return when a run began in epoch seconds, 0 if the record names no time."""
    started = record.get("started")
    return started if isinstance(started, int | float) and started == started else 0.0  # noqa: PLR0124  (NaN)


def _sort_key(cell: str, listed: Sequence[Record]) -> tuple[bool, float]:
    """Sort ids by number, as nbstripout gives them, then others by the start of their first run."""
    number = cell.rstrip(HOMELESS)
    if number.isdecimal() and len(number) < 10:
        return False, float(number)
    return True, min(map(_read_start, listed), default=0.0)


def inherit_runs(cells: Sequence[Cell], runs: Runs) -> dict[str, list[Record]]:
    """Return the runs that agent cells without runs inherit, by cell id."""
    present = {cell_id(cell) for cell in cells}
    orphans = [listed for cell, listed in runs.items() if listed and cell not in present]
    runs_of: dict[str, list[Record]] = {}
    for cell, body, below in _list_agent_cells(cells):
        if cell and body and not runs.get(cell):
            below_runs = next((runs[c] for c in below if runs.get(c)), ())
            is_split = below_runs and _read_prompt(below_runs).startswith(body)
            inherited = below_runs if is_split else _find_merged_runs(body, orphans)
            runs_of |= {cell: list(inherited)} if inherited else {}
    return runs_of


def find_leaving_runs(cells: Sequence[Cell], runs: Runs) -> dict[str, set[str]]:
    """Return the ids of the runs that cells give up, by cell id."""
    return {
        c: {r["id"] for r in runs.get(cell, ())}
        for cell, _, below in _list_agent_cells(cells)
        for c in below
        if runs.get(cell)
    }


def _list_agent_cells(cells: Sequence[Cell]) -> Iterator[tuple[str, str, list[str]]]:
    """Yield (id, text, ids of the other code cells before the next agent cell) of agent cells.

    The first tuple, with an empty id and text, is for the cells above all agent cells.
    """
    cell, body, below = "", "", list[str]()
    for item in cells:
        if item.get("cell_type") != "code":
            continue
        if (parts := agent_cell(source_of(item))) is not None:
            yield cell, body, below
            cell, body, below = cell_id(item), parts[1].replace("\r\n", "\n").strip(), []
        elif cell_id(item):
            below.append(cell_id(item))
    yield cell, body, below


def _find_merged_runs(body: str, orphans: Sequence[Sequence[Record]]) -> Sequence[Record]:
    """Return the runs of the gone cell whose prompt is the longest beginning of this text."""
    prompts = ((_read_prompt(listed), listed) for listed in orphans)
    merged = [pair for pair in prompts if pair[0] and f"{body}\n".startswith(f"{pair[0]}\n")]
    return max(merged, key=lambda pair: len(pair[0]), default=("", ()))[1]


def _read_prompt(listed: Sequence[Record]) -> str:
    """Return the prompt of the first run, which is the newest; "" if it is unknown."""
    events = map(as_dict, as_list(listed[0].get("events")))
    first = next((e.get("content") for e in events if e.get("type") == "user"), "")
    return first.strip() if isinstance(first, str) else ""
