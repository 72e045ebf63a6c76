"""What of an executed notebook stays as its file has it: what a replay shows again.

Why: a replay gives nothing new, so a file that was replayed does not differ from one that was not;
a diff shows what ran live.

Rules
- An agent cell whose runs were replayed without drift keeps outputs and execution count, if the
  file shows these runs and they were made of its text. In other cells the outputs of such runs
  stay, the rest is as it was executed.
- Where nothing ran live, the notebook keeps what it says of its language, too.
- Nothing here is read for its content: what stays is what stood there.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ...record import notebook_file
from ...record.agent_cells import agent_cell, content_hash
from ...record.ipynb import source_of
from ...record.record import KEY

LANGUAGE = "language_info"


def keep(nb: dict[str, Any], before: dict[str, Any]) -> None:
    """Put what a replay has shown again into the executed notebook `nb` as it stood in `before`."""
    numbers = [run for cell in _cells(nb) for _, run in _runs(cell)]
    made = {
        str(r["id"]): str(r.get("source", ""))
        for listed in notebook_file.records(before).values()
        for r in listed
    }
    old = {cell.get("id"): cell for cell in _cells(before)}
    for cell in _cells(nb):
        if cell.get("id") in old:
            _keep(cell, copy.deepcopy(old[cell["id"]]), made)
    if numbers and all(map(_again, numbers)) and LANGUAGE in (before.get("metadata") or {}):
        nb["metadata"][LANGUAGE] = before["metadata"][LANGUAGE]
    notebook_file.lift(nb)  # an output may have stood there with its record


def _keep(cell: dict[str, Any], old: dict[str, Any], made: Mapping[str, str]) -> None:
    shown, before = dict(_named(cell)), dict(_named(old))
    parts = agent_cell(source_of(cell))
    if parts is None:
        cell["outputs"] = [before.get(_replayed(output), output) for output in cell["outputs"]]
    elif (
        shown
        and shown.keys() == before.keys()
        and all(_again(run) for _, run in _runs(cell))
        and _made_of(parts, shown, made)
    ):
        cell["outputs"], cell["execution_count"] = old["outputs"], old.get("execution_count")


def _made_of(parts: tuple[str, str], runs: Iterable[str], made: Mapping[str, str]) -> bool:
    """Return whether all these runs were made of this text; options that do not count as inputs may
    change what is shown.
    """
    return all(made.get(run) == content_hash(*parts) for run in runs)


def _cells(nb: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [c for c in nb["cells"] if isinstance(c, dict) and c.get("cell_type") == "code"]


def _runs(cell: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], Mapping[str, Any]]]:
    """Yield the outputs of a cell that show runs, with the numbers of those."""
    for output in cell.get("outputs") or []:
        numbers = (output.get("metadata") or {}).get(KEY) if isinstance(output, dict) else None
        if isinstance(numbers, Mapping) and isinstance(numbers.get("run"), str):
            yield output, numbers


def _named(cell: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    yield from ((str(numbers["run"]), output) for output, numbers in _runs(cell))


def _again(numbers: Mapping[str, Any]) -> bool:
    return bool(numbers.get("replayed")) and "drift" not in numbers


def _replayed(output: dict[str, Any]) -> str:
    """Return the run that an output shows again ("": none)."""
    return next(
        (str(numbers["run"]) for _, numbers in _runs({"outputs": [output]}) if _again(numbers)), ""
    )
