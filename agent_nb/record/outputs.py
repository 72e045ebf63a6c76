"""Records and numbers of runs in the outputs of cells.

Rules
- A record in an output counts only where our publisher put it (`read_published_record`).
- An output whose record has moved into the metadata keeps a reference to it (`write_references`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..wire import as_dict
from .agent_cells import source_hash
from .ipynb import Cell, Notebook, all_outputs, cell_id, list_cells, metadata_of, source_of
from .metadata import Runs, is_readable_record
from .packing import Payloads
from .record import BUTTON_KEY, LIVE_KEY, METADATA_KEY, METADATA_VERSION, RECORD_MIME, Record

WIDGET = "application/vnd.jupyter.widget-view+json"
RunNumbers = dict[str, Any]  # of a run, in the metadata of its output


def read_published_record(output: Any) -> dict[str, Any] | None:
    """Return the record that an output carries, None if our publisher did not put one there.

    Our outputs are displays whose metadata name the run (or the `record` of another), too. Nothing
    that a cell or a tool displays does so by chance. Forging such an output gains nothing, because
    its record is not signed.
    """
    output = as_dict(output)
    record = as_dict(output.get("data")).get(RECORD_MIME)
    numbers = numbers_of(output)
    if not isinstance(record, dict) or output.get("output_type") != "display_data":
        return None
    named = numbers.get("record", numbers.get("run"))
    return record if is_readable_record(record) and named == record["id"] else None


def numbers_of(output: Mapping[str, Any]) -> RunNumbers:
    """Return what an output's metadata say of its run, {} if nothing."""
    return as_dict(metadata_of(output).get(METADATA_KEY))


def in_outputs(nb: Notebook) -> Runs:
    """Return the whole records that are still in outputs, by the cell that made them.

    Cells without an id are skipped.
    """
    runs: Runs = {}
    present = {cell_id(c): c for c in list_cells(nb)}
    for cell, output in all_outputs(nb):
        name, record = cell_id(cell), read_published_record(output)
        if name and record is not None:
            maker = _maker(cell, record, present) or name
            runs.setdefault(maker, []).append(Payloads.attach(record))
    return runs


def find_copied_runs(nb: Notebook, runs: Runs) -> Runs:
    """Return the runs that cells refer to and do not have: the cells were pasted."""
    known = {r["id"]: r for listed in runs.values() for r in listed}
    copied: Runs = {}
    present = {cell_id(c): c for c in list_cells(nb)}
    for cell, output in all_outputs(nb):
        own, ref = cell_id(cell), as_dict(as_dict(output.get("data")).get(RECORD_MIME)).get("ref")
        run = known.get(ref) if isinstance(ref, str) else None
        if (
            own
            and run is not None
            and not _maker(cell, run, present)
            and all(r["id"] != run["id"] for r in runs.get(own, ()))
        ):
            copied.setdefault(own, []).append(run)
    return copied


def _maker(cell: Cell, record: Record, present: Mapping[str, Any]) -> str:
    """Return the id of another cell whose code began a run that ended while `cell` ran, else ""."""
    maker = record.get("cell")
    if not record.get("execution") or maker == cell_id(cell):
        return ""
    if not isinstance(maker, str) or maker not in present:
        return ""
    return "" if record.get("source") == source_hash(source_of(cell)) else maker


def write_references(nb: Notebook, runs: Runs) -> None:
    """Replace the records in outputs that `runs` hold by references."""
    known = {r["id"] for listed in runs.values() for r in listed}
    for cell, output in all_outputs(nb):
        record = read_published_record(output)
        if record is not None and cell_id(cell) and record["id"] in known:
            output["data"][RECORD_MIME] = {"version": METADATA_VERSION, "ref": record["id"]}


def remove_widgets(nb: Notebook, going_on: Callable[[str], bool] = lambda run: False) -> int:
    """Remove our widgets, which a fresh kernel does not know; return how many.

    They are buttons, and the live views of runs. The static form of a run stays. While a run is
    `going_on`, its view stays too, in an output of its own below that form: a page that opens
    then shows both.
    """
    count = 0
    for cell, output in list(all_outputs(nb)):
        data, numbers = output.get("data"), numbers_of(output)
        if not isinstance(data, dict):
            continue
        over = LIVE_KEY in numbers and not going_on(str(numbers[LIVE_KEY]))
        if (BUTTON_KEY in numbers or over) and data.keys() <= {WIDGET}:
            _replace(cell, output)
        elif LIVE_KEY in numbers and {WIDGET, "text/html"} <= data.keys():
            view = {**output, "data": {WIDGET: data.pop(WIDGET)}}
            _replace(cell, output, output, *([] if over else [view]))
        else:
            continue
        count += 1
    return count


def _replace(cell: Cell, output: Any, *others: Any) -> None:
    """Put other outputs in the place of one."""
    at = next(i for i, other in enumerate(cell["outputs"]) if other is output)
    cell["outputs"] = [*cell["outputs"][:at], *others, *cell["outputs"][at + 1 :]]


def list_run_numbers(nb: Notebook) -> list[tuple[str, RunNumbers]]:
    """Return (cell id, numbers) of every run shown in the outputs, in the order of the notebook.

    A run that ended after its cell names that cell.
    """
    present = {cell_id(c) for c in list_cells(nb)}
    listed = []
    for cell, output in all_outputs(nb):
        numbers = numbers_of(output)
        if "run" in numbers:
            maker = numbers.get("cell_id")
            named = isinstance(maker, str) and maker in present
            listed.append((str(maker) if named else cell_id(cell), numbers))
    return listed
