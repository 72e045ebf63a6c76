"""`nb.metadata["agent_nb"]`: how runs, payloads and signatures are stored, read and written.

    {"version": 1, "runs": {cell id: [record, …]}, "payloads": {key: value}, "signatures": {…},
     "gone": {cell id: saves}, "forgotten": [mark, …], "tape": {cell id: [[record id, …], …]}}

Payloads stand apart because records of one notebook share large values, such as pictures: a record
is stored bare, and whole with the payloads that it needs. Reading raises nothing; `ours`, the
metadata, may be any JSON value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeGuard

from ..wire import as_dict, as_list
from .countersign import Signatures
from .packing import Payloads
from .record import METADATA_VERSION, Record

FORGOTTEN = "forgotten"  # the key of the marks of forgotten runs (`forgotten`)
TAPE = "tape"  # the key of the lists of taped calls (`used_calls`)
Runs = dict[str, list[Record]]  # whole records by cell id


def read_whole_records(ours: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (cell id, whole record) of every JSON object under `runs`, readable or not."""
    payloads = Payloads.of(as_dict(ours).get("payloads"))
    for cell, record in read_bare_records(ours):
        yield cell, Payloads.attach(record, payloads)


def read_stored_runs(ours: Any, *, whole: bool = True) -> Runs:
    """Return the readable records of our metadata by cell id, with their payloads if `whole`."""
    return group_by_cell(read_whole_records(ours) if whole else read_bare_records(ours))


def group_by_cell(records: Iterable[tuple[str, Any]]) -> Runs:
    """Return the readable records of (cell id, record) pairs, by cell id."""
    runs: Runs = {}
    for cell, record in records:
        if is_readable_record(record):
            runs.setdefault(cell, []).append(record)
    return runs


def read_bare_records(ours: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (cell id, bare record) of every JSON object under `runs`, readable or not."""
    for cell, listed in as_dict(as_dict(ours).get("runs")).items():
        for record in as_list(listed):
            if isinstance(record, dict):
                yield str(cell), record


def is_readable_record(value: Any) -> TypeGuard[dict[str, Any]]:
    """Return whether a value has what all readers of records need: an id and a list of events."""
    return (
        isinstance(value, dict)
        and isinstance(value.get("id"), str)
        and bool(value["id"])
        and isinstance(value.get("events"), list)
    )


def read_texts(value: Any) -> list[str]:
    """Return the texts of a list; [] for another value."""
    return [text for text in as_list(value) if isinstance(text, str)]


def has_newer_format(ours: Any) -> bool:
    """Return whether our metadata have a newer version of the format than this code."""
    version = as_dict(ours).get("version")
    return isinstance(version, int) and version > METADATA_VERSION


def build_metadata(
    runs: Runs,
    gone: dict[str, int],
    forgotten: list[str],
    tape: dict[str, list[list[str]]],
    *,
    mine: Any,
    previous: Any,
) -> dict[str, Any]:
    """Return our metadata with these runs, each payload once.

    `gone`: for how many saves each missing cell has been missing. `forgotten`: the marks of
    forgotten runs. `tape`: the lists of taped calls. `mine`: our metadata in the notebook so far;
    `previous`: in its file on disk. The signatures of both stay, and the fields of `mine` that this
    version does not know. The keys are sorted, as Jupyter writes them.
    """
    payloads: dict[str, Any] = {}
    bare: Runs = {}
    for cell, listed in sorted(runs.items()):
        bare[cell] = []
        for record in listed:
            bare_record, own = Payloads.detach(record)
            bare[cell].append(bare_record)
            # a damaged payload must not replace a sound one under the same key
            payloads |= {k: v for k, v in own.items() if k not in payloads or own.is_sound(k)}
    hashes = {str(r.get("hash", "")) for listed in bare.values() for r in listed}
    optional = {
        "payloads": dict(sorted(payloads.items())),
        Signatures.KEY: Signatures.merge(previous, mine, hashes=hashes),
        "gone": gone,
        FORGOTTEN: forgotten,
        TAPE: tape,
    }
    unknown_fields = {k: v for k, v in as_dict(mine).items() if k not in optional}
    fields = {**unknown_fields, "version": METADATA_VERSION, "runs": bare}
    return dict(sorted((fields | {k: v for k, v in optional.items() if v}).items()))
