"""The records in outputs of cells, references to records, and the numbers beside both.

Why: a front end saves what its outputs hold, so a new record reaches the file in an output. Saving
moves it into the metadata (`notebook_file`), and leaves a reference: `{"version": 1, "ref": id}`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..wire import as_dict
from .agent_cells import source_hash
from .ipynb import Cell, Notebook, all_outputs, cell_id, list_cells, metadata_of, source_of
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

        A run may end after its cell has, and is then shown in the output of a later cell. The field
        `cell_id` names its own cell, whose id is returned if the notebook still has it.
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
