"""Reads and writes the records of rows in the file of a store, with limits on their size.

These functions run statements; `row_store` opens the transactions.

Rule: a record that is too large, is not JSON or names another row counts as missing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from ...record import Payloads, Record, UserKey, is_intact
from ...wire import as_dict, dumps, lenient_loads
from .row_database import LARGEST_VALUE, fill_statement, split_batches

if TYPE_CHECKING:
    from sqlite3 import Connection

MOST_ATTEMPTS = 1 << 30  # to report; a hostile file may hold any number
_ADD = "INSERT OR IGNORE INTO payloads VALUES(?, ?)"
_REPLACE = "INSERT OR REPLACE INTO payloads VALUES(?, ?)"
# in this order: the first two look up the rows, the last removes them
_FORGET = (
    "DELETE FROM uses WHERE key IN (SELECT key FROM rows WHERE {})",
    "DELETE FROM claims WHERE key IN (SELECT key FROM rows WHERE {})",
    "DELETE FROM rows WHERE {}",
)


class StoredRow(msgspec.Struct, frozen=True):
    """A row: the whole record of its run, and how often it was asked.

    `intact`: the record has the hash of its content. `mine`: it is intact, and this user signed it.
    """

    record: Record
    attempts: int
    intact: bool
    mine: bool

    @property
    def final(self) -> bool:
        """Whether the run ended `ok`: if the record is trusted, the row need not be asked again."""
        return self.record.get("status") == "ok"


def find_rows(connection: Connection, keys: Sequence[str], user: UserKey) -> dict[str, StoredRow]:
    """Return the rows of these keys; `user` decides which of them are the user's own."""
    select = (
        "SELECT rows.key, record, attempts FROM rows LEFT JOIN claims USING(key) "
        "WHERE rows.key IN (*) AND length(record) <= ?"
    )
    rows = connection.execute(fill_statement(keys, select), (*keys, LARGEST_VALUE)).fetchall()
    stored = {}
    payload_reader = _PayloadReader(connection)
    for key, content, attempts in rows:
        bare = as_dict(_parse_json(content))
        if bare.get("row") == key:
            record = Payloads.attach(bare, payload_reader.payloads(bare))
            intact = is_intact(record)
            signed_by_user = intact and user.signed_hash(record)
            stored[key] = StoredRow(record, bound_attempts(attempts), intact, signed_by_user)
    return stored


def find_answered(connection: Connection, keys: Sequence[str], user: UserKey) -> set[str]:
    """Return the keys of rows that are never asked again: final, and this user's own."""
    rows = find_rows(connection, keys, user)
    return {key for key, row in rows.items() if row.mine and row.final}


def name_map(connection: Connection, map_id: str, title: str) -> None:
    """Store the title under which lists show a map, unless the map has one."""
    connection.execute("INSERT OR IGNORE INTO maps VALUES(?, ?)", (map_id, title))


def write_rows(
    connection: Connection, map_id: str, rows: Sequence[tuple[str, Record]], known: Collection[str]
) -> set[str]:
    """Write signed records by key; return the names of their payloads.

    `known`: payloads that this store wrote before. Any other payload in the file may be a
    stranger's, with wrong content under its name, so it is replaced.
    """
    written: set[str] = set()
    for key, record in rows:
        bare, payloads = Payloads.detach(record)
        connection.execute("DELETE FROM uses WHERE key = ?", (key,))
        connection.execute(
            "INSERT OR REPLACE INTO rows VALUES(?, ?, ?, ?)",
            (key, map_id, str(record.get("id", "")), dumps(bare).encode()),
        )
        for name, value in payloads.items():
            adding = _ADD if name in known or name in written else _REPLACE
            connection.execute(adding, (name, dumps(value).encode()))
            connection.execute("INSERT OR IGNORE INTO uses VALUES(?, ?)", (key, name))
            written.add(name)
    return written


def add_payload(connection: Connection, name: str, content: Any) -> None:
    """Add the stored bytes of a payload; they replace others if they have the hash in its name."""
    is_sound = Payloads({str(name): _parse_json(content)}).is_sound(str(name))
    connection.execute(_REPLACE if is_sound else _ADD, (name, content))


def forget_rows(connection: Connection, where: str, values: Sequence[str]) -> int:
    """Remove the rows that the SQL condition `where` selects; return how many there were.

    `values`: the parameters of the condition.
    """
    return [connection.execute(each.format(where), values).rowcount for each in _FORGET][-1]


def forget_unused(connection: Connection) -> None:
    """Remove the payloads and maps that no row uses."""
    connection.execute("DELETE FROM payloads WHERE name NOT IN (SELECT payload FROM uses)")
    connection.execute("DELETE FROM maps WHERE map NOT IN (SELECT map FROM rows)")


def bound_attempts(attempts: Any) -> int:
    """Return a stored number as 1 to `MOST_ATTEMPTS` attempts; 1 for any other value."""
    return min(max(attempts, 1), MOST_ATTEMPTS) if isinstance(attempts, int) else 1


class _PayloadReader:
    """The payloads of some records; each is read, parsed and hashed once, however many share it."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._known = Payloads()
        self._seen: set[str] = set()

    def payloads(self, record: Record) -> Payloads:
        """Return the payloads read so far, which hold those that a record needs."""
        missing = Payloads.find_keys(record.get("events")) - self._seen
        while missing:  # a payload may name further ones
            self._seen |= missing
            read = {n: v for n, v in self._read(sorted(missing)) if v is not None}
            self._known.update(read)
            missing = Payloads.find_keys(list(read.values())) - self._seen
        return self._known

    def _read(self, names: Sequence[str]) -> Iterator[tuple[str, Any]]:
        select = "SELECT name, value FROM payloads WHERE name IN (*) AND length(value) <= ?"
        for batch in split_batches(names):
            statement = fill_statement(batch, select)
            for name, value in self._connection.execute(statement, (*batch, LARGEST_VALUE)):
                yield name, _parse_json(value)


def _parse_json(content: Any) -> Any:
    """Return the JSON value of stored bytes; None if they are not JSON."""
    if not isinstance(content, bytes | str):
        return None
    try:
        return lenient_loads(content)
    except ValueError:
        return None
