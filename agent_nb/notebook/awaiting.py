"""Work that a magic starts: awaited by the cell, or run here where no event loop runs."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def awaitable_or_result(work: Coroutine[Any, Any, T]) -> Coroutine[Any, Any, T] | T:
    """Return `work` for the caller to await; without a running event loop, return its result."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    return work
