"""Leaves those parts of a notebook file unchanged in which an execution brought nothing new.

Why: a diff should show what a run answered differently, and not that it ran.

Rules
- If all live runs of a cell went as in its last execution (`same_run`), the old records stay, but
  only the user's own: a live rerun replaces those of others.
- An agent cell whose runs were replayed without drift keeps outputs and execution count, if the
  file shows these runs, made from the cell's present text. In a cell of Python code the outputs of
  replayed runs stay, not the execution count.
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
    UserKey,
    agent_cell,
    cell_id,
    content_hash,
    list_cells,
    list_outputs,
    metadata_of,
    source_of,
)
from ..wire import as_list
from .same_run import same_run

LANGUAGE = "language_info"


def restore_unchanged(nb: dict[str, Any], before: dict[str, Any]) -> list[str]:
    """Restore cells of the executed notebook `nb` from `before` where nothing is new.

    Also restore `language_info` if no run that `nb` shows is new. Return the ids of the live runs
    that were dropped.
    """
    known = NotebookRuns(before).by_cell()
    used = NotebookRuns(before).used_calls()
    repeated_runs = _find_repeated(NotebookRuns(nb).by_cell(), known, used)
    hashes = {str(r["id"]): str(r.get("source", "")) for records in known.values() for r in records}
    old_cells = {cell_id(cell): copy.deepcopy(cell) for cell in _code_cells(before)}
    dropped: dict[str, str] = {}  # ids of new runs -> ids of the old ones that stay
    shown: list[RunNumbers] = []  # taken first: restored outputs need not say `replayed`
    for cell in _code_cells(nb):
        name = cell_id(cell)
        repeated = repeated_runs.get(name)
        if repeated and _restore_shown_runs(cell, old_cells[name], repeated):
            dropped |= repeated
        numbers = map(RunNumbers.of, list_outputs(cell))
        shown += [run for run in numbers if isinstance(run.get("run"), str)]
        if name in old_cells:
            _restore_replayed(cell, old_cells[name], hashes)
    old_ids = set(dropped.values())
    nothing_new = all(_is_replayed(run) or run.get("run") in old_ids for run in shown)
    if shown and nothing_new and LANGUAGE in metadata_of(before):
        nb["metadata"][LANGUAGE] = before["metadata"][LANGUAGE]
    NotebookRuns(nb).replace(known, dropped)
    NotebookRuns(nb).lift()  # a restored output may carry its record
    return list(dropped)


def _find_repeated(runs: Runs, known: Runs, used: UsedCalls) -> dict[str, dict[str, str]]:
    """Return, by cell, the ids of live runs that went as before: new id -> old id.

    `used`: the taped calls that the executions of each cell used.
    """
    key = UserKey.read()
    repeated: dict[str, dict[str, str]] = {}
    for cell, records in runs.items():
        old_records = known.get(cell, ())
        old_ids = {r["id"] for r in old_records}
        new = CellRecords([r for r in records if r["id"] not in old_ids]).newest_execution()
        old = CellRecords(old_records).newest_execution(used.newest(cell))
        if not new or len(new) != len(old):
            continue
        if all(key.owns(r) for r in old) and all(map(same_run, old, new)):
            repeated[cell] = {n["id"]: o["id"] for n, o in zip(new, old, strict=True)}
    return repeated


def _restore_shown_runs(cell: dict[str, Any], old: dict[str, Any], runs: Mapping[str, str]) -> bool:
    """Show the old runs of a cell in place of the new ones; return False if that is impossible.

    It is impossible if the cell shows a further run, or did not show one of the old runs. `runs`:
    new id -> old id.
    """
    old_outputs = _outputs_by_run(old)
    old_ids = {*old_outputs, *(i for output in list_outputs(old) for i in _taped_calls(output))}
    new_ids = [str(run["run"]) for _, run in _shown_runs(cell)]
    if not all(runs.get(new_id) in old_ids for new_id in new_ids):
        return False
    outputs = _replace_outputs(cell, {new: old_outputs.get(runs[new], []) for new in new_ids})
    cell["outputs"] = _restore_lines(outputs, old, runs)
    if cell["outputs"] == old["outputs"]:
        cell["execution_count"] = old.get("execution_count")
    return True


def _restore_replayed(cell: dict[str, Any], old: dict[str, Any], hashes: Mapping[str, str]) -> None:
    """Restore the outputs of replayed runs. `hashes`: run id -> hash of its source."""
    new_outputs, old_outputs = _outputs_by_run(cell), _outputs_by_run(old)
    parts = agent_cell(source_of(cell))
    if parts is None:
        replayed = {str(run["run"]) for _, run in _shown_runs(cell) if _is_replayed(run)}
        restored = {run: outputs for run, outputs in old_outputs.items() if run in replayed}
        cell["outputs"] = _restore_lines(_replace_outputs(cell, restored), old, {})
    elif (
        new_outputs
        and new_outputs.keys() == old_outputs.keys()
        and all(_is_replayed(run) for _, run in _shown_runs(cell))
        # with the options line: options that are not inputs of a run may change its display
        and all(hashes.get(run) == content_hash(*parts) for run in new_outputs)
    ):
        cell["outputs"], cell["execution_count"] = old["outputs"], old.get("execution_count")


def _restore_lines(
    outputs: Iterable[Output], old: Mapping[str, Any], runs: Mapping[str, str]
) -> list[Output]:
    """Return outputs with the old lines about taped calls, below the references to these calls.

    Such a line is one output, which `cell.taped_output` makes for all calls of a cell. A line whose
    calls the cell has not shown before stays as it is. `runs`: new id -> old id.
    """
    restored: list[Output] = []
    for output in outputs:
        calls = [runs.get(call, call) for call in _taped_calls(output)]
        # only a line needs the search, which is long where the old outputs are many
        lines = [o for o in list_outputs(old) if _taped_calls(o) == calls] if calls else []
        if not lines:
            restored.append(output)
            continue
        references = [o for o in list_outputs(old) if _shown_run(o).get("run") in calls]
        restored += [o for o in (*references, lines[0]) if o not in restored]
    return restored


def _code_cells(nb: Notebook) -> list[Cell]:
    return [c for c in list_cells(nb) if c.get("cell_type") == "code"]


def _shown_runs(cell: Mapping[str, Any]) -> Iterator[tuple[Output, RunNumbers]]:
    """Yield the outputs of a cell that show runs, with the numbers of these runs."""
    for output in list_outputs(cell):
        if numbers := _shown_run(output):
            yield output, numbers


def _shown_run(output: Output) -> RunNumbers:
    """Return the numbers of the run that an output shows, {} if it shows none.

    A line about taped calls shows none, although it names one if all of them were replayed.
    """
    numbers = RunNumbers.of(output)
    is_run = isinstance(numbers.get("run"), str) and not _taped_calls(output)
    return numbers if is_run else RunNumbers()


def _taped_calls(output: Output) -> list[str]:
    """Return the ids of the taped calls that a line is about; [] for another output."""
    return [str(call) for call in as_list(RunNumbers.of(output).get(RunNumbers.TAPE))]


def _outputs_by_run(cell: Mapping[str, Any]) -> dict[str, list[Output]]:
    """Return run id -> the outputs of its page, for each run that a cell shows."""
    by_run = {str(numbers["run"]): [output] for output, numbers in _shown_runs(cell)}
    for output in list_outputs(cell):
        by_run.get(_continued_run(output), []).append(output)
    return by_run


def _replace_outputs(cell: Mapping[str, Any], by_run: Mapping[str, list[Output]]) -> list[Output]:
    """Return the outputs of a cell; those of the runs in `by_run` are replaced by these."""
    outputs: list[Output] = []
    for output in list_outputs(cell):
        if _continued_run(output) in by_run:
            continue  # the first part is replaced by all outputs of the run
        outputs += by_run.get(str(_shown_run(output).get("run", "")), [output])
    return outputs


def _continued_run(output: Output) -> str:
    """Return the id of the run whose page an output continues; "" if it continues none."""
    return str(RunNumbers.of(output).get(RunNumbers.PART) or "")


def _is_replayed(numbers: RunNumbers) -> bool:
    """Return whether a run was replayed without drift."""
    return bool(numbers.get("replayed")) and "drift" not in numbers
