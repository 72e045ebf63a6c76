"""Copies the rows of a store's former file into the file that replaced it.

`git checkout` or a sync may replace the file under a running map. The rows that were paid for are
then readable only through the handle that is still open. If both files have a row, the new file's
stays, unless only the former file's is a finished answer (`find_answered`).

Rule: all of it is part of the caller's transaction: after a kill the next store copies again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...record import UserKey
from . import row_records
from .row_claims import STORE
from .row_database import LARGEST_VALUE, fill_statement

if TYPE_CHECKING:
    from sqlite3 import Connection

PAGE = 100  # rows that are copied at once


def copy_former_rows(former: Connection, connection: Connection, user: UserKey) -> None:
    """Copy what the file lacks from `former`: rows, claims, titles. `user`: the user's key."""
    last_id = 0
    while page := former.execute(
        "SELECT rowid, key, record FROM rows WHERE rowid > ? AND length(record) <= ? "
        "ORDER BY rowid LIMIT ?",
        (last_id, LARGEST_VALUE, PAGE),
    ).fetchall():
        last_id = page[-1][0]
        records = {key: record for _, key, record in page}
        _copy_rows(former, connection, _choose_keys(former, connection, records, user))
    claims = former.execute("SELECT * FROM claims WHERE key NOT GLOB ?", (f"{STORE}*",))
    connection.executemany("INSERT OR IGNORE INTO claims VALUES(?, ?, ?, ?, ?)", claims)
    titles = former.execute("SELECT map, said FROM maps")  # `said`: the title of the map
    connection.executemany("INSERT OR IGNORE INTO maps VALUES(?, ?)", titles)


def _choose_keys(
    former: Connection, connection: Connection, records: Mapping[str, Any], user: UserKey
) -> list[str]:
    """Return the keys of those `records` of `former`, by key, that the file should have."""
    select = "SELECT key, record FROM rows WHERE key IN (*) AND length(record) <= ?"
    present = dict(connection.execute(fill_statement(records, select), (*records, LARGEST_VALUE)))
    select = fill_statement(records, "SELECT key FROM uses WHERE key IN (*)")
    # of two equal records, one may lack its payloads
    with_payloads = {key for (key,) in former.execute(select, (*records,))}
    unsure = [key for key in present if key in with_payloads or present[key] != records[key]]
    answered = row_records.find_answered(former, unsure, user)
    answered -= row_records.find_answered(connection, unsure, user)
    return [key for key in records if key not in present or key in answered]


def _copy_rows(former: Connection, connection: Connection, keys: Sequence[str]) -> None:
    """Copy rows of the former file, with their payloads; they replace rows of the same keys."""
    # the rows that are replaced may use other payloads
    connection.executemany("DELETE FROM uses WHERE key = ?", [(key,) for key in keys])
    select = "SELECT key, map, run, record FROM rows WHERE key IN (*)"
    rows = former.execute(fill_statement(keys, select), keys)
    connection.executemany("INSERT OR REPLACE INTO rows VALUES(?, ?, ?, ?)", rows)
    select = fill_statement(keys, "SELECT key, payload FROM uses WHERE key IN (*)")
    uses = former.execute(select, keys)
    connection.executemany("INSERT OR IGNORE INTO uses VALUES(?, ?)", uses)
    select = "SELECT name, value FROM payloads WHERE length(value) <= ? AND name IN (SELECT payload FROM uses WHERE key IN (*))"
    for name, value in former.execute(fill_statement(keys, select), (LARGEST_VALUE, *keys)):
        row_records.add_payload(connection, name, value)
