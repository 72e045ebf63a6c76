"""The stored rows of maps, for `%agent status` and `%agent forget`.

A map asks one prompt for each row of a table; its store is a file with the answers.

Why: stored rows outlive a kernel and hold answers that the user has paid for.

Rules
- `forget_maps` removes only rows of maps that this kernel or this user made: a stranger's record
  could name the store of another map. `forget_all` removes all rows in the state folder.
- A store that cannot be used is reported; the rows of the others are forgotten.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from ...agent import Run
from ...errors import UsageError
from ...host import shorten_path
from ...record import Record, events_of
from ...rows import list_stores, locate_map
from ...view import clip_text, count_noun
from ..notices import format_date

MOST_STORES = 10  # that are listed
LONGEST_PROMPTS = 60  # characters of the prompts of a map in the table
KILO = 1000  # bytes in 1 kB


def list_map_ids(records: Iterable[Record], runs: Iterable[Run]) -> set[str]:
    """Return the ids of the maps among the records and runs of a notebook."""
    logs = (*(events_of(record) for record in records), *(run.log for run in runs))
    return {location.id for location in map(locate_map, logs) if location is not None}


def stores_table(ids: Collection[str]) -> Sequence[Sequence[str]]:
    """Return a table of the stores of these maps, a header first; [] if they have no store."""
    stores = [store for store in list_stores() if store.file.stem in ids]
    rows = [
        (
            clip_text(" · ".join(store.prompts), LONGEST_PROMPTS) or "?",
            "cannot be read" if store.rows is None else f"{store.rows:,}",
            _format_size(store.size),
            format_date(store.used),
        )
        for store in stores[:MOST_STORES]
    ]
    return [("map", "stored rows", "size", "last used"), *rows] if rows else []


def stores_remark() -> str:
    """Return where the stores are and how to remove them, "" if there are none."""
    stores = list_stores()
    if not stores:
        return ""
    total = _format_size(sum(store.size for store in stores))
    count = count_noun(len(stores), "store")
    return f"{count} of maps ({total}) in {shorten_path(stores[0].file.parent)}: %agent forget CELL removes the rows of its map, %agent forget maps all of them"


def forget_question() -> str:
    """Return the question to ask before all stored rows are removed, "" if there are none."""
    stores = list_stores()
    rows = sum(store.rows or 0 for store in stores)
    if not rows:
        return ""
    return f"Remove {count_noun(rows, 'row')} of {count_noun(len(stores), 'map')}, those of other notebooks too? They are asked, and paid for, again when their maps run."


def forget_maps(records: Iterable[Record], runs: Iterable[Run]) -> tuple[int, list[str]]:
    """Remove the stored rows of the maps among records and runs.

    Return the number of removed rows, and a sentence for each store that cannot be used.

    `records` are those that this kernel or this user made, `runs` those of this kernel.
    """
    logs = (*(events_of(record) for record in records), *(run.log for run in runs))
    maps = dict.fromkeys(location for location in map(locate_map, logs) if location is not None)
    count, faults = _forget(location.forget for location in maps)
    return count, list(map(str, faults))


def forget_all() -> str:
    """Remove every row in the state folder; return a message for the user.

    A store that cannot be used does not keep the others: UsageError for the first such store is
    raised after the rows of all others are removed.
    """
    count, faults = _forget(store.forget for store in list_stores())
    if faults:
        raise faults[0]
    return f"{count_noun(count, 'row')} of maps forgotten. Stores that you placed (store=) are files of yours: delete them."


def _forget(removals: Iterable[Callable[[], int]]) -> tuple[int, list[UsageError]]:
    """Call functions that each remove the rows of a store; return the sum, and their faults."""
    count, faults = 0, []
    for remove in removals:
        try:
            count += remove()
        except UsageError as fault:
            faults.append(fault)
    return count, faults


def _format_size(size: int) -> str:
    return f"{size / KILO**2:.1f} MB" if size >= KILO**2 else f"{size / KILO:.0f} kB"
