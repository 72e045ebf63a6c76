"""Capture or filter what the code of one context (`contextvars`) prints, and no other code.

Why: `contextlib.redirect_stdout` changes stdout for every thread. Here several tools and the user's
own code print at the same time, and tool output must pass the secret filter.

Rules
- The streams stay in place and only their `write` is replaced: code that holds a stream is captured
  too, and `print` of CPython up to 3.13, which holds no reference to its stream, cannot crash.
- Threads that captured code starts, and functions that it submits to a thread pool, belong to its
  capture. Once the capture has ended, they print to the streams.
- Text that a capture passes on to a stream is filtered as one text, so that a key in two writes is
  found. What C code and other processes write to file descriptors is not captured.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import partial
from typing import Any, Protocol

from ..host import Inherited
from ..wire import Redaction, Redactor

Write = Callable[[Any], Any]  # the `write` of a stream, or a function that takes its place


class Displays(Protocol):
    """Receives the displays of captured code (`call_displays` implements it)."""

    def format_value(self, value: Any, bundle: dict[str, Any]) -> dict[str, Any]:
        """Return the MIME bundle of a formatted value, with a chart as JSON."""

    def keep(self, bundle: dict[str, Any], key: str, *, update: bool) -> dict[str, Any] | None:
        """Keep a display for the call; return the bundle that the cell must display, or None."""

    def clear(self) -> None:
        """Forget the displays."""


class OutputCapture:
    """Sends what the entering context writes to stdout to `out`, to stderr to `err` (None: `out`).

    A context manager for one use. `through`: write to the streams as well, filtered by `redaction`.
    `displays`: receives displays (None: the cell displays them as usual).
    """

    def __init__(
        self,
        out: Write,
        err: Write | None = None,
        *,
        through: bool = False,
        redaction: Redaction | None = None,
        displays: Displays | None = None,
    ) -> None:
        self.displays = displays
        self.out, self.err, self.open = out, err or out, True
        self.redaction = redaction
        self._through = through
        # id of a stream's `write` -> the `write`, kept so that no id is reused, and its filter
        self._filters: dict[int, tuple[Write, Redactor]] = {}
        self._writing = threading.RLock()

    def __enter__(self) -> OutputCapture:
        self._token = _entered.set(self)
        self._leave_threads = _entered.reach_threads()
        _install(self)
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()
        _remove(self)
        self._leave_threads()
        with suppress(ValueError):  # an abandoned coroutine is closed in another context
            _entered.reset(self._token)

    @staticmethod
    def current() -> OutputCapture | None:
        """Return the open capture of the running context, None if there is none."""
        capture = _entered.get()
        return capture if capture is not None and capture.open else None

    @staticmethod
    def hook(owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        """Have each capture that opens from now on replace a method of a shell by `make(method)`.

        The method comes back when no capture is open. Hooking twice changes nothing.
        """
        with _lock:
            if not any(known is owner and name == other for known, other, _ in _hooks):
                _hooks.append((owner, name, make))

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

        Restoring does nothing if other code has replaced the attribute meanwhile. Raises
        AttributeError if the object accepts no attributes.
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
        """Write `text`, filtered, by the `write` of a stream, if the capture writes `through`."""
        if not self._through:
            return
        if self.redaction is None:
            write(text)
            return
        with self._writing:
            if not self.open:  # it has ended since the code wrote: no filter may hold text back
                write(self.redaction.value(text))
                return
            _, stream_filter = self._filters.setdefault(id(write), (write, self.redaction.stream()))
            write(stream_filter.feed(text))

    def close(self) -> None:
        """End the capture and write what the filters held back."""
        with self._writing:
            self.open = False
            for write, stream_filter in self._filters.values():
                if text := stream_filter.close():
                    with suppress(Exception):  # the code may have closed the stream
                        write(text)


_entered: Inherited[OutputCapture] = Inherited("agent_nb_output")
_shown: ContextVar[bool] = ContextVar("agent_nb_shown", default=False)
_lock = threading.Lock()  # of the three lists below
if hasattr(os, "register_at_fork"):  # in a forked child nothing frees a held lock
    os.register_at_fork(after_in_child=_lock._at_fork_reinit)  # type: ignore[attr-defined]  # noqa: SLF001
_open: list[OutputCapture] = []
_hooks: list[tuple[Any, str, Callable[[Any], Any]]] = []  # methods of shells that are also replaced
_restore: list[Callable[[], None]] = []  # undo each `_replace`, once no capture is open


def _install(capture: OutputCapture) -> None:
    """Open a capture; replace what is not replaced yet: `submit`, hooked methods, `write`."""
    with _lock:
        if not _open:
            _replace(ThreadPoolExecutor, "submit", _capturing_submit)
        _open.append(capture)
        # at each capture: code may have put another stream or method in place
        for owner, name, make in _hooks:
            _replace(owner, name, make)
        _replace(sys.stdout, "write", partial(_capturing_write, "out"))
        _replace(sys.stderr, "write", partial(_capturing_write, "err"))


def _remove(capture: OutputCapture) -> None:
    """Take a capture off the list; after the last one, restore all replaced attributes."""
    with _lock:
        _open.remove(capture)
        while not _open and _restore:
            _restore.pop()()


def _replace(owner: Any, name: str, make: Callable[[Any], Any]) -> None:
    """Replace an attribute by `make(attribute)` until `_remove`, unless it is replaced already."""
    if getattr(getattr(owner, "__dict__", {}).get(name), "agent_nb", False):
        return
    replacement = make(getattr(owner, name, None))
    replacement.agent_nb = True
    with suppress(AttributeError):  # no stream, or one that accepts no attributes: not captured
        _restore.append(OutputCapture.replace_attribute(owner, name, replacement))


def _capturing_write(field: str, write: Write) -> Write:
    """Return a `write` that sends text to `field` (`out` or `err`) of its context's capture."""

    def write_captured(text: Any) -> Any:
        if not isinstance(text, str):
            return write(text)
        capture = OutputCapture.current()
        if capture is None:
            for other in tuple(_open):  # no secret of theirs may pass, either
                text = text if other.redaction is None else other.redaction.value(text)
            return write(text)
        getattr(capture, field)(text)
        capture.pass_on(write, text)
        return len(text)

    return write_captured


def _capturing_submit(submit: Callable[..., Any]) -> Callable[..., Any]:
    """Return a `submit` that gives the function the capture of its caller."""

    def submit_captured(
        pool: ThreadPoolExecutor, function: Callable[..., Any], /, *args: Any, **options: Any
    ) -> Any:
        if (capture := OutputCapture.current()) is not None:
            function = partial(_run_captured, capture, function)
        return submit(pool, function, *args, **options)

    return submit_captured


def _run_captured(
    capture: OutputCapture, function: Callable[..., Any], /, *args: Any, **options: Any
) -> Any:
    """Call `function`, on any thread of a pool, so that its output goes to `capture`."""
    token = _entered.set(capture)
    try:
        return function(*args, **options)
    finally:
        _entered.reset(token)
