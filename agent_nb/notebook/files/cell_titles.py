"""The name of a notebook's cell in failures, reports and reviews: its number and its prompt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...record import agent_cell, cell_id, numbered_id, source_of
from ...wire import cut_end

LONGEST = 60  # characters of a prompt in the name of a cell


def name_cell(number: int, cell: Mapping[str, Any]) -> str:
    """Return the name of a cell: number, id and, for an agent cell, the start of its prompt."""
    parts = agent_cell(source_of(cell))
    first = " ".join((parts[1] if parts else "").strip().partition("\n")[0].split())
    title = f' "{cut_end(first, LONGEST)}"' if first else ""
    name = cell_id(cell)
    label = f" ({name})" if name not in ("", numbered_id(number)) else ""
    return f"cell {number}{label}{title}"
