"""Waits that do not count against a run's time limit: for a slot at an endpoint, before a retry.

Most rows of a large map wait. If their time limits ran meanwhile, they would end before their
requests are sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

# called with True when a wait begins, with False when it ends
_notify: ContextVar[Callable[[bool], object] | None] = ContextVar("agent_nb_waits", default=None)


@contextmanager
def watch_waits(notify: Callable[[bool], object]) -> Iterator[None]:
    """Call `notify` with True when a wait in this context begins, with False when it ends."""
    token = _notify.set(notify)
    try:
        yield
    finally:
        _notify.reset(token)


@contextmanager
def mark_wait() -> Iterator[None]:
    """Mark the block as a wait."""
    notify = _notify.get()
    if notify is None:
        yield
        return
    notify(True)
    try:
        yield
    finally:
        notify(False)
