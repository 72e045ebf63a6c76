"""Coroutines run from a test, with a bound on their time."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

T = TypeVar("T")


def wait(work: Callable[[], Awaitable[T]], seconds: float = 30) -> T:
    """Run asynchronous work to its end and return its value. Raises TimeoutError."""

    async def main() -> T:
        with anyio.fail_after(seconds):
            return await work()

    return anyio.run(main)
