"""Which taped calls (recorded model calls of other code) the executions of a cell used.

    metadata.agent_nb.tape: {cell id: [[record id, …], …]}  the newest list first

Why: while a tape is on, an execution sends only requests that have changed; older records, also of
other cells, answer the rest. Without these lists, saving would drop records that are still needed,
because they are old. Until saving, the output below a cell has the list (`RunNumbers.TAPE`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain, zip_longest
from typing import Any

from ..wire import as_dict, as_list
from .ipynb import Cell, Notebook
from .metadata import TAPE, Runs, read_stored_runs, read_texts
from .outputs import RunNumbers
from .split_merge import find_moves

MOST_LISTS = 3  # of a cell
_MOST_IDS = 10_000  # of a list


class UsedCalls(dict[str, list[list[str]]]):
    """Cell id -> for each of its executions, newest first, the ids of the taped calls it used."""

    @classmethod
    def read(cls, ours: Any, cells: Sequence[Cell] | None = None) -> UsedCalls:
        """Return the lists in our metadata, by the ids that `cells` have now (None: as stored)."""
        stored = as_dict(as_dict(ours).get(TAPE))
        moves = find_moves(cells, read_stored_runs(ours, whole=False)) if stored and cells else {}
        lists = {c: [read_texts(i)[:_MOST_IDS] for i in as_list(v)] for c, v in stored.items()}
        moved = {cell: lists.pop(old_id) for old_id, cell in moves.items() if old_id in lists}
        return cls.merge(moved, lists)

    @classmethod
    def find(cls, nb: Notebook) -> UsedCalls:
        """Return the lists in outputs, by the cell that made the calls."""
        lists = cls()
        for cell, numbers in RunNumbers.read_all(nb):
            if ids := read_texts(numbers.get(RunNumbers.TAPE))[:_MOST_IDS]:
                lists.setdefault(cell, []).append(ids)
        return lists

    @classmethod
    def merge(cls, *sources: Mapping[str, Sequence[Sequence[str]]]) -> UsedCalls:
        """Return the lists that are kept, at most `MOST_LISTS` for a cell.

        The newest list of each source comes first, then the second newest of each, and so on.
        """
        merged = cls()
        for cell in dict.fromkeys(chain.from_iterable(sources)):
            kept: list[list[str]] = []
            for ids in chain.from_iterable(zip_longest(*(s.get(cell, ()) for s in sources))):
                if ids and not any(set(ids) <= set(newer) for newer in kept):
                    kept.append(list(ids))
            if kept:
                merged[cell] = kept[:MOST_LISTS]
        return merged

    def select(self, runs: Runs, present: Iterable[str]) -> UsedCalls:
        """Return the lists of cells that are present or have runs, with the ids of `runs` alone."""
        known = {str(record["id"]) for listed in runs.values() for record in listed}
        cells = {*present, *runs}
        left = {cell: lists for cell, lists in self.items() if cell in cells}
        for cell, lists in left.items():
            left[cell] = [[name for name in ids if name in known] for ids in lists]
        return UsedCalls.merge(left)

    def newest(self, cell: str) -> Sequence[str]:
        """Return the ids that the newest execution of a cell used, () if they are unknown."""
        return self[cell][0] if cell in self else ()

    def list_ids(self, without: Collection[str] = ()) -> frozenset[str]:
        """Return all ids, except those of the cells `without`."""
        lists = (lists for cell, lists in self.items() if cell not in without)
        return frozenset(chain.from_iterable(chain.from_iterable(lists)))
