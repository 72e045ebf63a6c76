"""Context variables whose value reaches the threads that code starts.

A new thread has an empty context, so its prints and runs would belong to no cell. To know who
starts a thread, `threading.Thread.start` is replaced: once for all variables, because each of two
replacements would undo the other when it ends. If other code has replaced it meanwhile, both
replacements stay.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from contextvars import ContextVar, Token
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Inherited(Generic[T]):
    """A context variable; its value is None until it is set.

    A thread has the value that its starter had at the start, unless it sets its own.
    """

    def __init__(self, name: str) -> None:
        self._variable: ContextVar[T | None] = ContextVar(name, default=None)
        self._of_threads = weakref.WeakKeyDictionary[threading.Thread, T]()

    def get(self) -> T | None:
        """Return the value of the running code."""
        value = self._variable.get()
        return self._of_threads.get(threading.current_thread()) if value is None else value

    def set(self, value: T | None) -> Token[T | None]:
        """Set the value of the running context (None: as if not set); `reset` takes the token."""
        return self._variable.set(value)

    def reset(self, token: Token[T | None]) -> None:
        """Undo a `set`. Raises ValueError in any other context."""
        self._variable.reset(token)

    def reach_threads(self) -> Callable[[], None]:
        """Give threads that start from now on the value of their starter.

        Return a function that ends this; calling it twice is harmless. Several calls of
        `reach_threads` may be open at once.
        """
        hold = object()
        with _lock:
            _holds[hold] = self
            _replace_start()

        def end() -> None:
            with _lock:
                _holds.pop(hold, None)
                # a `start` of other code stays
                if not _holds and (below := _find_start_below()) is not None:
                    threading.Thread.start = below  # type: ignore[method-assign, assignment]

        return end

    def pass_value(self, thread: threading.Thread) -> None:
        """Give a new thread the value of the running code, which starts it."""
        value = self.get()
        if value is not None and thread.ident is None:
            self._of_threads[thread] = value


_lock = threading.Lock()  # of `_holds`, and of `threading.Thread.start`
if hasattr(os, "register_at_fork"):  # in a forked child nothing frees a held lock
    os.register_at_fork(after_in_child=_lock._at_fork_reinit)  # type: ignore[attr-defined]  # noqa: SLF001
_holds: dict[object, Inherited[Any]] = {}  # one for each call of `reach_threads` that is open
# attributes of our `start`: the one below it, and itself
_BELOW, _ITSELF = "agent_nb_below", "agent_nb_start"


def _find_start_below() -> Callable[[threading.Thread], None] | None:
    """Return the `start` below ours, None if the one in place is not ours."""
    start = threading.Thread.start
    # a wrapper of other code may have copies of our attributes (`functools.wraps`)
    return getattr(start, _BELOW) if getattr(start, _ITSELF, None) is start else None


def _replace_start() -> None:
    """Put our `start` in place, unless it is there."""
    if _find_start_below() is not None:
        return
    start = threading.Thread.start

    # a closure, not a global: other code may put back an older replacement of ours, whose calls
    # would then lead in a circle
    def begin(thread: threading.Thread) -> None:
        for variable in tuple(_holds.values()):
            variable.pass_value(thread)
        start(thread)

    setattr(begin, _BELOW, start)
    setattr(begin, _ITSELF, begin)
    threading.Thread.start = begin  # type: ignore[method-assign, assignment]
