"""An event loop whose steps are counted, so that a test can do something at every one of them.

Why: "stopped at any moment" is a claim about each step; a test with real time and real threads
would meet some of them, and other ones each time.

Rules
- Time stands still while something can be done, and jumps to the next timer when nothing can.
- Work for threads is done when it is handed over (`queued=False`: the thread was fast), or only
  when its result is due, `LATE` steps later (`queued=True`: work whose waiter is cancelled
  meanwhile never begins).
- A loop that can never go on raises AssertionError.
"""

import asyncio
import selectors
from collections.abc import Callable
from contextlib import suppress
from typing import Any

LATE = 3


class _Steps:
    """A selector that waits for nobody: it counts, and moves the time instead."""

    def __init__(self, step: Callable[[int], object]) -> None:
        self._real = selectors.DefaultSelector()
        self._step = step
        self.count = 0
        self.now = 1000.0
        self.over = False

    def select(self, timeout: float | None = None) -> list[Any]:
        self.count += 1
        if not self.over:
            self._step(self.count)
        found = self._real.select(0)
        if not found:
            assert timeout is not None, "the loop waits for what never comes"
            self.now += max(timeout, 0.0)
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


class SteppedLoop(asyncio.SelectorEventLoop):
    """The loop; `step` is called with the number of each step before it, from 1."""

    def __init__(self, step: Callable[[int], object], *, queued: bool = False) -> None:
        self.steps = _Steps(step)
        self._queued = queued
        super().__init__(self.steps)

    def time(self) -> float:
        return self.steps.now

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> Any:
        result = self.create_future()
        work = None if self._queued else executor.submit(func, *args)

        def later(steps: int) -> None:
            if steps:
                self.call_soon(later, steps - 1)
            elif not result.done():
                done = work or executor.submit(func, *args)
                if (fault := done.exception()) is not None:
                    result.set_exception(fault)
                else:
                    result.set_result(done.result())

        if work is not None:
            work.exception()  # wait for it
        later(LATE)
        return result


def run_stepped(
    main: Callable[[], Any], step: Callable[[int], object], *, queued: bool = False
) -> tuple[Any, int]:
    """Run a coroutine to its end, then end the tasks that are left, as `asyncio.run` does.

    Return its result (the exception, if it raised one) and the number of steps that it took.
    """
    loop = SteppedLoop(step, queued=queued)
    asyncio.set_event_loop(loop)
    try:
        task = loop.create_task(main())
        with suppress(BaseException):
            loop.run_until_complete(task)
        taken = loop.steps.count
        left = asyncio.all_tasks(loop)
        for each in left:
            each.cancel()
        if left:
            loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        loop.steps.over = True
        loop.run_until_complete(loop.shutdown_asyncgens())
        if task.cancelled():
            return asyncio.CancelledError(), taken
        return task.exception() or task.result(), taken
    finally:
        asyncio.set_event_loop(None)
        loop.close()
