"""Capture or filter what code prints, for the code of one context only.

Why: `contextlib.redirect_stdout` changes stdout for every thread. Here several tools and the user's
own code print at the same time, and a logging handler keeps writing to the stream it was created
with. Tool output may be saved with the cell, so it passes the secret filter.

Rules
- While a capture is open, `write` of stdout and stderr goes to the capture of the writing context,
  or to the stream itself if that context has none.
- The streams stay in place and only their `write` is replaced. So code that holds a stream is
  captured too, and `print` of CPython up to 3.13, which holds no reference to its stream, cannot
  crash because another thread restored one.
- Threads that captured code starts, and functions it submits to a thread pool, belong to its
  capture. Once the code has ended they print to the streams.
- Text that a capture passes on to the streams is filtered across writes. While a capture has a
  filter, other writes pass it one by one.
- Not captured: what C code writes to file descriptors, and other processes.
"""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any

from ..wire import Redaction, Redactor

Write = Callable[[Any], Any]


class OutputCapture:
    """Sends what the entering context writes to stdout to `out`, to stderr to `err` (None: `out`).

    A context manager for one use. `through`: to the streams as well. `redaction`: the secret filter
    for what goes there.
    """

    def __init__(
        self,
        out: Write,
        err: Write | None = None,
        *,
        through: bool = False,
        redaction: Redaction | None = None,
    ) -> None:
        self.out, self.err, self.open = out, err or out, True
        self.redaction = redaction
        self._through = through
        self._filters: dict[int, tuple[Write, Redactor]] = {}
        self._writing = threading.RLock()

    def __enter__(self) -> OutputCapture:
        self._token = _mine.set(self)
        _install(self)
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()
        _remove(self)
        with suppress(ValueError):  # an abandoned coroutine is closed in another context
            _mine.reset(self._token)

    @staticmethod
    def current() -> OutputCapture | None:
        """Return the open capture of the running context, None if there is none."""
        capture = _mine.get() or _threads.get(threading.current_thread())
        return capture if capture is not None and capture.open else None

    @staticmethod
    @contextmanager
    def mark_shown() -> Iterator[None]:
        """Mark the context as shown by a view, so that tool output need not go to the streams."""
        token = _shown.set(True)
        try:
            yield
        finally:
            _shown.reset(token)

    @staticmethod
    def is_shown() -> bool:
        """Return whether a view shows the tool output of this context."""
        return _shown.get()

    @staticmethod
    def replace_attribute(owner: Any, name: str, new: Any) -> Callable[[], None]:
        """Set an attribute and return a function that restores it.

        If other code has replaced the attribute meanwhile, restoring does nothing; `new` then
        passes everything through. Raises AttributeError if the object accepts no attributes.
        """
        own = getattr(owner, "__dict__", {}).get(name)
        setattr(owner, name, new)

        def restore() -> None:
            if vars(owner).get(name) is not new:
                return
            if own is None:
                delattr(owner, name)
            else:
                setattr(owner, name, own)

        return restore

    def pass_on(self, write: Write, text: str) -> None:
        """Write `text` to a stream, filtered, if the output goes there."""
        if not self._through:
            return
        if self.redaction is None:
            write(text)
            return
        with self._writing:
            _, passing = self._filters.setdefault(id(write), (write, self.redaction.stream()))
            write(passing.feed(text))

    def close(self) -> None:
        """End the capture and write what the filters held back."""
        self.open = False
        with self._writing:
            for write, passing in self._filters.values():
                if rest := passing.close():
                    write(rest)


_mine: ContextVar[OutputCapture | None] = ContextVar("agent_nb_output", default=None)
_shown: ContextVar[bool] = ContextVar("agent_nb_shown", default=False)
_threads: weakref.WeakKeyDictionary[threading.Thread, OutputCapture] = weakref.WeakKeyDictionary()
_lock = threading.Lock()
_open: list[OutputCapture] = []
_undo: list[Callable[[], None]] = []


def _install(capture: OutputCapture) -> None:
    with _lock:
        if not _open:
            _replace(threading.Thread, "start", _starting)
            _replace(ThreadPoolExecutor, "submit", _submitting)
        _open.append(capture)
        _replace(sys.stdout, "write", lambda write: _writing(write, lambda capture: capture.out))
        _replace(sys.stderr, "write", lambda write: _writing(write, lambda capture: capture.err))


def _remove(capture: OutputCapture) -> None:
    with _lock:
        _open.remove(capture)
        while not _open and _undo:
            _undo.pop()()


def _replace(owner: Any, name: str, make: Callable[[Any], Any]) -> None:
    """Replace an attribute by `make(attribute)` until `_remove`, once."""
    if getattr(getattr(owner, "__dict__", {}).get(name), "agent_nb", False):
        return
    replacement = make(getattr(owner, name, None))
    replacement.agent_nb = True
    with suppress(AttributeError):  # no stream, or one that accepts no attributes: not captured
        _undo.append(OutputCapture.replace_attribute(owner, name, replacement))


def _writing(write: Write, which: Callable[[OutputCapture], Write]) -> Write:
    def put(text: Any) -> Any:
        if not isinstance(text, str):
            return write(text)
        capture = OutputCapture.current()
        if capture is None:
            return write(_cleaned(text))
        which(capture)(text)
        capture.pass_on(write, text)
        return len(text)

    return put


def _cleaned(text: str) -> str:
    for capture in tuple(_open):
        text = text if capture.redaction is None else capture.redaction.value(text)
    return text


def _starting(start: Callable[[threading.Thread], None]) -> Callable[[threading.Thread], None]:
    def begin(thread: threading.Thread) -> None:
        capture = OutputCapture.current()
        if capture is not None:
            _threads[thread] = capture
        start(thread)

    return begin


def _submitting(submit: Callable[..., Any]) -> Callable[..., Any]:
    def give(
        pool: ThreadPoolExecutor, function: Callable[..., Any], /, *args: Any, **options: Any
    ) -> Any:
        capture = OutputCapture.current()
        return submit(
            pool, function if capture is None else _within(capture, function), *args, **options
        )

    return give


def _within(capture: OutputCapture, function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **options: Any) -> Any:
        token = _mine.set(capture)
        try:
            return function(*args, **options)
        finally:
            _mine.reset(token)

    return call
