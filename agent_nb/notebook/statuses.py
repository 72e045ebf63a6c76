"""How the agent cells of a notebook stand: recorded, stale (and which input has changed), or unrecorded.

Why: whoever wants to commit a notebook, or to know what Run All will cost, should see it without running anything.

Rules
- Cells count as the file was last saved; what was run since counts with the records of this kernel.
- The conversation before a cell is what the cells above have on record, in records that are whole.
- Only the expressions of a prompt are computed, as they would be for the run; a cell whose inputs cannot be told says why.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from ..agent import Agent
from ..errors import AgentError
from ..events import Event
from ..ranking import started
from ..record import events_of
from ..signing import intact
from ..tape import match
from .cell import Cell
from .interpolate import interpolate
from .library import Library
from .options import Options
from .transform import agent_cell

LONGEST = 50  # characters of a prompt


class Standing(msgspec.Struct, frozen=True):
    """One agent cell: its id, how its prompt begins, its status, and when it was recorded (epoch s, 0: not known)."""

    cell: str
    prompt: str
    status: str
    recorded: float = 0.0


def standings(
    library: Library,
    parse: Callable[[str], Options],
    make: Callable[[Options], Agent],
    namespace: dict[str, Any],
    sent: Mapping[str, Any] = {},
) -> list[Standing]:
    """Return how each agent cell of the notebook's file stands, in order; `parse` reads an option line, `make` makes its agent."""
    file = library.file(sent)
    said: dict[str, list[Sequence[Event]]] = defaultdict(list)
    found = []
    for cell_id in file.order:
        parts = agent_cell(file.sources.get(cell_id, ""))
        if parts is None:
            continue
        cell = Cell(key=cell_id, id=cell_id, line=parts[0], body=parts[1])
        records = library.of(cell)
        try:
            options = parse(cell.line)
            history = said[options.conversation]
            if options.new:
                history.clear()
            prompt = interpolate(cell.body.replace("\r\n", "\n").strip(), namespace)
            status = "imported" if options.source else str(match(records, make(options).inputs(prompt, history=history)))
        except AgentError as fault:
            status = f"unknown: {fault}"
        whole = next(filter(intact, records), None)
        if whole is not None and file.said_by(cell_id, whole):
            said[str(whole.get("conversation", "main"))].append(events_of(whole))
        recorded = started(records[0]) if records else 0.0
        found.append(Standing(cell_id, " ".join(cell.body.split())[:LONGEST], status, recorded))
    return found
