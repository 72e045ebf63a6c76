"""Find the records of a cell in a notebook: by the id of the cell, else by its text.

Why both: some front ends send no cell ids, and some tools renumber the cells of a notebook.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...record import Record


def select_cell_records(
    runs: Mapping[str, Sequence[Record]],
    *,
    cell: str = "",
    source: str = "",
    occurrence: int = 1,
    order: Sequence[str] = (),
) -> list[Record]:
    """Return the records of one cell, newest first.

    A cell is found by its id, else by the hash `source` of its text: the `occurrence`-th cell with
    that text counts. `runs`: whole records by cell id. `order`: cell ids in notebook order.
    """
    if runs.get(cell):
        return list(runs[cell])
    index = {name: n for n, name in enumerate(order)}
    ordered = sorted(runs, key=lambda name: index.get(name, len(index)))
    of_text = ([r for r in runs[name] if source and r.get("source") == source] for name in ordered)
    matching = [listed for listed in of_text if listed]
    return matching[occurrence - 1] if 0 < occurrence <= len(matching) else []
