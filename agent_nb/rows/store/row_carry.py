"""Copies the rows of a store's former file into the file that replaced it.

Why: `git checkout` or a sync may replace the file under a running map. The rows that were paid for
are then readable only through the handle that is still open.

Rules
- A row that the new file lacks is copied as it is; its signature is checked when it is read. If
  both files have a row, that of the new file stays, unless only the other is over (`StoredRow`).
- A row of more than `LARGEST_VALUE` bytes is not copied: readers leave it out in any case.
- Attempts and claims on rows are copied where the new file has none. The claims of open stores on
  the former file itself are not copied.
- All of it is part of the caller's transaction, so that a kill leaves the former file complete.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from . import row_records
from .row_claims import STORE
from .row_file import LARGEST_VALUE, fill_statement

if TYPE_CHECKING:
    from sqlite3 import Connection

PAGE = 100  # rows that are copied at once


def carry_rows(former: Connection, connection: Connection, secret: bytes) -> None:
    """Copy the rows that only `former` has to `connection`; `secret` is the user's key."""
    last_id = 0
    while rows := former.execute(
        "SELECT rowid, key, map, run, record FROM rows WHERE rowid > ? AND length(record) <= ? "
        "ORDER BY rowid LIMIT ?",
        (last_id, LARGEST_VALUE, PAGE),
    ).fetchall():
        last_id = rows[-1][0]
        stored_bytes = _read_stored_bytes(connection, [row[1] for row in rows])
        # the rows that both files have, with different content
        changed = [row[1] for row in rows if stored_bytes.get(row[1], row[4]) != row[4]]
        better = _find_final_only_in_former(former, connection, changed, secret)
        wanted = [r[1:] for r in rows if r[1] not in stored_bytes or r[1] in better]
        _copy_rows(former, connection, wanted)
    for claim in former.execute("SELECT * FROM claims WHERE key NOT GLOB ?", (f"{STORE}*",)):
        connection.execute("INSERT OR IGNORE INTO claims VALUES(?, ?, ?, ?, ?)", claim)
    for each in former.execute("SELECT map, said FROM maps"):  # `said`: the title of the map
        connection.execute("INSERT OR IGNORE INTO maps VALUES(?, ?)", each)


def _read_stored_bytes(connection: Connection, keys: Sequence[str]) -> dict[str, Any]:
    """Return the stored bytes of the rows that a file has."""
    select = "SELECT key, record FROM rows WHERE key IN (*) AND length(record) <= ?"
    return dict(connection.execute(fill_statement(keys, select), (*keys, LARGEST_VALUE)))


def _find_final_only_in_former(
    former: Connection, connection: Connection, keys: Sequence[str], secret: bytes
) -> set[str]:
    """Return the keys of the rows that are over (`StoredRow.over`) in the former file only."""
    if not keys:
        return set()
    before, now = (row_records.find_rows(each, keys, secret) for each in (former, connection))
    return {key for key in before if before[key].over and not (key in now and now[key].over)}


def _copy_rows(former: Connection, connection: Connection, rows: Sequence[tuple[Any, ...]]) -> None:
    """Write rows of the former file, with their payloads; they replace rows of the same keys."""
    connection.executemany("DELETE FROM uses WHERE key = ?", [(row[0],) for row in rows])
    connection.executemany("INSERT OR REPLACE INTO rows VALUES(?, ?, ?, ?)", rows)
    keys = [row[0] for row in rows]
    select = fill_statement(keys, "SELECT key, payload FROM uses WHERE key IN (*)")
    uses = former.execute(select, keys).fetchall()
    connection.executemany("INSERT OR IGNORE INTO uses VALUES(?, ?)", uses)
    for name in dict.fromkeys(name for _, name in uses):
        for each in former.execute("SELECT name, value FROM payloads WHERE name = ?", (name,)):
            connection.execute("INSERT OR IGNORE INTO payloads VALUES(?, ?)", each)
