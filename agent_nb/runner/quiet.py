"""Keeps those parts of a notebook file unchanged in which an execution brought nothing new.

Why: a diff should show what a run answered differently, and not that it ran.

Rules
- If all live runs of a cell went as in its last execution (`same_run`), the old records stay.
- Only the user's own records stay in this way: a live rerun replaces those of others.
- An agent cell whose runs were replayed without drift keeps outputs and execution count, if the
  file shows these runs, made from the cell's present text. In other cells the outputs of replayed
  runs stay, not the execution count.
- The ids of the runs decide which outputs stay. Outputs are compared for one purpose: a cell of
  repeated live runs keeps its execution count if all its outputs are the old ones.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..record import (
    Cell,
    CellRecords,
    Notebook,
    NotebookRuns,
    Output,
    RunNumbers,
    Runs,
    UsedCalls,
    agent_cell,
    cell_id,
    content_hash,
    is_own_record,
    list_cells,
    list_outputs,
    metadata_of,
    source_of,
    user_key,
)
from .same_run import same_run

LANGUAGE = "language_info"


def restore_unchanged(nb: dict[str, Any], before: dict[str, Any]) -> list[str]:
    """Restore cells of the executed notebook `nb` from `before` where nothing is new.

    Also restore `language_info` if no run that `nb` shows is new. Return the ids of the live runs
    that were dropped.
    """
    known = NotebookRuns(before).by_cell()
    hashes = {str(r["id"]): str(r.get("source", "")) for records in known.values() for r in records}
    used = NotebookRuns(before).used_calls()
    # cell -> ids of new runs -> ids of old ones
    repeated_runs = _find_repeated(NotebookRuns(nb).by_cell(), known, used)
    old = {cell_id(cell): copy.deepcopy(cell) for cell in _code_cells(before)}
    dropped: dict[str, str] = {}  # ids of new runs -> ids of the old ones that stay
    for cell in _code_cells(nb):
        if (name := cell_id(cell)) in repeated_runs and _restore_shown_runs(
            cell, old[name], repeated_runs[name]
        ):
            dropped |= repeated_runs[name]
    unchanged = [
        _is_replayed(run) or run.get("run") in dropped.values()
        for c in _code_cells(nb)
        for _, run in _shown_runs(c)
    ]
    for cell in _code_cells(nb):
        if cell_id(cell) in old:
            _restore_cell(cell, old[cell_id(cell)], hashes)
    if unchanged and all(unchanged) and LANGUAGE in metadata_of(before):
        nb["metadata"][LANGUAGE] = before["metadata"][LANGUAGE]
    NotebookRuns(nb).replace(known, dropped)
    NotebookRuns(nb).lift()  # a restored output may carry its record
    return list(dropped)


def _find_repeated(runs: Runs, known: Runs, used: UsedCalls) -> dict[str, dict[str, str]]:
    """Return, by cell, the ids of live runs that went as before: new id -> old id.

    `used`: the taped calls that the executions of each cell used.
    """
    key, repeated = user_key(), {}
    for cell, records in runs.items():
        ids = {r["id"] for r in known.get(cell, ())}
        fresh = CellRecords([r for r in records if r["id"] not in ids]).newest_execution()
        last = CellRecords(known.get(cell, ())).newest_execution(used.newest(cell))
        if not fresh or len(fresh) != len(last):
            continue
        if all(is_own_record(r, key) for r in last) and all(map(same_run, last, fresh)):
            repeated[cell] = {new["id"]: old["id"] for new, old in zip(fresh, last, strict=True)}
    return repeated


def _restore_shown_runs(cell: dict[str, Any], old: dict[str, Any], runs: Mapping[str, str]) -> bool:
    """Show the old runs of a cell in place of the new ones; return False if that is impossible.

    It is impossible if the cell shows a further run, or did not show one of the old runs.
    """
    before = dict(_outputs_by_run(old))
    run_ids = [str(run["run"]) for _, run in _shown_runs(cell)]
    if not all(name in runs and runs[name] in before for name in run_ids):
        return False
    cell["outputs"] = _replace_outputs(cell, {name: before[runs[name]] for name in run_ids})
    if cell["outputs"] == old["outputs"]:
        cell["execution_count"] = old.get("execution_count")
    return True


def _restore_cell(cell: dict[str, Any], old: dict[str, Any], hashes: Mapping[str, str]) -> None:
    """Restore the outputs of replayed runs; `hashes`: run id -> hash of the source it ran."""
    shown_outputs, before = dict(_outputs_by_run(cell)), dict(_outputs_by_run(old))
    parts = agent_cell(source_of(cell))
    if parts is None:
        replayed = {str(n["run"]) for _, n in _shown_runs(cell) if _is_replayed(n)}
        known = {name: outputs for name, outputs in before.items() if name in replayed}
        cell["outputs"] = _replace_outputs(cell, known)
    elif (
        shown_outputs
        and shown_outputs.keys() == before.keys()
        and all(_is_replayed(run) for _, run in _shown_runs(cell))
        and _have_source(parts, shown_outputs, hashes)
    ):
        cell["outputs"], cell["execution_count"] = old["outputs"], old.get("execution_count")


def _have_source(parts: tuple[str, str], runs: Iterable[str], hashes: Mapping[str, str]) -> bool:
    """Return whether the source of all these runs is this options line and body (`parts`).

    Why the options line, too: options that are not inputs of a run may change its display.
    """
    return all(hashes.get(run) == content_hash(*parts) for run in runs)


def _code_cells(nb: Notebook) -> list[Cell]:
    return [c for c in list_cells(nb) if c.get("cell_type") == "code"]


def _shown_runs(cell: Mapping[str, Any]) -> Iterator[tuple[Output, RunNumbers]]:
    """Yield the outputs of a cell that show runs, with the numbers of these runs."""
    for output in list_outputs(cell):
        if numbers := _shown_run(output):
            yield output, numbers


def _shown_run(output: Output) -> RunNumbers:
    """Return the numbers of the run that an output shows, {} if it shows none."""
    numbers = RunNumbers.of(output)
    return numbers if isinstance(numbers.get("run"), str) else RunNumbers()


def _outputs_by_run(cell: Mapping[str, Any]) -> Iterator[tuple[str, list[Output]]]:
    """Yield (run id, outputs) for each run that a cell shows: the output or outputs of its page."""
    for output, numbers in _shown_runs(cell):
        run = numbers["run"]
        yield str(run), [output, *(o for o in list_outputs(cell) if _continued_run(o) == run)]


def _replace_outputs(cell: Mapping[str, Any], known: Mapping[str, list[Output]]) -> list[Output]:
    """Return the outputs of a cell; those of a run in `known` are replaced by its known outputs."""
    outputs: list[Output] = []
    for output in list_outputs(cell):
        if _continued_run(output) in known:
            continue  # the known outputs replace the first part, and so all parts
        outputs += known.get(str(_shown_run(output).get("run", "")), [output])
    return outputs


def _continued_run(output: Output) -> str:
    """Return the id of the run whose page an output continues; "" if it continues none."""
    return str(RunNumbers.of(output).get(RunNumbers.PART) or "")


def _is_replayed(numbers: RunNumbers) -> bool:
    """Return whether a run was replayed without drift."""
    return bool(numbers.get("replayed")) and "drift" not in numbers
