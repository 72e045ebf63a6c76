"""Whose records are those of a cell that was split, merged or given another id.

Why: a front end that splits a cell leaves id and outputs with the lower part and gives the upper
part, where the magic stands, a new id; one that merges cells makes a new cell without outputs;
nbstripout (without `--keep-id`) numbers all cells anew, from 0. Going by ids alone the record would
stay with a cell that is no agent cell any more, or go with one that does not exist, or is another
one.

Rules
- Only an agent cell without a run inherits: from the next cell with runs below it that is no agent
  cell, when the recorded prompt begins with its text (split); from a cell that is gone, when its
  text begins with the lines of the recorded prompt (merged).
- A cell that is no agent cell gives up the runs that the agent cell above it has.
- A cell that none of its records were made of, by the hash of its text, gets the runs that were
  made of its text under an id whose own cell has another one; of several the first in the order of
  their ids' numbers, else of their start. Where there are none it keeps its own.
- Pure: cells and runs come in, nothing is changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from .agent_cells import agent_cell, source_hash
from .ipynb import Cell, source_of
from .record import Record

Runs = Mapping[str, Sequence[Record]]
HOMELESS = "~"  # no id of a cell has it


def renumbered(cells: Sequence[Cell], runs: Runs) -> dict[str, list[Record]]:
    """Return the runs by the ids that their cells have. Those whose id another cell has, and no
    cell their text, get an id of none.
    """
    texts = {
        str(c["id"]): source_hash(source_of(c))
        for c in cells
        if c.get("id") and c.get("cell_type") == "code"
    }
    loose = sorted(
        (i for i, listed in runs.items() if listed and not _made_of(listed, texts.get(i))),
        key=lambda i: _place(i, runs[i]),
    )
    wanting = [cell for cell, text in texts.items() if not _made_of(runs.get(cell, ()), text)]
    moved: dict[str, str] = {}
    # runs of a text that the cell had before it was changed go to those that nobody else serves
    for part in (_newest, _all):
        for cell in wanting:
            found = (
                next((i for i in loose if _made_of(part(runs[i]), texts[cell])), None)
                if cell not in moved
                else None
            )
            if found is not None:
                loose.remove(found)
                moved[cell] = found
    kept = {
        f"{i}{HOMELESS}" if i in moved else i: listed
        for i, listed in runs.items()
        if i not in moved.values()
    }
    return {
        **{i: list(listed) for i, listed in kept.items()},
        **{cell: list(runs[i]) for cell, i in moved.items()},
    }


def _agent(cell: Cell) -> tuple[str, str] | None:
    return agent_cell(source_of(cell)) if cell.get("cell_type") == "code" else None


def _made_of(listed: Sequence[Record], text: str | None) -> bool:
    """Return whether a cell of this text made one of the runs; those that it only followed do not
    count.
    """
    return text is not None and any(
        r.get("source") == text and (r.get("conversation") != "" or r.get("execution"))
        for r in listed
    )


def _newest(listed: Sequence[Record]) -> Sequence[Record]:
    return [max(listed, key=_started)]


def _all(listed: Sequence[Record]) -> Sequence[Record]:
    return listed


def _started(record: Record) -> float:
    started = record.get("started")
    return started if isinstance(started, int | float) and started == started else 0.0  # noqa: PLR0124  (NaN)


def _place(cell: str, listed: Sequence[Record]) -> tuple[bool, float]:
    """Return what orders ids as their cells stood in the notebook: numbers by themselves, others by
    when their first run began.
    """
    number = cell.rstrip(HOMELESS)
    return (
        (False, float(number))
        if number.isdecimal() and len(number) < 10
        else (True, min(map(_started, listed), default=0.0))
    )


def inherited(cells: Sequence[Cell], runs: Runs) -> dict[str, list[Record]]:
    """Return what agent cells without runs inherit, by cell id."""
    gone = [
        listed
        for cell, listed in runs.items()
        if listed and cell not in {c.get("id") for c in cells}
    ]
    found: dict[str, list[Record]] = {}
    for cell, body, below in _agents(cells):
        if cell and body and not runs.get(cell):
            lower = next((runs[c] for c in below if runs.get(c)), ())
            heirloom = lower if lower and _prompt(lower).startswith(body) else _merged(body, gone)
            found |= {cell: list(heirloom)} if heirloom else {}
    return found


def leaving(cells: Sequence[Cell], runs: Runs) -> dict[str, set[str]]:
    """Return the ids of the runs that cells give up, by cell id."""
    return {
        c: {r["id"] for r in runs.get(cell, ())}
        for cell, _, below in _agents(cells)
        for c in below
        if runs.get(cell)
    }


def _agents(cells: Sequence[Cell]) -> Iterator[tuple[str, str, list[str]]]:
    """Yield id and text of each agent cell, with the ids of the other code cells down to the next
    one.
    """
    cell, body, below = "", "", list[str]()
    for each in cells:
        parts = _agent(each)
        if parts is not None:
            yield cell, body, below
            cell, body, below = str(each.get("id", "")), parts[1].replace("\r\n", "\n").strip(), []
        elif each.get("cell_type") == "code" and each.get("id"):
            below.append(str(each["id"]))
    yield cell, body, below


def _merged(body: str, gone: Sequence[Sequence[Record]]) -> Sequence[Record]:
    fitting = [
        listed
        for listed in gone
        if (prompt := _prompt(listed)) and f"{body}\n".startswith(f"{prompt}\n")
    ]
    return max(fitting, key=lambda listed: len(_prompt(listed)), default=())


def _prompt(listed: Sequence[Record]) -> str:
    """Return what was asked in the newest run ("" when that is not to be told)."""
    events = listed[0].get("events")
    said = (
        (e.get("content") for e in events if isinstance(e, dict) and e.get("type") == "user")
        if isinstance(events, list)
        else iter(())
    )
    first = next(said, "")
    return first.strip() if isinstance(first, str) else ""
