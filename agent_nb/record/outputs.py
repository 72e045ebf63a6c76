"""What outputs of cells hold of runs: records, references to them, numbers for people, widgets.

Why: a front end saves what its outputs hold and knows nothing of our metadata, so a new record
reaches the file in an output.

Rule: a record in an output counts only where our publisher put it (`read_published_record`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ..wire import Shown, as_dict
from .agent_cells import source_hash
from .ipynb import Cell, Notebook, Output, all_outputs, cell_id, list_cells, metadata_of, source_of
from .metadata import Runs, is_readable_record
from .packing import Payloads
from .record import METADATA_KEY, METADATA_VERSION, RECORD_MIME, Record


class RunNumbers(dict[str, Any]):
    """Our metadata of an output that shows a run; empty for other outputs.

    `run` is the id of the run; the other fields are numbers and texts for people and the runner.
    """

    PART = "part"  # the id of the run whose page, divided at its charts, continues in the output
    LIVE = "live"  # the id of the run in progress that the output shows
    BUTTON = "button"  # the id of the run that a button acts on; saving removes such an output
    TAPE = "tape"  # the ids of the taped calls that the execution has used
    FORGET = "forget"  # the ids of runs that `%agent forget` removed

    @classmethod
    def of(cls, output: Mapping[str, Any]) -> RunNumbers:
        """Return a copy of our metadata of an output."""
        return cls(as_dict(metadata_of(output).get(METADATA_KEY)))

    @classmethod
    def list_all(cls, nb: Notebook) -> list[tuple[str, RunNumbers]]:
        """Return (cell id, numbers) of every run shown in the outputs, in notebook order."""
        return [(cell, numbers) for cell, numbers in cls.read_all(nb) if "run" in numbers]

    @classmethod
    def read_all(cls, nb: Notebook) -> Iterator[tuple[str, RunNumbers]]:
        """Yield (cell id, numbers) of every output of ours, in notebook order.

        A run that ends after its cell stands in the output of a later cell. Its `cell_id` names its
        own cell, and that id is returned if the notebook still has the cell.
        """
        present = {cell_id(c) for c in list_cells(nb)}
        for cell, output in all_outputs(nb):
            if numbers := cls.of(output):
                maker = numbers.get("cell_id")
                is_here = isinstance(maker, str) and maker in present
                yield str(maker) if is_here else cell_id(cell), numbers


def read_published_record(output: Any) -> dict[str, Any] | None:
    """Return the record that an output carries, None if our publisher did not put one there.

    Our publisher's display names the record's id in its metadata. No other display does that by
    chance; a forged one gains nothing, because its record is not signed.
    """
    output = as_dict(output)
    record = as_dict(output.get("data")).get(RECORD_MIME)
    numbers = RunNumbers.of(output)
    if not isinstance(record, dict) or output.get("output_type") != "display_data":
        return None
    record_id = numbers.get("record", numbers.get("run"))
    return record if is_readable_record(record) and record_id == record["id"] else None


def read_published_runs(nb: Notebook) -> Runs:
    """Return the whole records that are still in outputs, by the cell that made them.

    Cells without an id are skipped.
    """
    runs: Runs = {}
    present = {cell_id(c): c for c in list_cells(nb)}
    for cell, output in all_outputs(nb):
        name, record = cell_id(cell), read_published_record(output)
        if name and record is not None:
            maker = _find_maker(cell, record, present) or name
            runs.setdefault(maker, []).append(Payloads.attach(record))
    return runs


def find_copied_runs(nb: Notebook, runs: Runs) -> Runs:
    """Return, by cell id, the runs that pasted cells refer to but do not have."""
    known = {r["id"]: r for listed in runs.values() for r in listed}
    copied: Runs = {}
    present = {cell_id(c): c for c in list_cells(nb)}
    for cell, output in all_outputs(nb):
        name, published = cell_id(cell), as_dict(output.get("data")).get(RECORD_MIME)
        ref = as_dict(published).get("ref")
        run = known.get(ref) if isinstance(ref, str) else None
        # an output of a run that another cell began refers to a run that stays with that cell
        if not name or run is None or _find_maker(cell, run, present):
            continue
        if all(r["id"] != run["id"] for r in runs.get(name, ())):
            copied.setdefault(name, []).append(run)
    return copied


def _find_maker(cell: Cell, record: Record, present: Mapping[str, Any]) -> str:
    """Return the id of the other cell that began the run in an output of `cell`, else ""."""
    maker = record.get("cell")
    if not record.get("execution") or maker == cell_id(cell):
        return ""
    if not isinstance(maker, str) or maker not in present:
        return ""
    # a cell with the same text is a copy, and counts as the one that began the run
    return "" if record.get("source") == source_hash(source_of(cell)) else maker


def write_references(nb: Notebook, runs: Runs | None = None) -> None:
    """Replace the records in outputs that `runs` hold (None: all) by references."""
    known = None if runs is None else {r["id"] for listed in runs.values() for r in listed}
    for cell, output in all_outputs(nb):
        record = read_published_record(output)
        if record is not None and (known is None or (cell_id(cell) and record["id"] in known)):
            output["data"][RECORD_MIME] = {"version": METADATA_VERSION, "ref": record["id"]}


def remove_widget(cell: Cell, output: Output, going_on: Callable[[str], bool]) -> bool:
    """Remove our widget from an output; return whether anything changed."""
    data, numbers = output.get("data"), RunNumbers.of(output)
    if not isinstance(data, dict):
        return False
    # a part of a divided page: its static forms stay
    if RunNumbers.PART in numbers and Shown.WIDGET in data:
        del data[Shown.WIDGET]
        return True
    live = numbers.get(RunNumbers.LIVE)
    has_ended = live is not None and not going_on(str(live))
    # an output that is a widget and nothing else: a button, or the view of an ended run
    if (RunNumbers.BUTTON in numbers or has_ended) and data.keys() <= {Shown.WIDGET}:
        _replace_output(cell, output)
        return True
    if live is None or not {Shown.WIDGET, "text/html"} <= data.keys():
        return False
    # a static form with its live view: the view gets an output of its own, or goes
    view = {**output, "data": {Shown.WIDGET: data.pop(Shown.WIDGET)}}
    _replace_output(cell, output, output, *([] if has_ended else [view]))
    return True


def _replace_output(cell: Cell, output: Any, *others: Any) -> None:
    """Replace one output of a cell by any number of others."""
    index = next(i for i, other in enumerate(cell["outputs"]) if other is output)
    cell["outputs"] = [*cell["outputs"][:index], *others, *cell["outputs"][index + 1 :]]
