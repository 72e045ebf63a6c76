"""The rows of maps on disk: what was answered is never asked again, whatever ends the kernel.

Rules
- A row is stored under its key (`agent.map.keys`) as the signed record of its run. The key stands
  in the record, so that the signature of one row counts for no other.
- A row is final if this user signed it and its run ended `ok`. Others are returned too, and may be
  claimed again; the caller decides whether to trust what a stranger signed.
- A claim is a lease in wall-clock time: one owner asks a row. A lease that has run out is taken
  over, and so is one from the future, which a clock that was set back leaves behind.
- Attempts count claims before the request is sent, so that a row that was in flight when its kernel
  died counts as asked. `release` takes a claim back that led to no request.
- Large values (`payloads`) that several rows share are stored once.
- Rows are read with bounds: a record beyond them, or one that is not JSON, does not exist.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from ..wire.json_text import dumps, lenient_loads
from .packing import reachable
from .payloads import attach, detach
from .record import Record
from .row_file import LARGEST, RowFile
from .signing import intact, names_signer, sign

if TYPE_CHECKING:
    from sqlite3 import Connection

SKEW = 60.0  # seconds by which clocks of two machines may differ
LONGEST = 3600.0  # seconds of a lease; a file may claim more
_MOST = 500  # keys of one statement
_PAGE = 100  # records that `runs` reads at once
_ENOUGH = 1 << 30  # attempts
_HELD = "SELECT key, owner FROM claims WHERE owner != '' AND since <= ? AND until > ? AND until <= since + ?"
_ADD, _REPLACE = (f"INSERT OR {how} INTO payloads VALUES(?, ?)" for how in ("IGNORE", "REPLACE"))
_FORGET = (
    "DELETE FROM uses WHERE key IN (SELECT key FROM rows WHERE run IN (*))",
    "DELETE FROM claims WHERE key IN (SELECT key FROM rows WHERE run IN (*))",
    "DELETE FROM rows WHERE run IN (*)",
)
_T = TypeVar("_T")


class Stored(msgspec.Struct, frozen=True):
    """A row: the whole record of its run, and how often it was asked.

    `intact`: the record has its hash. `mine`: it is, and this user signed it.
    """

    record: Record
    attempts: int
    intact: bool
    mine: bool

    @property
    def final(self) -> bool:
        """Whether the row need not be asked again, if its record is trusted."""
        return self.record.get("status") == "ok"


class RowStore:
    """The store of one map, for one execution of it (`owner`); calls may come from any thread.

    Every call is one short transaction, or several of at most 500 keys. Raises UsageError if the
    file cannot be used.
    """

    def __init__(
        self,
        file: RowFile,
        map_id: str,
        key: bytes,
        *,
        owner: str,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._file = file
        self._map = map_id
        self._key = key
        self._owner = owner
        self._now = now
        self._written: set[str] = set()  # payloads that stand in the file as this store wrote them

    @classmethod
    def open(
        cls, path: Path, map_id: str, key: bytes, *, owner: str, read_only: bool = False
    ) -> RowStore:
        """Open the store at `path`, made if missing unless it is `read_only`.

        key: the user's (`signing.user_key`). owner: a name that no other execution has. Raises
        UsageError for a file that is damaged, newer, or not a store.
        """
        return cls(RowFile(path, read_only=read_only), map_id, key, owner=owner)

    @property
    def path(self) -> Path:
        """Where the file is."""
        return self._file.path

    def find(self, keys: Iterable[str]) -> dict[str, Stored]:
        """Return the rows that are stored under these keys, whatever their status."""
        found: dict[str, Stored] = {}
        for some in _batches(keys):
            with self._file.reading() as connection:
                found |= self._find(connection, some)
        return found

    def _find(self, connection: Connection, keys: Sequence[str]) -> dict[str, Stored]:
        rows = connection.execute(
            _for(
                keys,
                "SELECT rows.key, record, attempts FROM rows LEFT JOIN claims USING(key) "
                "WHERE rows.key IN (*) AND length(record) <= ?",
            ),
            (*keys, LARGEST),
        ).fetchall()
        found = {}
        for key, content, attempts in rows:
            record = self._whole(connection, content)
            if record and record.get("row") == key:
                whole = intact(record)
                own = whole and names_signer(record, self._key)
                found[key] = Stored(record, _times(attempts), whole, own)
        return found

    def _whole(self, connection: Connection, content: Any) -> Record:
        """Return the record of its bytes with its payloads; {} if it is not one."""
        record = _value(content)
        if not isinstance(record, dict):
            return {}
        beside: dict[str, Any] = {}
        while missing := sorted(reachable(record.get("events"), beside) - beside.keys()):
            for some in _batches(missing):
                rows = connection.execute(
                    _for(
                        some,
                        "SELECT name, value FROM payloads WHERE name IN (*) AND length(value) <= ?",
                    ),
                    (*some, LARGEST),
                )
                known = {name: _value(value) for name, value in rows}
                beside |= {name: known.get(name) for name in some}
        return attach(record, {k: v for k, v in beside.items() if v is not None})

    def claim(self, keys: Sequence[str], lease: float) -> set[str]:
        """Claim rows for `lease` seconds; return those that are this owner's now.

        The others are stored and final, or another owner's lease on them is in force.
        """
        ours: set[str] = set()
        for some in _batches(keys):
            with self._file.transaction() as connection:
                now = self._now()
                held = dict(
                    connection.execute(
                        _for(some, f"{_HELD} AND key IN (*)"), (now + SKEW, now, LONGEST, *some)
                    )
                )
                final = {k for k, s in self._find(connection, some).items() if s.mine and s.final}
                kept = {key for key, owner in held.items() if owner == self._owner}
                free = [key for key in some if key not in held and key not in final]
                connection.executemany(
                    "INSERT INTO claims VALUES(?1, 1, ?2, ?3, ?4) ON CONFLICT(key) DO UPDATE "
                    "SET attempts = attempts + 1, owner = ?2, since = ?3, until = ?4",
                    [(key, self._owner, now, now + min(lease, LONGEST)) for key in free],
                )
            ours |= kept.union(free)
        return ours

    def renew(self, lease: float) -> None:
        """Let every claim of this owner hold for `lease` seconds from now."""
        now = self._now()
        with self._file.transaction() as connection:
            connection.execute(
                "UPDATE claims SET since = ?, until = ? WHERE owner = ? AND owner != ''",
                (now, now + min(lease, LONGEST), self._owner),
            )

    def release(self, keys: Sequence[str], *, asked: bool = False) -> None:
        """Give claims up; they count as attempts only if the rows were `asked`."""
        back = 0 if asked else 1
        for some in _batches(keys):
            with self._file.transaction() as connection:
                connection.execute(
                    _for(
                        some,
                        "UPDATE claims SET owner = '', until = 0, attempts = attempts - ? "
                        "WHERE owner = ? AND key IN (*)",
                    ),
                    (back, self._owner, *some),
                )
                connection.execute(
                    _for(some, "DELETE FROM claims WHERE attempts < 1 AND key IN (*)"), some
                )

    def put(self, rows: Sequence[tuple[str, Record, int]]) -> dict[str, int]:
        """Store rows as (key, record, how often it was asked since it was claimed).

        They are signed here, and survive the end of the process when this returns. The claims on
        them end. A row that another owner made final meanwhile stays as it is. Return how often
        each row was asked, by all owners.
        """
        attempts: dict[str, int] = {}
        ready = [(key, sign({**record, "row": key}, self._key), n) for key, record, n in rows]
        for some in _batches(ready):
            keys = [key for key, _, _ in some]
            with self._file.transaction() as connection:
                before = self._find(connection, keys)
                new = [
                    (key, record)
                    for key, record, _ in some
                    if not (key in before and before[key].mine and before[key].final)
                ]
                payloads = self._store(connection, new)
                connection.executemany(
                    "INSERT INTO claims VALUES(?1, max(?2, 1), '', 0, 0) ON CONFLICT(key) DO UPDATE "
                    "SET attempts = attempts + max(?2, 1) - (owner = ?3), owner = iif(owner = ?3, '', owner)",
                    [(key, times, self._owner) for key, _, times in some],
                )
                attempts |= connection.execute(
                    _for(keys, "SELECT key, attempts FROM claims WHERE key IN (*)"), keys
                )
            self._written |= payloads
        return {key: _times(value) for key, value in attempts.items()}

    def _store(self, connection: Connection, rows: Sequence[tuple[str, Record]]) -> set[str]:
        """Write records and their payloads; return the keys of the payloads."""
        written: set[str] = set()
        for key, record in rows:
            bare, payloads = detach(record)
            connection.execute("DELETE FROM uses WHERE key = ?", (key,))
            connection.execute(
                "INSERT OR REPLACE INTO rows VALUES(?, ?, ?, ?)",
                (key, self._map, str(record.get("id", "")), dumps(bare).encode()),
            )
            for name, value in payloads.items():
                # what stands there under this name may be a stranger's, and wrong
                statement = _ADD if name in self._written | written else _REPLACE
                connection.execute(statement, (name, dumps(value).encode()))
                connection.execute("INSERT OR IGNORE INTO uses VALUES(?, ?)", (key, name))
                written.add(name)
        return written

    def runs(self) -> Iterator[Record]:
        """Yield the records of this map's rows, in the order in which they were stored."""
        last = 0
        while True:
            with self._file.reading() as connection:
                rows = connection.execute(
                    "SELECT rowid, record FROM rows WHERE rowid > ? AND map = ? AND length(record) <= ? ORDER BY rowid LIMIT ?",
                    (last, self._map, LARGEST, _PAGE),
                ).fetchall()
                found = [self._whole(connection, content) for _, content in rows]
            if not rows:
                return
            last = rows[-1][0]
            yield from filter(None, found)

    def forget(self, runs: Collection[str]) -> int:
        """Remove the rows of these runs and what they alone used; return how many there were.

        Their text is gone from the file when this returns.
        """
        count = 0
        for some in _batches(runs):
            with self._file.transaction() as connection:
                for statement in _FORGET:
                    done = connection.execute(_for(some, statement), some)
                count += done.rowcount
        if count:
            with self._file.transaction() as connection:
                connection.execute(
                    "DELETE FROM payloads WHERE name NOT IN (SELECT payload FROM uses)"
                )
            self._written.clear()
            self._file.shrink()
        return count

    def __len__(self) -> int:
        """Return the number of stored rows, those of other maps in the file included."""
        with self._file.reading() as connection:
            return int(connection.execute("SELECT count(*) FROM rows").fetchone()[0])

    def close(self) -> None:
        """Close the file. Claims that are left run out."""
        self._file.close()


def _times(attempts: Any) -> int:
    return min(max(attempts, 1), _ENOUGH) if isinstance(attempts, int) else 1


def _value(content: Any) -> Any:
    """Return the JSON value of stored bytes; None if they are not JSON."""
    if not isinstance(content, bytes | str):
        return None
    try:
        return lenient_loads(content)
    except ValueError:
        return None


def _for(values: Collection[Any], statement: str) -> str:
    """Return a statement with a place for each value where `(*)` stands."""
    return statement.replace("(*)", f"({','.join('?' * len(values))})")


def _batches(values: Iterable[_T]) -> Iterator[list[_T]]:
    source = iter(values)
    while some := list(islice(source, _MOST)):
        yield some
