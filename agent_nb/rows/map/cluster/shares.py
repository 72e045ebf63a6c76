"""Splits the concurrency and the requests per minute of a map over its workers.

Why: a limit counts over the whole map, and workers do not know of each other.

Rules
- Shares are even; the first workers get the remainder.
- Rows are split over the workers that may send requests now.
- The next row goes to the worker with the most free places, and waits while all are full.
- Requests per minute that a worker loses become free for the others only after `WINDOW` seconds,
  because the worker may have sent them shortly before.
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

    `issue` counts the changes of the shares.
    """

    def __init__(self, rows: int, rpm: int = 0) -> None:
        self.issue = 0
        self._rows, self._rpm = rows, rpm
        self._now: dict[str, Share] = {}
        self._reduced: list[tuple[float, str, int]] = []  # (time, worker, its rpm until then)
        self._load: Counter[str] = Counter()  # rows under way

    def __getitem__(self, worker: str) -> Share:
        return self._now.get(worker, Share(0))

    def __contains__(self, worker: object) -> bool:
        return worker in self._now

    def take(self) -> str:
        """Return the worker for the next row and count that row; "" if none may ask now."""
        free = {name: share.rows - self._load[name] for name, share in self._now.items()}
        name = max((n for n in free if free[n] > 0), key=free.__getitem__, default="")
        if name:
            self._load[name] += 1
        return name

    def give_back(self, worker: str) -> None:
        """Count that a row of a worker is over."""
        self._load[worker] -= 1

    def update(self, workers: Iterable[str], now: float) -> None:
        """Split anew over the `workers` that exist at the time `now`, in seconds."""
        present = dict.fromkeys(workers)
        names = [
            *(n for n in self._now if n in present),
            *(n for n in present if n not in self._now),
        ]
        rates = self._grant_rates(names, _split(self._rpm, len(names)), now)
        asking = [name for name, rpm in zip(names, rates, strict=True) if rpm or not self._rpm]
        rows = dict(zip(asking, _split(self._rows, len(asking)), strict=True))
        fresh = {n: Share(rows.get(n, 0), rpm) for n, rpm in zip(names, rates, strict=True)}
        if fresh == self._now:
            return
        for name, share in self._now.items():
            if share.rpm > fresh.get(name, Share(0)).rpm:
                self._reduced.append((now, name, share.rpm))
        self._now = fresh
        self.issue += 1

    def _grant_rates(self, names: list[str], wanted: list[int], now: float) -> list[int]:
        """Return, for each worker, how many of the `wanted` requests per minute it may use now."""
        self._reduced = [each for each in self._reduced if now - each[0] < WINDOW]
        peaks = {name: share.rpm for name, share in self._now.items()}  # highest within the window
        for _, name, rpm in self._reduced:
            peaks[name] = max(peaks.get(name, 0), rpm)
        free = self._rpm - sum(peaks.values())  # what no worker can have used within the window
        granted = []
        for name, want in zip(names, wanted, strict=True):
            extra = min(max(want - peaks.get(name, 0), 0), max(free, 0))
            free -= extra
            granted.append(min(want, peaks.get(name, 0) + extra))
        return granted


def _split(total: int, count: int) -> list[int]:
    """Return `count` parts of a total, as even as possible, the larger ones first."""
    return [total // count + (n < total % count) for n in range(count)]
