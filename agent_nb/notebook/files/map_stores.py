"""`%agent status` and `%agent forget` for the stored rows of maps.

Rules
- Only a run that this kernel or this user made says which rows are forgotten: a stranger's record
  must not name the store of another map.
- A store that cannot be used is reported; the others are forgotten.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from ...agent import Run
from ...errors import UsageError
from ...host import shorten_path
from ...record import Record, events_of
from ...rows import list_stores, locate_map
from ...view import clip_text, count_noun
from .recovery import format_date

MOST = 10  # stores that are listed
LONGEST = 60  # characters of a template
KILO = 1000


def ids_of(records: Iterable[Record], runs: Iterable[Run]) -> set[str]:
    """Return the ids of the maps among the records and runs of a notebook."""
    logs = (*(events_of(record) for record in records), *(run.log for run in runs))
    return {found.id for log in logs if (found := locate_map(log))}


def stores_table(ids: Collection[str]) -> Sequence[Sequence[str]]:
    """Return the stores of the maps with these `ids` as rows of a table; nothing without one."""
    stores = [kept for kept in list_stores() if kept.file.stem in ids]
    rows = [
        (
            clip_text(" · ".join(kept.prompts), LONGEST) or "?",
            "cannot be read" if kept.rows is None else f"{kept.rows:,}",
            _size(kept.size),
            format_date(kept.used),
        )
        for kept in stores[:MOST]
    ]
    return [("map", "stored rows", "size", "last used"), *rows] if rows else []


def stores_remark() -> str:
    """Return where the stores are and how to remove them, "" if there are none."""
    stores = list_stores()
    if not stores:
        return ""
    total = _size(sum(kept.size for kept in stores))
    count = count_noun(len(stores), "store")
    return f"{count} of maps ({total}) in {shorten_path(stores[0].file.parent)}: %agent forget CELL removes the rows of its map, %agent forget maps all of them"


def forget_question() -> str:
    """Return what is asked before every stored row is removed, "" if there are none."""
    stores = list_stores()
    rows = sum(kept.rows or 0 for kept in stores)
    if not rows:
        return ""
    return f"Remove {count_noun(rows, 'row')} of {count_noun(len(stores), 'map')}, those of other notebooks too? They are asked, and paid for, again when their maps run."


def forget_maps(records: Iterable[Record], runs: Iterable[Run]) -> tuple[int, list[str]]:
    """Remove the rows of the maps among runs; return how many there were, and what went wrong.

    records: those that this kernel or this user made. runs: those of this kernel.
    """
    logs = [*(events_of(record) for record in records), *(run.log for run in runs)]
    maps = dict.fromkeys(found for log in logs if (found := locate_map(log)))
    count, faults = 0, []
    for location in maps:
        try:
            count += location.forget()
        except UsageError as fault:
            faults.append(str(fault))
    return count, faults


def forget_all() -> str:
    """Remove every row in the state folder; return what was done, in words.

    Raises UsageError for the first store that cannot be used, after the others.
    """
    count, faults = 0, []
    for store in list_stores():
        try:
            count += store.forget()
        except UsageError as fault:
            faults.append(fault)
    if faults:
        raise faults[0]
    return f"{count_noun(count, 'row')} of maps forgotten. Stores that you placed (store=) are files of yours: delete them."


def _size(size: int) -> str:
    return f"{size / KILO**2:.1f} MB" if size >= KILO**2 else f"{size / KILO:.0f} kB"
