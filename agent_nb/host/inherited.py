"""Context variables whose value reaches the threads that code starts.

Why: `contextvars` gives a new thread an empty context, so its prints and runs would belong to
nobody. To know who started a thread, `threading.Thread.start` is replaced.

Rules
- One replacement serves all variables, in place while at least one asks for it. Each of two
  replacements would undo the other when it ends.
- A replacement that other code made over ours stays, and ours below it.
- A thread keeps the value that its starter had, whatever the starter sets later.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from contextvars import ContextVar, Token
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Inherited(Generic[T]):
    """A context variable. Until it is set, its value is None; in a thread, the starter's value."""

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

        Return a function that ends this; calling that function again changes nothing. Several calls
        of `reach_threads` may be open at once.
        """
        hold = object()
        with _lock:
            _holds[hold] = self
            _replace_start()

        def end() -> None:
            with _lock:
                _holds.pop(hold, None)
                if not _holds:
                    _restore_start()

        return end

    def note_starter(self, thread: threading.Thread) -> None:
        """Give a thread the value of the running code, which starts it."""
        value = self.get()
        if value is not None:
            self._of_threads[thread] = value


_lock = threading.Lock()  # of `_holds`, and of `threading.Thread.start`
_holds: dict[object, Inherited[Any]] = {}  # one for each `reach_threads` that has not ended
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
            variable.note_starter(thread)
        start(thread)

    setattr(begin, _BELOW, start)
    setattr(begin, _ITSELF, begin)
    threading.Thread.start = begin  # type: ignore[method-assign, assignment]


def _restore_start() -> None:
    """Take our `start` away, unless other code has replaced it."""
    if (below := _find_start_below()) is not None:
        threading.Thread.start = below  # type: ignore[method-assign, assignment]
