"""Splits the concurrency and the requests per minute of a map over its workers.

A limit counts over the whole map, and workers do not know of each other.

Rule: requests per minute that a worker loses become free for the others only after `WINDOW`
seconds, because the worker may have sent them shortly before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec

WINDOW = 60.0  # s over which requests per minute count


class Share(msgspec.Struct, frozen=True):
    """The share of one worker: `rows` at once, `rpm` requests per minute (0: no limit)."""

    rows: int
    rpm: int = 0


class Shares:
    """The shares of a map's workers in its `rows` at once and `rpm` (0: no limit).

    `revision` counts the changes of the shares.
    """

    def __init__(self, rows: int, rpm: int = 0) -> None:
        self.revision = 0
        self._rows, self._rpm = rows, rpm
        self._current: dict[str, Share] = {}
        # the shares before the changes of the last `WINDOW` seconds, with the time of each change
        self._former: list[tuple[float, dict[str, Share]]] = []
        self._load: Counter[str] = Counter()  # rows under way

    def __getitem__(self, worker: str) -> Share:
        return self._current.get(worker, Share(0))

    def __contains__(self, worker: object) -> bool:
        return worker in self._current

    def begin_row(self) -> str:
        """Return the worker with the most room, which gets one more row; "" if all are full."""
        free = {name: share.rows - self._load[name] for name, share in self._current.items()}
        name = max((n for n in free if free[n] > 0), key=free.__getitem__, default="")
        if name:
            self._load[name] += 1
        return name

    def end_row(self, worker: str) -> None:
        """Make room for another row of a worker."""
        self._load[worker] -= 1

    def update(self, workers: Iterable[str], now: float) -> None:
        """Split anew over the `workers` that exist at the time `now`, in seconds.

        Shares are even; the first workers get the remainder.
        """
        present = dict.fromkeys(workers)
        # known workers keep their order, because the first ones get the remainder
        names = [name for name in self._current if name in present]
        names += [name for name in present if name not in self._current]
        rates = self._grant_rates(names, _split(self._rpm, len(names)), now)
        asking = [name for name, rpm in zip(names, rates, strict=True) if rpm or not self._rpm]
        rows = dict(zip(asking, _split(self._rows, len(asking)), strict=True))
        new_shares = {n: Share(rows.get(n, 0), rpm) for n, rpm in zip(names, rates, strict=True)}
        if new_shares == self._current:
            return
        self._former.append((now, self._current))
        self._current = new_shares
        self.revision += 1

    def _grant_rates(self, names: list[str], wanted: list[int], now: float) -> list[int]:
        """Return, for each worker, how many of the `wanted` requests per minute it may use now."""
        self._former = [(at, shares) for at, shares in self._former if now - at < WINDOW]
        peaks: Counter[str] = Counter()  # highest rates within the window
        for shares in (self._current, *(shares for _, shares in self._former)):
            peaks |= Counter({name: share.rpm for name, share in shares.items()})  # the maximum
        free = self._rpm - sum(peaks.values())  # what no worker can have used within the window
        granted = []
        for name, want in zip(names, wanted, strict=True):
            extra = min(max(want - peaks[name], 0), max(free, 0))
            free -= extra
            granted.append(min(want, peaks[name] + extra))
        return granted


def _split(total: int, count: int) -> list[int]:
    """Return `count` parts of a total, as even as possible, the larger ones first."""
    return [total // count + (n < total % count) for n in range(count)]
