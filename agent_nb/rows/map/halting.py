"""Tasks of a map that end together: when all are over, one fails, or the map is halted."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from typing import Any, TypeVar

T = TypeVar("T")


class HaltableTasks:
    """Runs coroutines together, one list after another, until `halt` is called (`halted`)."""

    def __init__(self) -> None:
        self.halted = False
        self._tasks: Sequence[asyncio.Future[Any]] = ()  # of the current list

    def halt(self) -> None:
        """Cancel the tasks that run; those of later lists are cancelled before they begin."""
        self.halted = True
        self._cancel_all()

    async def run_together(self, work: Sequence[Awaitable[T]]) -> list[T]:
        """Run coroutines until all are over, or one fails: then cancel the others and raise.

        Return the results of those that `halt` did not cancel.
        """
        tasks = self._tasks = [asyncio.ensure_future(each) for each in work]
        if self.halted:
            self._cancel_all()
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        finally:
            self._cancel_all()
            if unfinished := [task for task in tasks if not task.done()]:
                await asyncio.wait(unfinished)
        return [task.result() for task in tasks if not task.cancelled()]

    def _cancel_all(self) -> None:
        for task in self._tasks:
            task.cancel()
