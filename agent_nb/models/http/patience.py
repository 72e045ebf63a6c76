"""A time limit for one await that costs nothing if the result is already there.

An answer arrives in many chunks, and most have arrived before they are awaited. A timer and a
cancel scope for each chunk would cost as much as reading it.
"""

from __future__ import annotations

import asyncio
import types
from collections.abc import Awaitable, Generator
from typing import Any, TypeVar

T = TypeVar("T")


@types.coroutine
def wait_within(seconds: float, work: Awaitable[T]) -> Generator[Any, Any, T]:
    """Await `work` and return its value. Raises TimeoutError after `seconds`.

    The timer starts when `work` suspends for the first time. At the limit `work` is cancelled and
    may clean up. A cancellation from elsewhere never becomes a TimeoutError, even if it comes at
    the same moment.
    """
    # a coroutine driven by hand shows whether its first step suspends at all
    steps = work.__await__()
    try:
        waits_for = next(steps)
    except StopIteration as done:
        value: T = done.value
        return value
    timer = _Timer(seconds)
    try:
        while True:
            try:
                sent = yield waits_for
            except GeneratorExit:
                steps.close()
                raise
            except BaseException as error:
                waits_for = steps.throw(error)
            else:
                waits_for = steps.send(sent)
    except StopIteration as done:
        timer.stop()
        value = done.value
        return value
    except asyncio.CancelledError:
        if timer.stop():
            raise TimeoutError from None
        raise
    except BaseException:
        timer.stop()
        raise


class _Timer:
    """Cancels the task that makes the timer, after `seconds`, unless `stop` is called before."""

    def __init__(self, seconds: float) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._task = task
        self._cancels_before = task.cancelling()
        self._fired = False
        self._handle = task.get_loop().call_later(seconds, self._fire)

    def _fire(self) -> None:
        self._fired = True
        self._task.cancel()

    def stop(self) -> bool:
        """Stop the timer; return whether it alone has cancelled the task."""
        self._handle.cancel()
        # `uncancel` takes back our own cancellation; if more are left than before the timer
        # started, another one came too, and that one must not become a TimeoutError
        return self._fired and self._task.uncancel() <= self._cancels_before
