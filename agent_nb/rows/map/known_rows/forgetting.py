"""The stores of maps in the state folder: which there are, and removing what they hold.

Rules
- A run of a map names its store in the settings of its `run_start`: the map's id, and the path if
  the user chose it. A path counts only if the caller vouches for the run.
- An empty file without claims is removed; otherwise only its rows are.
- A file that cannot be read is listed without rows, and never removed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from ....errors import UsageError
from ....events import Event, RunStart
from ...store.row_store import RowStore
from .stored import ENDING, Store, is_named, stores_folder

MAP = "map"  # the setting
_ID = re.compile(r"[0-9a-f]{8,64}").fullmatch


class StoreSummary(msgspec.Struct, frozen=True):
    """A store: its file, the prompts of its maps, its rows (None: it cannot be read).

    `size` is in bytes, `used` epoch seconds.
    """

    file: Path
    prompts: Sequence[str]
    rows: int | None
    size: int
    used: float


def describe_store(id_: str, store: Store) -> dict[str, str]:
    """Return what the settings of a map say of its store."""
    return {"id": id_, **({"store": str(store)} if is_named(store) else {})}


def locate_map(log: Iterable[Event]) -> tuple[str, str] | None:
    """Return the id of the map in a log and the path that its user chose ("": none).

    None if the log is not that of a map.
    """
    start = next((e for e in log if isinstance(e, RunStart) and not e.span), RunStart())
    setting = start.settings.get(MAP)
    fields = setting if isinstance(setting, Mapping) else {}
    id_ = str(fields.get("id", ""))
    return (id_, str(fields.get("store", ""))) if _ID(id_) else None


def list_stores() -> list[StoreSummary]:
    """Return the stores in the state folder, the newest first."""
    return sorted(
        map(_summarize_store, stores_folder().glob(f"*{ENDING}")), key=lambda store: -store.used
    )


def _summarize_store(file: Path) -> StoreSummary:
    status = file.lstat()
    prompts: list[str] = []
    rows = None
    try:
        store = RowStore.open(file, "", b"", owner="list", read_only=True)
        try:
            maps = store.maps()
        finally:
            store.close()
        prompts, rows = [prompt for prompt, _ in maps.values()], sum(n for _, n in maps.values())
    except UsageError:
        pass
    return StoreSummary(file, prompts, rows, status.st_size, status.st_mtime)


def forget_map_rows(id_: str, store: str = "") -> int:
    """Remove the rows of a map from its store; return how many there were.

    Raises UsageError if the file cannot be used.
    """
    file = Path(os.path.expanduser(store)) if store else stores_folder() / f"{id_}{ENDING}"
    return _forget(file, id_) if file.exists() else 0


def forget_all_rows() -> int:
    """Remove the rows of every store in the state folder; return how many there were.

    Raises UsageError for the first file that cannot be used, after the others.
    """
    count, faults = 0, []
    for file in stores_folder().glob(f"*{ENDING}"):
        try:
            count += _forget(file, file.name.removesuffix(ENDING))
        except UsageError as fault:
            faults.append(fault)
    if faults:
        raise faults[0]
    return count


def _forget(file: Path, id_: str) -> int:
    store = RowStore.open(file, id_, b"", owner="forget")
    try:
        count = store.forget_map()
        idle = store.idle
    finally:
        store.close()
    if idle and file.parent == stores_folder():
        file.unlink(missing_ok=True)
    return count
