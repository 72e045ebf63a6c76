"""Coroutines run from a test, with a bound on their time."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

T = TypeVar("T")


def wait(work: Callable[[], Awaitable[T]], seconds: float = 30) -> T:
    """Run asynchronous work to its end and return its value.

    Raises TimeoutError, after printing where each task waits.
    """

    async def main() -> T:
        late = asyncio.get_running_loop().call_later(seconds, _print_tasks)
        try:
            with anyio.fail_after(seconds):
                return await work()
        finally:
            late.cancel()

    return anyio.run(main)


def move_on(loop: asyncio.AbstractEventLoop, seconds: float) -> None:
    """Let the clock of an event loop go on by so many seconds: its time limits are reached.

    Why: a short limit is reached before what it is to stop has begun, where a machine is slow.
    """
    now = loop.time
    loop.call_soon_threadsafe(setattr, loop, "time", lambda: now() + seconds)


def _print_tasks() -> None:
    for task in asyncio.all_tasks():
        print(task.get_name(), end=": ")
        waits: object = task.get_coro()
        while waits is not None:  # from the outermost coroutine to what it waits for
            frame = getattr(waits, "cr_frame", None) or getattr(waits, "ag_frame", None)
            if frame is not None:
                print(f"{frame.f_code.co_filename}:{frame.f_lineno}", end="  ")
            waits = getattr(waits, "cr_await", None) or getattr(waits, "ag_await", None)
        print()
