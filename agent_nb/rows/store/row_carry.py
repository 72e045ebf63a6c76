"""Copies the rows of a store's former file into the file that replaced it.

Why: `git checkout` or a sync may replace the file under a running map. The rows that were paid for
are then readable only through the handle that is still open.

Rules
- A row that the new file lacks is copied as it is; its signature is checked when it is read.
- If both files have a row, the new file's stays. Only if the former file's is a finished answer
  (`StoredRow.over`) and the new file's is not, the former file's replaces it.
- A row or payload of more than `LARGEST_VALUE` bytes is not copied: readers leave it out anyway.
- Claims on rows, with their attempts, and titles of maps are copied where the new file has none.
  The claims of open stores on the former file itself are not copied.
- All of it is part of the caller's transaction: after a kill the next store copies again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import row_records
from .row_claims import STORE
from .row_database import LARGEST_VALUE, fill_statement

if TYPE_CHECKING:
    from sqlite3 import Connection

PAGE = 100  # rows that are copied at once


def copy_former_rows(former: Connection, connection: Connection, secret: bytes) -> None:
    """Copy what the file lacks from `former`: rows, claims, titles. `secret` is the user's key."""
    last_id = 0
    while page := former.execute(
        "SELECT rowid, key, record FROM rows WHERE rowid > ? AND length(record) <= ? "
        "ORDER BY rowid LIMIT ?",
        (last_id, LARGEST_VALUE, PAGE),
    ).fetchall():
        last_id = page[-1][0]
        records = {key: record for _, key, record in page}
        _copy_rows(former, connection, _choose_keys(former, connection, records, secret))
    claims = former.execute("SELECT * FROM claims WHERE key NOT GLOB ?", (f"{STORE}*",))
    connection.executemany("INSERT OR IGNORE INTO claims VALUES(?, ?, ?, ?, ?)", claims)
    titles = former.execute("SELECT map, said FROM maps")  # `said`: the title of the map
    connection.executemany("INSERT OR IGNORE INTO maps VALUES(?, ?)", titles)


def _choose_keys(
    former: Connection, connection: Connection, records: Mapping[str, Any], secret: bytes
) -> list[str]:
    """Return the keys of those `records` of `former`, by key, that the file should have."""
    select = "SELECT key, record FROM rows WHERE key IN (*) AND length(record) <= ?"
    present = dict(connection.execute(fill_statement(records, select), (*records, LARGEST_VALUE)))
    changed = [key for key in present if present[key] != records[key]]
    over = _find_over_only_in_former(former, connection, changed, secret) if changed else ()
    return [key for key in records if key not in present or key in over]


def _find_over_only_in_former(
    former: Connection, connection: Connection, keys: Sequence[str], secret: bytes
) -> set[str]:
    """Return the keys of the rows that are over (`StoredRow.over`) in the former file only."""
    before, now = (row_records.find_rows(file, keys, secret) for file in (former, connection))
    return {key for key, row in before.items() if row.over and not (key in now and now[key].over)}


def _copy_rows(former: Connection, connection: Connection, keys: Sequence[str]) -> None:
    """Copy rows of the former file, with their payloads; they replace rows of the same keys."""
    # the rows that are replaced may use other payloads
    connection.executemany("DELETE FROM uses WHERE key = ?", [(key,) for key in keys])
    # in their order in the file, in which readers list them
    select = "SELECT key, map, run, record FROM rows WHERE key IN (*) ORDER BY rowid"
    rows = former.execute(fill_statement(keys, select), keys)
    connection.executemany("INSERT OR REPLACE INTO rows VALUES(?, ?, ?, ?)", rows)
    select = fill_statement(keys, "SELECT key, payload FROM uses WHERE key IN (*)")
    uses = former.execute(select, keys).fetchall()
    connection.executemany("INSERT OR IGNORE INTO uses VALUES(?, ?)", uses)
    for name in dict.fromkeys(name for _, name in uses):
        select = "SELECT name, value FROM payloads WHERE name = ? AND length(value) <= ?"
        payload = former.execute(select, (name, LARGEST_VALUE))
        connection.executemany("INSERT OR IGNORE INTO payloads VALUES(?, ?)", payload)
