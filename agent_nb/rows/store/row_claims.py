"""Claims on the rows of a store: who asks a row now, until when, and how often it was asked.

These functions run statements; `row_store` opens the transactions.

Rules
- A claim holds from `since` to `until`, by the wall clock. A `since` more than `CLOCK_SKEW` ahead
  means that the clock was set back after the claim was made, so the claim does not hold.
- A claim for longer than `LONGEST_CLAIM`, or in `find_holders` than the reader's own lease, does
  not hold either, so that a stranger's file cannot block a row for longer.
- Each open store that has written has a claim on the file itself, whose attempts count the store's
  transactions. If the number differs, an earlier copy was written over the file.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from .row_database import fill_statement

if TYPE_CHECKING:
    from sqlite3 import Connection

CLOCK_SKEW = 60.0  # seconds by which clocks of two machines may differ
LEASE = 20.0  # seconds that a claim of a map holds unless it is renewed
LONGEST_CLAIM = 60.0  # seconds
ABANDONED = 30 * 86_400.0  # seconds after which a store's claim on the file is removed
STORE = "store:"  # begins the key of a claim on the file; keys of rows are hexadecimal
# the claims that hold; its parameters: now + CLOCK_SKEW, now, the longest lease that counts
_HELD = "SELECT key, owner FROM claims WHERE owner != '' AND since <= ? AND until > ? AND until <= since + ?"


def find_holders(
    connection: Connection, keys: Sequence[str], now: float, lease: float
) -> dict[str, str]:
    """Return the owners whose claims on these rows hold at `now`, by key."""
    values = (now + CLOCK_SKEW, now, min(lease, LONGEST_CLAIM), *keys)
    return dict(connection.execute(fill_statement(keys, f"{_HELD} AND key IN (*)"), values))


def has_other_claims(connection: Connection, now: float, owner: str) -> bool:
    """Return whether any claim of others than `owner` holds at `now`."""
    values = (now + CLOCK_SKEW, now, LONGEST_CLAIM, owner)
    return connection.execute(f"{_HELD} AND owner != ?", values).fetchone() is not None


def claim_rows(
    connection: Connection, keys: Collection[str], owner: str, now: float, lease: float
) -> None:
    """Claim rows for `lease` seconds; the caller has checked that no claim on them holds."""
    connection.executemany(
        "INSERT INTO claims VALUES(?1, 1, ?2, ?3, ?4) ON CONFLICT(key) DO UPDATE "
        "SET attempts = attempts + 1, owner = ?2, since = ?3, until = ?4",
        [(key, owner, now, now + min(lease, LONGEST_CLAIM)) for key in keys],
    )


def extend_claims(connection: Connection, owner: str, now: float, lease: float) -> None:
    """Extend all claims of an owner to `lease` seconds from now."""
    connection.execute(
        "UPDATE claims SET since = ?, until = ? WHERE owner = ? AND owner != ''",
        (now, now + min(lease, LONGEST_CLAIM), owner),
    )


def enter_store(connection: Connection, name: str, owner: str, now: float) -> None:
    """Claim the file for an open store; this transaction counts as the store's first one.

    `name`: the store's name. Claims on the file that ended `ABANDONED` seconds ago are removed.
    """
    connection.execute(
        "DELETE FROM claims WHERE key GLOB ? AND until < ?", (f"{STORE}*", now - ABANDONED)
    )
    connection.execute(
        "INSERT OR REPLACE INTO claims VALUES(?, 1, ?, ?, ?)",
        (STORE + name, owner, now, now + LEASE),
    )


def count_transaction(connection: Connection, name: str, number: int) -> bool:
    """Count a transaction; return False if the file does not hold the `number` earlier ones."""
    update = "UPDATE claims SET attempts = attempts + 1 WHERE key = ? AND attempts = ?"
    return connection.execute(update, (STORE + name, number)).rowcount == 1


def leave_store(connection: Connection, name: str) -> None:
    """Give up the claim of an open store on its file."""
    connection.execute("DELETE FROM claims WHERE key = ?", (STORE + name,))


def give_up(connection: Connection, keys: Sequence[str], owner: str, *, attempted: bool) -> None:
    """End the claims of an owner on rows; if not `attempted`, they do not count as attempts."""
    update = "UPDATE claims SET owner = '', attempts = attempts - ? WHERE owner = ? AND key IN (*)"
    connection.execute(fill_statement(keys, update), (0 if attempted else 1, owner, *keys))
    delete = "DELETE FROM claims WHERE attempts < 1 AND key IN (*)"
    connection.execute(fill_statement(keys, delete), keys)


def end_claims(
    connection: Connection, attempts: Sequence[tuple[str, int]], owner: str
) -> dict[str, int]:
    """End the claims of an owner on rows that were asked; return the attempts of all owners.

    `attempts`: (key, how often the owner asked the row since its claim). A row that another owner
    has claimed meanwhile stays theirs.
    """
    # claiming the row counted an attempt already: subtract it if the claim is still this owner's
    connection.executemany(
        "INSERT INTO claims VALUES(?1, max(?2, 1), '', 0, 0) ON CONFLICT(key) DO UPDATE "
        "SET attempts = attempts + max(?2, 1) - (owner = ?3), owner = iif(owner = ?3, '', owner)",
        [(key, times, owner) for key, times in attempts],
    )
    keys = [key for key, _ in attempts]
    select = "SELECT key, attempts FROM claims WHERE key IN (*)"
    return dict(connection.execute(fill_statement(keys, select), keys))
