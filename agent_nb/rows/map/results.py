"""The results of a map in progress: by position, and in the order in which rows finish.

Both are needed: a frame has the order of the data, a loop over the map yields rows as they finish.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import overload

from .row import RowResult


class Results(Sequence[RowResult]):
    """The results by position and repeat, and their readers.

    `pending`: the result of each row until it is over.
    """

    def __init__(self, pending: Iterable[RowResult]) -> None:
        self._results = list(pending)
        self._order: list[int] = []  # indexes of the finished rows, in the order of finishing
        self._closed = False
        self._waiting: set[asyncio.Future[None]] = set()

    @overload
    def __getitem__(self, index: int) -> RowResult: ...
    @overload
    def __getitem__(self, index: slice) -> list[RowResult]: ...
    def __getitem__(self, index: int | slice) -> RowResult | list[RowResult]:
        return self._results[index]

    def __len__(self) -> int:
        return len(self._results)

    @property
    def done(self) -> int:
        """How many rows are over."""
        return len(self._order)

    def put(self, index: int, result: RowResult) -> bool:
        """Set the result of a row; return False if it has one already."""
        if self._results[index].status != "pending":
            return False
        self._results[index] = result
        self._order.append(index)
        self._wake()
        return True

    def close(self) -> None:
        """End the readers: no more results come."""
        self._closed = True
        self._wake()

    async def finished(self) -> AsyncIterator[RowResult]:
        """Yield the result of each finished row: first those so far, then each as it ends."""
        position = 0
        while True:
            while position < len(self._order):
                position += 1
                yield self._results[self._order[position - 1]]
            if self._closed:
                return
            waiting = asyncio.get_running_loop().create_future()
            self._waiting.add(waiting)
            try:
                await waiting
            finally:
                self._waiting.discard(waiting)

    def _wake(self) -> None:
        for waiting in self._waiting:
            if not waiting.done():
                waiting.set_result(None)
