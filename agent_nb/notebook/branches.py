"""Three versions of a notebook made to agree in all that execution has written, so that git merges only what people have.

Why: outputs, records and execution counts are one result; lines of two of them, mixed, would be a notebook that nobody has run.

Rules
- The runs of both sides stay, without those that one side has removed, and so does what either side has forgotten.
- What a cell shows (outputs, count, times) comes whole from the side that changed it. If both did: from the side with the newest run of
  that cell, else from the one that changed its text, else from ours.
- What execution writes about the whole notebook comes from the side that changed it, ours if both did.
- Cells are the same by their ids; one whose id stands twice is left to git.
"""

from __future__ import annotations

import copy
from collections import Counter
from typing import Any

from ..ranking import started
from ..record import KEY, MIME, VERSION, published
from . import metadata
from .transform import source_of

TIMES = "execution"  # in the metadata of a cell
ABOUT = ("language_info", "widgets")  # in the metadata of a notebook
Cell = dict[str, Any]
Runs = dict[str, list[dict[str, Any]]]


def agree(base: dict[str, Any], ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    """Write into the three notebooks what the merged one is to have of runs, outputs and what else execution writes."""
    sides = (base, ours, theirs)
    runs = [metadata.records(nb) for nb in sides]
    _write_records(sides, _three_way(*runs))
    for nb in sides:
        _refer(nb)
    cells = [_by_id(nb) for nb in sides]
    for name in cells[1] | cells[2]:
        versions = [found.get(name) for found in cells]
        if any(versions[1:]):
            made = [max((started(r) for r in listed.get(name, ())), default=0.0) for listed in runs]
            _show([v for v in versions if v is not None], _shown(*versions, newer=made[2] > made[1], older=made[2] < made[1]))
    about = [nb.setdefault("metadata", {}) for nb in sides]
    for key in ABOUT:
        _set(about, key, _either(*(m.get(key) for m in about)))


def _write_records(sides: tuple[dict[str, Any], ...], kept: Runs) -> None:
    found = [(nb.setdefault("metadata", {}) or {}).get(KEY) for nb in sides]
    values: list[dict[str, Any]] = [value if isinstance(value, dict) else {} for value in found]
    listed = [value.get(metadata.FORGOTTEN) for value in values[1:]]
    forgotten = list(dict.fromkeys(m for marks in listed if isinstance(marks, list) for m in marks if isinstance(m, str)))
    ours = {k: v for k, v in values[1].items() if k != "payloads"}
    value = {**ours, "version": VERSION, "runs": kept, **({metadata.FORGOTTEN: forgotten} if forgotten else {})}
    _set([nb["metadata"] for nb in sides], KEY, value if kept or forgotten else None)


def _three_way(base: Runs, ours: Runs, theirs: Runs) -> Runs:
    """Return the runs of both sides without those that one side has removed."""
    before, mine, yours = ({r["id"] for listed in side.values() for r in listed} for side in (base, ours, theirs))
    gone = before - (mine & yours)
    cells = {cell: [*ours.get(cell, []), *theirs.get(cell, [])] for cell in (*ours, *theirs)}
    found = {cell: {r["id"]: r for r in listed if r["id"] not in gone} for cell, listed in cells.items()}
    return {cell: list(by_id.values()) for cell, by_id in found.items() if by_id}


def _refer(nb: dict[str, Any]) -> None:
    """Leave references where outputs have records; these stand in the metadata."""
    for cell in nb["cells"]:
        for output in (cell.get("outputs") or []) if isinstance(cell, dict) else []:
            if (record := published(output)) is not None:
                output["data"][MIME] = {"version": VERSION, "ref": record["id"]}


def _by_id(nb: dict[str, Any]) -> dict[str, Cell]:
    cells = [c for c in nb["cells"] if isinstance(c, dict) and c.get("cell_type") == "code" and isinstance(c.get("id"), str)]
    count = Counter(c["id"] for c in cells)
    return {c["id"]: c for c in cells if count[c["id"]] == 1}


def _shown(base: Cell | None, ours: Cell | None, theirs: Cell | None, *, newer: bool, older: bool) -> Cell:
    """Return the version whose outputs stay; `newer` and `older` say which side has the newest run: theirs, or ours."""
    if ours is None or theirs is None:
        found = ours if ours is not None else theirs
        assert found is not None
        return found
    before, mine, yours = (_result(cell) for cell in (base, ours, theirs))
    if yours in (mine, before) or mine == before:
        return theirs if mine == before else ours
    if newer or older:
        return theirs if newer else ours
    return theirs if base is not None and source_of(ours) == source_of(base) != source_of(theirs) else ours


def _result(cell: Cell | None) -> tuple[Any, ...]:
    """Return what an execution has left of a cell."""
    return (cell.get("outputs"), cell.get("execution_count"), _times(cell)) if cell is not None else ()


def _times(cell: Cell) -> Any:
    return (cell.get("metadata") or {}).get(TIMES)


def _show(versions: list[Cell], shown: Cell) -> None:
    outputs, count, times = copy.deepcopy(_result(shown))
    for cell in versions:
        cell["outputs"], cell["execution_count"] = outputs or [], count
        _set([cell.setdefault("metadata", {})], TIMES, times)


def _either(base: Any, ours: Any, theirs: Any) -> Any:
    return theirs if ours == base else ours


def _set(places: list[dict[str, Any]], key: str, value: Any) -> None:
    """Write a value into all places, or take it out of them (None)."""
    for place in places:
        if value is None:
            place.pop(key, None)
        else:
            place[key] = value
