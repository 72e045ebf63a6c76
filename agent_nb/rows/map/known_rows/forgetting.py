"""Lists the stores of maps in the state folder, and removes the rows of a map from its store.

Finished rows hold the user's data and stay on disk until the user removes them.

Rule: a record may name any file as the store of its map. Callers check that they trust a run before
they remove the rows of that store.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path

import msgspec

from ....errors import UsageError
from ....events import Event, RunStart, new_run_id
from ....record import UserKey
from ...store.row_store import RowStore
from .stored import ENDING, Store, is_named, stores_folder

MAP_SETTING = "map"  # the setting of `run_start` that names the store, with other facts of the map
# an id becomes a file name: no dots, no slashes
_match_id = re.compile(r"[0-9a-f]{8,64}").fullmatch


class MapLocation(msgspec.Struct, frozen=True):
    """Where the rows of one map are stored: its id, and the user's file ("": the state folder)."""

    id: str
    store: str = ""

    def forget(self) -> int:
        """Remove the rows of the map from the store; return how many there were.

        A file in the state folder is deleted once it has neither rows nor claims; a file that the
        user placed elsewhere stays. Raises UsageError if the file cannot be used.
        """
        in_folder = stores_folder() / f"{self.id}{ENDING}"
        file = Path(os.path.expanduser(self.store)) if self.store else in_folder
        if not file.exists():
            return 0
        with closing(RowStore(file, self.id, UserKey(), owner=new_run_id())) as store:
            count = store.forget_map()
            idle = store.idle
        if idle and file.parent == in_folder.parent:
            file.unlink(missing_ok=True)
        return count


class StoreSummary(msgspec.Struct, frozen=True):
    """A store of the state folder: its file, the prompts of its maps, the number of its rows.

    `rows`: None if the file cannot be read. `size`: bytes. `used`: the last change, epoch seconds.
    """

    file: Path
    prompts: Sequence[str]
    rows: int | None
    size: int
    used: float

    def forget(self) -> int:
        """Remove the rows of the map that the file is named after; return how many there were.

        Raises UsageError for an unusable file.
        """
        return MapLocation(self.file.stem).forget()


def describe_store(id_: str, store: Store) -> dict[str, str]:
    """Return the settings of `run_start` that name the store of a map, for `locate_map`."""
    return {"id": id_, **({"store": str(store)} if is_named(store) else {})}


def locate_map(log: Iterable[Event]) -> MapLocation | None:
    """Return where the rows of a recorded map are stored; None if the log is not of a map."""
    map_setting = RunStart.first_in(log).settings.get(MAP_SETTING)
    fields = map_setting if isinstance(map_setting, Mapping) else {}
    id_ = str(fields.get("id", ""))
    return MapLocation(id_, str(fields.get("store", ""))) if _match_id(id_) else None


def list_stores() -> list[StoreSummary]:
    """Return the stores in the state folder, the newest first."""
    stores = []
    for file in stores_folder().glob(f"*{ENDING}"):
        with suppress(FileNotFoundError):  # another process has just removed it
            stores.append(_summarize_store(file))
    return sorted(stores, key=lambda store: -store.used)


def _summarize_store(file: Path) -> StoreSummary:
    """Return the summary of a store; an unreadable file has no prompts, and None as its `rows`."""
    status = file.lstat()
    prompts: list[str] = []
    row_count = None
    with suppress(UsageError):  # an unreadable file is listed without rows
        with closing(RowStore(file, "", UserKey(), owner=new_run_id(), read_only=True)) as store:
            maps = store.maps()
        prompts = [title for title, _ in maps.values()]
        row_count = sum(count for _, count in maps.values())
    return StoreSummary(file, prompts, row_count, status.st_size, status.st_mtime)
