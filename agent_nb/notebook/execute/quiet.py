"""Keeping a notebook file unchanged where an execution only replayed it.

Why: a replay shows nothing new, so it should not change the file; a diff then shows what ran live.

Rules
- An agent cell whose runs were replayed without drift keeps outputs and execution count, if the
  file shows these runs and they were made of its text. In other cells the outputs of such runs
  stay; the rest is as executed.
- If nothing ran live, the notebook keeps its language metadata, too.
- Outputs are kept without looking at their content.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ...record import notebook_file
from ...record.agent_cells import agent_cell, content_hash
from ...record.ipynb import Cell, Notebook, Output, cells, metadata_of, outputs, source_of
from ...record.outputs import Numbers, numbers_of

LANGUAGE = "language_info"


def keep(nb: dict[str, Any], before: dict[str, Any]) -> None:
    """Restore in the executed notebook `nb` what a replay only showed again, from `before`."""
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
    if numbers and all(map(_again, numbers)) and LANGUAGE in metadata_of(before):
        nb["metadata"][LANGUAGE] = before["metadata"][LANGUAGE]
    notebook_file.lift(nb)  # a restored output may carry its record


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
    """Return whether all these runs were made of this text.

    Other options, which are not inputs, may change what is shown.
    """
    return all(made.get(run) == content_hash(*parts) for run in runs)


def _cells(nb: Notebook) -> list[Cell]:
    return [c for c in cells(nb) if c.get("cell_type") == "code"]


def _runs(cell: Mapping[str, Any]) -> Iterator[tuple[Output, Numbers]]:
    """Yield the outputs of a cell that show runs, with the numbers of these runs."""
    for output in outputs(cell):
        numbers = numbers_of(output)
        if isinstance(numbers.get("run"), str):
            yield output, numbers


def _named(cell: Mapping[str, Any]) -> Iterator[tuple[str, Output]]:
    yield from ((str(numbers["run"]), output) for output, numbers in _runs(cell))


def _again(numbers: Numbers) -> bool:
    return bool(numbers.get("replayed")) and "drift" not in numbers


def _replayed(output: Output) -> str:
    """Return the id of the run that an output only replays, else ""."""
    numbers = numbers_of(output)
    return str(numbers.get("run", "")) if _again(numbers) else ""
