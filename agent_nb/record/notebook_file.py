"""The records' place in the file: `nb.metadata["agent_nb"] = {"version": 1, "runs": {cell_id:
[record, …]}, "payloads": {…}}`.

Why: records in outputs vanish with "clear outputs" and fill the screen of a diff; in the metadata
they stay with the cell. `lift` moves them there, called by whoever saves: the Jupyter Server hook,
our runner, `jupyter agent-nb pack`.

Rules
- `lift` is idempotent, and never touches a notebook in which there is nothing of ours.
- What the file on disk has is kept (`previous`): a front end's stale copy must not erase a log. Of
  each cell the newest three runs stay, newest first; no record takes the place of one that this
  user has signed (`ranking`), nor do its payloads.
- Only what our publisher put into an output is lifted (`record.published`), and the records that
  nbdime has kept aside as conflicts.
- Runs of a cell that is gone stay for one more save (an undo may bring it back) and are dropped
  with the second; a front end that loaded them before does not bring them back without their cell.
- A cell pasted elsewhere has a reference to a run; it gets a copy of that run. Cells that were
  split, merged or numbered anew: `heirs`.
- `%agent forget` leaves the ids of runs in its output (`FORGET`): these are taken out, wherever
  they stand. Digests of the ids stay in the metadata (`FORGOTTEN`), because a front end sends what
  it loaded until it is loaded again.
- What people have signed (`countersign`) stays as long as the record it is about.
- A notebook with metadata of a newer version is left as it is. What is no record is left where it
  is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, TypeGuard

from . import countersign
from .agent_cells import agent_cell, content_hash, source_of
from .find import unmerged
from .packing import payload_key, sha256
from .ranking import kept, started
from .record import BUTTON, KEY, LIVE, MIME, NONE, VERSION, attach, detach, payload_keys, published
from .signing import mine as signed
from .signing import user_key
from .split_merge import inherited, leaving, renumbered

FORGET = "forget"
FORGOTTEN = "forgotten"
REMEMBERED = 500  # forgotten runs
WIDGET = "application/vnd.jupyter.widget-view+json"
Runs = dict[str, list[dict[str, Any]]]


def lift(nb: dict[str, Any], previous: Any = None) -> bool:
    """Move the records of all outputs of the notebook `nb` into its metadata; return whether there
    is anything of ours.

    `previous` is `nb.metadata["agent_nb"]` as the file on disk has it (None: there is no file, or
    it has none).
    """
    metadata = nb.setdefault("metadata", {})
    mine = metadata.get(KEY)
    if newer(mine) or newer(previous) or not isinstance(nb.get("cells"), list):
        return False
    present = {c.get("id") for c in _cells(nb)}
    aside = _aside(nb, take=True)
    forgotten = _forgotten(nb, previous, mine)
    loaded = renumbered(_cells(nb), _runs(mine))
    loaded = {
        cell: listed
        for cell, listed in loaded.items()
        if cell in present or not isinstance(previous, dict)
    }
    runs = _without(
        _merged(renumbered(_cells(nb), _runs(previous)), loaded, aside, _unlifted(nb)), forgotten
    )
    runs = _merged(runs, _copies(nb, runs))
    runs = _merged(runs, inherited(_cells(nb), runs))
    runs = _less(runs, leaving(_cells(nb), runs))
    gone = _gone(runs, present, mine, previous)
    runs = {cell: listed for cell, listed in runs.items() if listed and gone.get(cell, 0) < 2}
    if not runs and not forgotten and mine is None:
        return False
    metadata[KEY] = _written(
        runs,
        {cell: saves for cell, saves in gone.items() if cell in runs},
        forgotten,
        mine,
        previous,
    )
    _refer(nb, runs)
    return True


def drop_unbegun(nb: dict[str, Any], cells: Collection[str], since: float) -> None:
    """Take out the records of runs that Python code began, of those of the `cells` whose code began
    none after `since` (epoch seconds).
    """
    mine = nb["metadata"].get(KEY) or {}
    runs = _runs(mine)
    for cell in runs.keys() & cells:
        begun = [r for r in runs[cell] if r.get("execution") and r.get("conversation") == NONE]
        if begun and all(started(r) < since for r in begun):
            runs[cell] = [r for r in runs[cell] if r not in begun]
    if mine:
        left = {cell: listed for cell, listed in runs.items() if listed}
        nb["metadata"][KEY] = _written(
            left, mine.get("gone") or {}, mine.get(FORGOTTEN) or [], mine, None
        )


def settle(nb: dict[str, Any]) -> int:
    """Take our widgets out of what is saved, which a fresh kernel does not know: buttons, and those
    of runs that go on, whose static form stays. Return how many.
    """
    count = 0
    for cell, output in list(_outputs(nb)):
        data, numbers = output.get("data"), (output.get("metadata") or {}).get(KEY)
        if not isinstance(data, dict) or not isinstance(numbers, dict):
            continue
        if BUTTON in numbers and data.keys() <= {WIDGET}:
            cell["outputs"] = [o for o in cell["outputs"] if o is not output]
            count += 1
        elif LIVE in numbers and "text/html" in data:
            count += int(data.pop(WIDGET, None) is not None)
    return count


def records(nb: dict[str, Any]) -> Runs:
    """Return the records of a notebook, payloads attached, by the cell whose they are, newest
    first, lifted or not.

    Records in outputs of cells without an id count under `#index`.
    """
    lifted = renumbered(_cells(nb), _runs((nb.get("metadata") or {}).get(KEY)))
    merged = _merged(lifted, _aside(nb), _unlifted(nb, index=True))
    return {cell: listed for cell, listed in merged.items() if listed}


def strip(nb: dict[str, Any]) -> int:
    """Remove every record and reference from `nb`; return how many places were cleaned."""
    count = len(_aside(nb, take=True)) + int((nb.get("metadata") or {}).pop(KEY, None) is not None)
    for _, output in _outputs(nb):
        count += int((output.get("data") or {}).pop(MIME, None) is not None)
        count += int((output.get("metadata") or {}).pop(KEY, None) is not None)
    return count


def summaries(nb: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return (cell id, the numbers of `summary.summary`) of every run shown in the outputs, in the
    order of the notebook.

    A run that ended after its cell names that cell.
    """
    found, present = [], {str(c.get("id")) for c in _cells(nb)}
    for cell, output in _outputs(nb):
        numbers = (output.get("metadata") or {}).get(KEY)
        if isinstance(numbers, dict) and "run" in numbers:
            made = numbers.get("cell_id")
            found.append(
                (
                    made if isinstance(made, str) and made in present else str(cell.get("id", "")),
                    numbers,
                )
            )
    return found


def newer(value: Any) -> bool:
    """Return whether a value of our metadata is of a newer version than this one."""
    return (
        isinstance(value, dict)
        and isinstance(value.get("version"), int)
        and value["version"] > VERSION
    )


def _sound(value: Any) -> TypeGuard[dict[str, Any]]:
    return (
        isinstance(value, dict)
        and isinstance(value.get("id"), str)
        and bool(value["id"])
        and isinstance(value.get("events"), list)
    )


def _runs(value: Any) -> Runs:
    """Return the records of a metadata value, whatever it is, payloads attached."""
    value = value if isinstance(value, dict) else {}
    listed, payloads = value.get("runs"), value.get("payloads")
    payloads = payloads if isinstance(payloads, dict) else {}
    if not isinstance(listed, dict):
        return {}
    return {
        str(cell): [attach(r, payloads) for r in runs if _sound(r)]
        for cell, runs in listed.items()
        if isinstance(runs, list)
    }


def _merged(*sources: Runs) -> Runs:
    """Return the runs of all sources, each id once (the last source wins), newest first, those that
    are `kept`.
    """
    merged: dict[str, dict[str, dict[str, Any]]] = {}
    for source in sources:
        for cell, listed in source.items():
            found = merged.setdefault(cell, {})
            for record in listed:
                found[record["id"]] = _either(found.get(record["id"]), record)
    return {cell: kept(by_id.values(), user_key()) for cell, by_id in merged.items()}


def _either(one: dict[str, Any] | None, other: dict[str, Any]) -> dict[str, Any]:
    """Return the second of two records of one id, unless only the first is this user's."""
    if one is None or one == other:
        return other
    key = user_key()
    return one if signed(one, key) and not signed(other, key) else other


def _written(
    runs: Runs, gone: dict[str, int], forgotten: list[str], mine: Any, previous: Any
) -> dict[str, Any]:
    """Return our metadata: the runs, their payloads and signatures once, what is gone and
    forgotten, and what else stood there.
    """
    payloads: dict[str, Any] = {}
    stored: Runs = {}
    for cell, listed in sorted(runs.items()):
        stored[cell] = []
        for record in listed:
            needed = payload_keys(record)
            bare, own = detach(record)
            stored[cell].append(bare)
            payloads |= {
                k: v
                for k, v in own.items()
                if k in needed and (k not in payloads or payload_key(v) == k)
            }
    signatures = countersign.merged(
        previous,
        mine,
        hashes={str(r.get("hash", "")) for listed in stored.values() for r in listed},
    )
    optional = {
        "payloads": dict(sorted(payloads.items())),
        countersign.SIGNATURES: signatures,
        "gone": gone,
        FORGOTTEN: forgotten,
    }
    rest = {k: v for k, v in (mine if isinstance(mine, dict) else {}).items() if k not in optional}
    return {**rest, "version": VERSION, "runs": stored, **{k: v for k, v in optional.items() if v}}


def cleared(nb: dict[str, Any]) -> list[str]:
    """Return the ids of cells that have records in the metadata and no output: clearing outputs
    does not remove a record.
    """
    runs = renumbered(_cells(nb), _runs((nb.get("metadata") or {}).get(KEY)))
    return [str(c.get("id")) for c in _cells(nb) if c.get("id") in runs and not c.get("outputs")]


def _cells(nb: dict[str, Any]) -> list[dict[str, Any]]:
    return [c for c in nb.get("cells", []) if isinstance(c, dict)]


def _outputs(nb: dict[str, Any]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    for cell in _cells(nb):
        for output in cell.get("outputs") or []:
            if isinstance(output, dict):
                yield cell, output


def _unlifted(nb: dict[str, Any], *, index: bool = False) -> Runs:
    """Return the records that are still in outputs."""
    found: Runs = {}
    places = {str(c.get("id") or f"#{i}"): c for i, c in enumerate(_cells(nb))}
    numbers = {id(c): key for key, c in places.items()}
    for cell, output in _outputs(nb):
        key = cell.get("id") or (numbers.get(id(cell), "") if index else "")
        value = published(output)
        if key and _sound(value):
            found.setdefault(_maker(cell, value, places) or key, []).append(value)
    return found


def _maker(cell: dict[str, Any], record: dict[str, Any], cells: Mapping[str, Any]) -> str:
    """Return the id of the cell whose code began a run that ended while `cell` ran, "" if that is
    `cell` itself, or gone.
    """
    made = record.get("cell")
    if not record.get("execution") or made == cell.get("id") or made not in cells:
        return ""
    return (
        ""
        if record.get("source")
        == content_hash(*(agent_cell(source_of(cell)) or ("", source_of(cell))))
        else str(made)
    )


def _aside(nb: dict[str, Any], *, take: bool = False) -> Runs:
    """Return the records that nbdime has kept aside, and `take` them from there."""
    found: Runs = {}
    for cell, record in unmerged(nb, take=take):
        if cell and _sound(record):
            found.setdefault(cell, []).append(record)
    return found


def _forgotten(nb: dict[str, Any], *saved: Any) -> list[str]:
    """Return the digests of runs that are to go, those of earlier saves first, and take their
    records out of the outputs.
    """
    marks = [
        mark for value in saved if isinstance(value, dict) for mark in _texts(value.get(FORGOTTEN))
    ]
    for _, output in _outputs(nb):
        numbers = (output.get("metadata") or {}).get(KEY)
        marks += map(_mark, _texts(numbers.get(FORGET))) if isinstance(numbers, dict) else []
    for _, output in _outputs(nb) if marks else ():
        value = (output.get("data") or {}).get(MIME)
        if isinstance(value, dict) and any(
            _mark(i) in marks for i in _texts([value.get("id"), value.get("ref")])
        ):
            del output["data"][MIME]
    return list(dict.fromkeys(marks))[-REMEMBERED:]


def _mark(run: str) -> str:
    return sha256(run, like="")[:16]


def _texts(value: Any) -> list[str]:
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []


def _without(runs: Runs, marks: list[str]) -> Runs:
    return (
        {cell: [r for r in listed if _mark(r["id"]) not in marks] for cell, listed in runs.items()}
        if marks
        else runs
    )


def _less(runs: Runs, leaving: dict[str, set[str]]) -> Runs:
    return {
        cell: [r for r in listed if r["id"] not in leaving.get(cell, ()) or _followed(r)]
        for cell, listed in runs.items()
    }


def _followed(record: dict[str, Any]) -> bool:
    """Return whether a cell only followed this run: it may stand in the cell that made it, too."""
    return record.get("conversation") == ""


def _copies(nb: dict[str, Any], runs: Runs) -> Runs:
    """Return the runs that cells refer to and do not have."""
    known = {r["id"]: r for listed in runs.values() for r in listed}
    found: Runs = {}
    present = {str(c.get("id")): c for c in _cells(nb)}
    for cell, output in _outputs(nb):
        value, own = (output.get("data") or {}).get(MIME), cell.get("id")
        run = (
            known.get(value["ref"])
            if isinstance(value, dict) and isinstance(value.get("ref"), str)
            else None
        )
        if (
            own
            and run is not None
            and not _maker(cell, run, present)
            and all(r["id"] != run["id"] for r in runs.get(own, ()))
        ):
            found.setdefault(own, []).append(run)
    return found


def _gone(runs: Runs, present: set[Any], mine: Any, previous: Any) -> dict[str, int]:
    """Return for how many saves each cell with runs has been gone, this one included. Only saves
    over a file count.
    """
    before = previous if isinstance(previous, dict) else mine if isinstance(mine, dict) else {}
    counts = before.get("gone")
    counts = counts if isinstance(counts, dict) else {}
    step = 1 if isinstance(previous, dict) else 0
    saves = {cell: counts.get(cell, 0) for cell in runs if cell not in present}
    return {cell: (n if isinstance(n, int) else 0) + step for cell, n in saves.items() if step or n}


def _refer(nb: dict[str, Any], runs: Runs) -> None:
    """Replace records in outputs by references, where the record has its place in the metadata."""
    known = {r["id"] for listed in runs.values() for r in listed}
    for cell, output in _outputs(nb):
        value = published(output)
        if _sound(value) and cell.get("id") and value["id"] in known:
            output["data"][MIME] = {"version": VERSION, "ref": value["id"]}
