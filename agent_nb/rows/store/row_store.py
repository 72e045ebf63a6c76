"""Stores the rows of maps on disk: an answered row is never asked again, however the kernel ends.

Rules
- A row is stored under its key (`rows.map.keys`) as the signed record of its run. The record
  contains the key, so that the signature of one row is not valid for another.
- A row is answered if this user signed it and its run ended `ok` (`find_answered`). Other rows are
  returned and may be claimed again; the caller decides whether to trust a stranger's signature.
- If the file is replaced while the store is open, its rows are copied to the new file
  (`row_carry`). If it is written over in place, the next write raises an error.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import UsageError
from ...host import shorten_path
from ...record import Record, UserKey
from . import row_carry, row_claims, row_records
from .row_database import fill_statement, split_batches
from .row_file import RowFile
from .row_records import StoredRow

if TYPE_CHECKING:
    from sqlite3 import Connection

OVERWRITTEN = "The store {} was written over while the map ran: what it stored there is lost. The answers so far are in the map's frame; run the cell again to ask for the rows that are missing in the file."


class RowStore:
    """The store of one map, for one execution of it; calls may come from any thread.

    A call that writes is one short transaction for each 500 keys, or part of a `visit`. An `owner`
    is one execution of a map; `now`: epoch seconds. Methods raise UsageError for an unusable file.
    """

    def __init__(
        self,
        path: Path,
        map_id: str,
        key: UserKey,
        *,
        owner: str,
        title: str = "",
        read_only: bool = False,
        now: Callable[[], float] = time.time,
    ) -> None:
        """Open the store at `path`; unless `read_only`, the first write makes a missing file.

        `key`: the user's. `owner`: a name that no other execution has.
        `title`: the text that names the map in a list. Raises UsageError for a file that is
        damaged, of a newer version, or not a store.
        """
        self._file = RowFile(path, read_only=read_only)
        self.path, self.read_only = self._file.path, read_only
        self._map = map_id
        self._title = title
        self._key = key
        self._owner = owner
        self._now = now
        self._written: set[str] = set()  # names of the payloads that this store wrote to the file
        self._name = secrets.token_hex(8)
        self._lock = threading.RLock()
        self._open: Connection | None = None  # the connection of the current transaction
        self._generation = 0  # the generation of the file that this store has entered
        self._transactions = 0  # this store's transactions in that file

    @contextmanager
    def visit(self) -> Iterator[None]:
        """Join the calls in the `with` block to one transaction: all are stored, or none."""
        with self._transaction():
            yield

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        """Yield the connection in a transaction; a nested one joins the outer one."""
        with self._lock:
            if self._open is not None:
                yield self._open
                return
            with self._file.transaction() as connection:
                generation = self._file.generation
                number = self._enter(connection, new=generation != self._generation)
                self._open = connection
                try:
                    yield connection
                finally:
                    self._open = None
            self._generation, self._transactions = generation, number
            self._file.drop_former()

    def _enter(self, connection: Connection, *, new: bool) -> int:
        """Count a transaction and return its number; first enter the file if it is `new`."""
        if new:
            self._written.clear()
            for former in self._file.former:
                row_carry.copy_former_rows(former, connection, self._key)
            row_claims.enter_store(connection, self._name, self._owner, self._now())
            return 1
        if not row_claims.count_transaction(connection, self._name, self._transactions):
            raise UsageError(OVERWRITTEN.format(shorten_path(self.path)))
        return self._transactions + 1

    def find(self, keys: Iterable[str]) -> dict[str, StoredRow]:
        """Return the rows that are stored under these keys, whatever their status."""
        rows: dict[str, StoredRow] = {}
        for batch in split_batches(keys):
            with self._file.reading() as connection:
                rows |= row_records.find_rows(connection, batch, self._key)
        return rows

    def claim(self, keys: Sequence[str], lease: float) -> set[str]:
        """Claim rows for `lease` seconds; return the keys of the rows that this owner has now.

        The other rows are answered, or claimed by another owner until that claim expires.
        """
        ours: set[str] = set()
        for batch in split_batches(keys):
            with self._transaction() as connection:
                now = self._now()
                holders = row_claims.find_holders(connection, batch, now, lease)
                answered = row_records.find_answered(connection, batch, self._key)
                free = [k for k in batch if k not in holders and k not in answered]
                row_claims.claim_rows(connection, free, self._owner, now, lease)
            ours.update(free, (key for key, owner in holders.items() if owner == self._owner))
        return ours

    def renew(self, lease: float) -> None:
        """Extend every claim of this owner to `lease` seconds from now."""
        if not self._transactions:
            return  # no transaction yet, so no claims
        with self._transaction() as connection:
            row_claims.extend_claims(connection, self._owner, self._now(), lease)

    def release(self, keys: Sequence[str], *, attempted: bool = False) -> None:
        """Give claims up; they count as attempts only if the rows were `attempted`."""
        for batch in split_batches(keys):
            with self._transaction() as connection:
                row_claims.give_up(connection, batch, self._owner, attempted=attempted)

    def put(self, rows: Sequence[tuple[str, Record, int]]) -> dict[str, int]:
        """Sign and store rows, and end the claims on them; return key -> attempts of all owners.

        `rows`: (key, record, how often it was asked since it was claimed). A stored row survives
        the end of the process. A row that another owner has answered stays as it is.
        """
        attempts: dict[str, int] = {}
        signed = ((k, self._key.sign({**record, "row": k}), n) for k, record, n in rows)
        for batch in split_batches(list(signed)):
            attempted = [(key, times) for key, _, times in batch]
            with self._transaction() as connection:
                row_records.name_map(connection, self._map, self._title)
                answered = row_records.find_answered(connection, [k for k, *_ in batch], self._key)
                new = [(key, record) for key, record, _ in batch if key not in answered]
                payloads = row_records.write_rows(connection, self._map, new, self._written)
                attempts |= row_claims.end_claims(connection, attempted, self._owner)
            self._written |= payloads
        return {key: row_records.bound_attempts(value) for key, value in attempts.items()}

    def maps(self) -> dict[str, tuple[str, int]]:
        """Return the maps of the file: id -> (title, number of rows)."""
        with self._file.reading() as connection:
            rows = connection.execute(
                "SELECT map, substr(said, 1, 200), (SELECT count(*) FROM rows WHERE rows.map = maps.map) FROM maps"
            ).fetchall()
        return {str(map_id): (str(title), int(count)) for map_id, title, count in rows}

    def forget(self, runs: Collection[str]) -> int:
        """Remove the rows of these runs, with payloads that no other row uses; return their number.

        When this returns, the file no longer contains their text.
        """
        count = 0
        for batch in split_batches(runs):
            condition = fill_statement(batch, "run IN (*)")
            with self._transaction() as connection:
                count += row_records.forget_rows(connection, condition, batch)
        return self._clean_up(count)

    def forget_map(self) -> int:
        """Remove all rows of this map as `forget` does."""
        with self._transaction() as connection:
            count = row_records.forget_rows(connection, "map = ?", [self._map])
        return self._clean_up(count)

    def _clean_up(self, count: int) -> int:
        """Remove unused payloads and maps, and shrink the file, if rows were removed (`count`)."""
        if count:
            with self._transaction() as connection:
                row_records.forget_unused(connection)
            self._written.clear()
            self._file.shrink()
        return count

    @property
    def idle(self) -> bool:
        """Whether the file holds no rows, and no claims of others."""
        with self._file.reading() as connection:
            busy = row_claims.has_other_claims(connection, self._now(), self._owner)
            return not busy and connection.execute("SELECT 1 FROM rows").fetchone() is None

    def close(self) -> None:
        """Close the file. Remaining claims expire.

        Raises UsageError if the file was replaced and its rows cannot be carried over.
        """
        try:
            if self._transactions:
                with self._transaction() as connection:
                    row_claims.leave_store(connection, self._name)
                self._transactions = 0
        finally:
            self._file.close()
