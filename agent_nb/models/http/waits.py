"""Waits that do not count against a run's time limit: for a slot at an endpoint, before a retry.

Why: most rows of a large map wait. If their time limits ran meanwhile, they would end before their
requests are sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

# called with True when a wait begins, with False when it ends
_clock: ContextVar[Callable[[bool], object] | None] = ContextVar("agent_nb_clock", default=None)


@contextmanager
def watch_waits(clock: Callable[[bool], object]) -> Iterator[None]:
    """Call `clock` with True when a wait in this context begins, with False when it ends."""
    token = _clock.set(clock)
    try:
        yield
    finally:
        _clock.reset(token)


@contextmanager
def mark_wait() -> Iterator[None]:
    """Mark the block as a wait."""
    clock = _clock.get()
    if clock is None:
        yield
        return
    clock(True)
    try:
        yield
    finally:
        clock(False)
