"""Claims on the rows of a store: who asks a row now, until when, and how often it was asked.

Why apart from `row_store`: these are the statements of one transaction, which that file holds.

Rules
- A claim holds from `since` to `until`, in seconds of the wall clock. `since` may be `SKEW` ahead
  of the reader's clock; a claim from further ahead was made before the clock was set back, and does
  not hold. No claim holds for more than `LONGEST`, whatever a file says.
- A claim counts as an attempt when it is made, before the request: a row that was in flight when
  its kernel died was asked.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from .row_file import statement

if TYPE_CHECKING:
    from sqlite3 import Connection

SKEW = 60.0  # seconds by which clocks of two machines may differ
LONGEST = 3600.0  # seconds
_HELD = "SELECT key, owner FROM claims WHERE owner != '' AND since <= ? AND until > ? AND until <= since + ?"


def holders(connection: Connection, keys: Sequence[str], now: float) -> dict[str, str]:
    """Return the owners whose claims on these rows hold at `now`, by key."""
    values = (now + SKEW, now, LONGEST, *keys)
    return dict(connection.execute(statement(keys, f"{_HELD} AND key IN (*)"), values))


def any_held(connection: Connection, now: float) -> bool:
    """Return whether any claim holds at `now`."""
    return connection.execute(_HELD, (now + SKEW, now, LONGEST)).fetchone() is not None


def take(
    connection: Connection, keys: Collection[str], owner: str, now: float, lease: float
) -> None:
    """Claim rows whose claims do not hold, for `lease` seconds."""
    connection.executemany(
        "INSERT INTO claims VALUES(?1, 1, ?2, ?3, ?4) ON CONFLICT(key) DO UPDATE "
        "SET attempts = attempts + 1, owner = ?2, since = ?3, until = ?4",
        [(key, owner, now, now + min(lease, LONGEST)) for key in keys],
    )


def extend(connection: Connection, owner: str, now: float, lease: float) -> None:
    """Let all claims of an owner hold for `lease` seconds from now."""
    connection.execute(
        "UPDATE claims SET since = ?, until = ? WHERE owner = ? AND owner != ''",
        (now, now + min(lease, LONGEST), owner),
    )


def give_up(connection: Connection, keys: Sequence[str], owner: str, *, asked: bool) -> None:
    """End the claims of an owner on rows; they count only if the rows were `asked`."""
    update = "UPDATE claims SET owner = '', attempts = attempts - ? WHERE owner = ? AND key IN (*)"
    connection.execute(statement(keys, update), (0 if asked else 1, owner, *keys))
    delete = "DELETE FROM claims WHERE attempts < 1 AND key IN (*)"
    connection.execute(statement(keys, delete), keys)


def settle(connection: Connection, asked: Sequence[tuple[str, int]], owner: str) -> dict[str, int]:
    """End the claims of an owner on rows that were asked (key, how often since it claimed them).

    Return how often each was asked by all owners. A row that another owner has taken over stays
    theirs.
    """
    connection.executemany(
        "INSERT INTO claims VALUES(?1, max(?2, 1), '', 0, 0) ON CONFLICT(key) DO UPDATE "
        "SET attempts = attempts + max(?2, 1) - (owner = ?3), owner = iif(owner = ?3, '', owner)",
        [(key, times, owner) for key, times in asked],
    )
    keys = [key for key, _ in asked]
    select = "SELECT key, attempts FROM claims WHERE key IN (*)"
    return dict(connection.execute(statement(keys, select), keys))
