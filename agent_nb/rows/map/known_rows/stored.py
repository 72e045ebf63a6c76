"""Finds the stored rows of a map: which file is its store, and which rows in it count.

Rules
- A stored row is an answer without a request, so it counts only if this user signed it or trusts
  it. Where nothing may run live, a stranger's intact row counts too, like a stranger's record in a
  notebook.
- Where nothing may run live, only a store that the user named is read, and none is written: the
  outcome must not depend on the machine.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from ....errors import UsageError
from ....record import Record, UserKey, covers_record, digest_value
from ...store.row_database import split_batches
from ...store.row_records import StoredRow
from ...store.row_store import RowStore
from ..row import Row, RowResult
from ..row_result import recorded_result

Store = str | os.PathLike[str] | bool | None
ENDING = ".sqlite"
BATCH = 100  # the most rows that are looked up at once
_ID_LENGTH = 24  # hexadecimal digits of a map's id


class FoundRow(msgspec.Struct, frozen=True):
    """A row of the store: its result, and the record of its run.

    `usable`: the row need not be asked again; a failed or untrusted row must be asked again.
    """

    row: Row
    result: RowResult
    record: Record
    usable: bool


def stores_folder() -> Path:
    """Return the folder of stores without a path of the user's; it may not exist yet."""
    from platformdirs import user_state_dir

    return Path(user_state_dir("agent_nb", appauthor=False)) / "maps"


def map_id(inputs: Mapping[str, str], template: str) -> str:
    """Return the id of a map, a digest of its `template` and the inputs that all its rows share.

    `inputs`: the digests of any run of its agent (`record.fingerprint`), without the prompt's.
    """
    shared = {name: value for name, value in inputs.items() if name != "prompt"}
    return digest_value([template, shared], _ID_LENGTH)


def open_store(
    store: Store,
    id_: str,
    *,
    owner: str,
    title: str = "",
    live: bool = True,
    warn: Callable[[str], None] = lambda _: None,
) -> RowStore | None:
    """Return the store of the map `id_`; None if there is none.

    `store`: where the user wants the file; None and True: in the state folder, False: nowhere.
    `owner`: a name that no other execution has. `title`: the redacted template, which names the map
    in a list. `live`: whether rows may be asked.

    If the state folder is not writable, `warn` receives the reason and the map has no store. Raises
    UsageError if a file that the user named cannot be used.
    """
    if store is False or (not live and not is_named(store)):
        return None
    key = UserKey.read()
    if live and not key:
        warn(f"Rows of this map are asked again when it runs again: {UserKey.find_problem()}.")
    if is_named(store):
        path = Path(os.path.expanduser(str(store)))
        if not live and not os.path.exists(path):
            return None
        return RowStore(path, id_, key, owner=owner, title=title, read_only=not live)
    try:
        return RowStore(stores_folder() / f"{id_}{ENDING}", id_, key, owner=owner, title=title)
    except UsageError as fault:
        warn(f"Rows of this map are not stored: if the kernel dies, they are asked again. {fault}")
        return None


def read_store(store: Store) -> Store:
    """Return a store with its path as text. Raises UsageError for what can be no path of a file."""
    path: Store = os.fspath(store) if isinstance(store, os.PathLike) else store
    if is_named(store) and not (isinstance(path, str) and path.strip() and "\0" not in path):
        raise UsageError(f"store={store!r}: give the path of a file, True or False.")
    return path


def is_named(store: Store) -> bool:
    """Return whether the user chose the file of a store."""
    return store is not None and not isinstance(store, bool)


def missing_store_name(store: Store) -> str:
    """Return the path of the file that the user chose if the file does not exist, else ""."""
    missing = is_named(store) and not os.path.exists(os.path.expanduser(str(store)))
    return str(store) if missing else ""


def find_stored_rows(
    store: RowStore,
    rows: Sequence[Row],
    *,
    trust: bool | Collection[str] = False,
    live: bool | None = None,
) -> Iterator[FoundRow]:
    """Yield what the store has of `rows`, in their order, looked up `BATCH` at a time.

    `trust`: the records of others that the user trusts (True: all, False: none, else those with
    these hashes). `live`: whether rows may be asked (None: if the store may be written).
    """
    if live is None:
        live = not store.read_only
    for batch in split_batches(rows, BATCH):
        stored = store.find([row.key for row in batch])
        for row in batch:
            if row.key in stored:
                yield _judge_row(row, stored[row.key], trust, live)


def _judge_row(row: Row, stored: StoredRow, trust: bool | Collection[str], live: bool) -> FoundRow:
    """Return a row of the store, and whether it counts."""
    record = stored.record
    result = recorded_result(record, row, attempts=stored.attempts, origin="store")
    # a stranger's row counts if the user trusts it, or if nothing may run live (see the rules)
    counts = stored.mine or (stored.intact and (not live or covers_record(trust, record)))
    return FoundRow(row, result, record, counts and stored.final and result.status == "ok")
