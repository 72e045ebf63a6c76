"""The stored rows of maps, for `%agent status` and `%agent forget`.

A map asks one prompt for each row of a table; its store is a file with the answers, which outlives
the kernel and which the user has paid for.

Rule: callers give `forget_maps` only records that this kernel or this user made; it does not check
that. A stranger's record could name the store of another map.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from ...agent import Run
from ...errors import UsageError
from ...events import Event
from ...host import shorten_path
from ...record import Record, events_of
from ...rows import list_stores, locate_map
from ...view import clip_text, count_noun
from ..notices import format_date

MOST_STORES = 10  # in the table: the ones used last; `describe_stores` counts all
LONGEST_PROMPTS = 60  # characters of the prompts of a map in the table
KILO = 1000  # bytes in 1 kB


def make_stores_table(records: Iterable[Record], runs: Iterable[Run]) -> Sequence[Sequence[str]]:
    """Return a table, a header first, of the stores that maps among these have; [] without one."""
    locations = filter(None, map(locate_map, _list_logs(records, runs)))
    ids = {location.id for location in locations}
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


def describe_stores() -> str:
    """Return where the stores are and how to remove them, "" if there are none."""
    stores = list_stores()
    if not stores:
        return ""
    total = _format_size(sum(store.size for store in stores))
    count = count_noun(len(stores), "store")
    return f"{count} of maps ({total}) in {shorten_path(stores[0].file.parent)}: %agent forget CELL removes the rows of its map, %agent forget maps all of them"


def make_forget_question() -> str:
    """Return the question to ask before `forget_all`, "" if no rows are stored."""
    stores = list_stores()
    rows = sum(store.rows or 0 for store in stores)
    if not rows:
        return ""
    return f"Remove {count_noun(rows, 'row')} of {count_noun(len(stores), 'map')}, those of other notebooks too? They are asked, and paid for, again when their maps run."


def forget_maps(records: Iterable[Record], runs: Iterable[Run]) -> tuple[int, list[str]]:
    """Remove the stored rows of the maps among records and runs.

    Return the number of removed rows, and a sentence for each store that cannot be used. It raises
    nothing, since the runs themselves are already forgotten.
    """
    locations = filter(None, map(locate_map, _list_logs(records, runs)))
    count, faults = _forget(location.forget for location in dict.fromkeys(locations))
    return count, list(map(str, faults))


def forget_all() -> str:
    """Remove every row in the state folder; return a message for the user.

    At the end it raises UsageError for the first store that could not be used, if any.
    """
    count, faults = _forget(store.forget for store in list_stores())
    if faults:
        raise faults[0]
    return f"{count_noun(count, 'row')} of maps forgotten. Stores that you placed (store=) are files of yours: delete them."


def _list_logs(records: Iterable[Record], runs: Iterable[Run]) -> Iterator[Iterable[Event]]:
    yield from (events_of(record) for record in records)
    yield from (run.log for run in runs)


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
