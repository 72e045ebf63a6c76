"""Whose records are those of a cell that was split or merged.

Why: a front end that splits a cell leaves id and outputs with the lower part and gives the upper part, where the magic stands, a
new id; one that merges cells makes a new cell without outputs. Going by ids alone the record would stay with a cell that is no agent
cell any more, or go with one that does not exist any more.

Rules
- Only an agent cell without a run inherits: from the next cell with runs below it that is no agent cell, when the recorded prompt
  begins with its text (split); from a cell that is gone, when its text begins with the lines of the recorded prompt (merged).
- A cell that is no agent cell gives up the runs that the agent cell above it has.
- Pure: cells and runs come in, nothing is changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .transform import agent_cell, source_of

Record = dict[str, Any]
Runs = Mapping[str, Sequence[Record]]


def inherited(cells: Sequence[Mapping[str, Any]], runs: Runs) -> dict[str, list[Record]]:
    """Return what agent cells without runs inherit, by cell id."""
    gone = [listed for cell, listed in runs.items() if listed and cell not in {c.get("id") for c in cells}]
    found: dict[str, list[Record]] = {}
    for cell, body, below in _agents(cells):
        if cell and body and not runs.get(cell):
            lower = next((runs[c] for c in below if runs.get(c)), ())
            heirloom = lower if lower and _prompt(lower).startswith(body) else _merged(body, gone)
            found |= {cell: list(heirloom)} if heirloom else {}
    return found


def leaving(cells: Sequence[Mapping[str, Any]], runs: Runs) -> dict[str, set[str]]:
    """Return the ids of the runs that cells give up, by cell id."""
    return {c: {r["id"] for r in runs.get(cell, ())} for cell, _, below in _agents(cells) for c in below if runs.get(cell)}


def _agents(cells: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str, list[str]]]:
    """Yield id and text of each agent cell, with the ids of the other code cells down to the next one."""
    cell, body, below = "", "", list[str]()
    for each in cells:
        parts = agent_cell(source_of(each)) if each.get("cell_type") == "code" else None
        if parts is not None:
            yield cell, body, below
            cell, body, below = str(each.get("id", "")), parts[1].replace("\r\n", "\n").strip(), []
        elif each.get("cell_type") == "code" and each.get("id"):
            below.append(str(each["id"]))
    yield cell, body, below


def _merged(body: str, gone: Sequence[Sequence[Record]]) -> Sequence[Record]:
    fitting = [listed for listed in gone if (prompt := _prompt(listed)) and f"{body}\n".startswith(f"{prompt}\n")]
    return max(fitting, key=lambda listed: len(_prompt(listed)), default=())


def _prompt(listed: Sequence[Record]) -> str:
    """Return what was asked in the newest run ("" when that is not to be told)."""
    events = listed[0].get("events")
    said = (e.get("content") for e in events if isinstance(e, dict) and e.get("type") == "user") if isinstance(events, list) else iter(())
    first = next(said, "")
    return first.strip() if isinstance(first, str) else ""
