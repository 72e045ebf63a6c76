"""Catch or filter what code prints, for the code of one context only.

Why: `contextlib.redirect_stdout` changes stdout for every thread; here several tools and the user's
own prints go on at the same time, and a logging handler keeps writing to the stream that it was
made with. What a tool prints may be saved with the cell, so it passes the secret filter as
everything else does.

Rules
- While somebody captures, the `write` of stdout and stderr goes to the capture of the writing
  context, else where it always went.
- The streams themselves stay in place: whoever holds one is heard too, and `print` of CPython up to
  3.13, which holds no reference to the stream it writes to, does not crash because another thread
  has put one back.
- Threads that captured code starts, and what it gives to a pool of threads, belong to its capture.
  When the code has ended they print where they always did.
- What a capture passes on to the streams goes through the secret filter, in whatever pieces it is
  printed; while a capture has a filter, what others write passes it write by write.
- Not seen: what C code writes to the file descriptors, and other processes.
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

from ..wire.redact import Redaction, Redactor

Write = Callable[[Any], Any]


class _Capture:
    """Where the prints of one piece of code go: stdout to `out`, stderr to `err`, and to the
    streams too if `through`.
    """

    def __init__(
        self, out: Write, err: Write, redaction: Redaction | None, *, through: bool
    ) -> None:
        self.out, self.err, self.open = out, err, True
        self.redaction = redaction
        self._through = through
        self._filters: dict[int, tuple[Write, Redactor]] = {}
        self._writing = threading.RLock()

    def pass_on(self, write: Write, text: str) -> None:
        """Write to a stream what of `text` may go there."""
        if not self._through:
            return
        if self.redaction is None:
            write(text)
            return
        with self._writing:
            _, passing = self._filters.setdefault(id(write), (write, self.redaction.stream()))
            write(passing.feed(text))

    def close(self) -> None:
        """The code is over: write what was held back."""
        self.open = False
        with self._writing:
            for write, passing in self._filters.values():
                if rest := passing.close():
                    write(rest)


_mine: ContextVar[_Capture | None] = ContextVar("agent_nb_output", default=None)
_shown: ContextVar[bool] = ContextVar("agent_nb_shown", default=False)
_threads: weakref.WeakKeyDictionary[threading.Thread, _Capture] = weakref.WeakKeyDictionary()
_lock = threading.Lock()
_open: list[_Capture] = []
_undo: list[Callable[[], None]] = []


@contextmanager
def captured(
    out: Write,
    err: Write | None = None,
    *,
    through: bool = False,
    redaction: Redaction | None = None,
) -> Iterator[None]:
    """Send what this context writes to stdout to `out`, and to stderr to `err` (None: to `out`
    too).

    `through`: to the streams as well. `redaction`: the secret filter of what goes there.
    """
    capture = _Capture(out, err or out, redaction, through=through)
    token = _mine.set(capture)
    _install(capture)
    try:
        yield
    finally:
        capture.close()
        _remove(capture)
        with suppress(ValueError):  # a coroutine that is left behind is closed in another context
            _mine.reset(token)


@contextmanager
def shown() -> Iterator[None]:
    """Say that a view shows what tools print that run in this context: it need not go to the
    streams as well.
    """
    token = _shown.set(True)
    try:
        yield
    finally:
        _shown.reset(token)


def is_shown() -> bool:
    """Return whether a view shows what tools of this context print."""
    return _shown.get()


def say(text: str) -> bool:
    """Give `text` to the capture of this context, as stderr; return False if there is none."""
    capture = _current()
    if capture is not None:
        capture.err(text)
    return capture is not None


def _current() -> _Capture | None:
    capture = _mine.get() or _threads.get(threading.current_thread())
    return capture if capture is not None and capture.open else None


def _install(capture: _Capture) -> None:
    with _lock:
        if not _open:
            _replace(threading.Thread, "start", _starting)
            _replace(ThreadPoolExecutor, "submit", _submitting)
        _open.append(capture)
        _replace(sys.stdout, "write", lambda write: _writing(write, lambda capture: capture.out))
        _replace(sys.stderr, "write", lambda write: _writing(write, lambda capture: capture.err))


def _remove(capture: _Capture) -> None:
    with _lock:
        _open.remove(capture)
        while not _open and _undo:
            _undo.pop()()


def _replace(owner: Any, name: str, make: Callable[[Any], Any]) -> None:
    """Put what `make` makes of an attribute in its place until `_remove`, once."""
    own = getattr(owner, "__dict__", {}).get(name)
    if getattr(own, "agent_nb", False):
        return
    made = make(getattr(owner, name, None))
    made.agent_nb = True
    try:
        setattr(owner, name, made)
    except AttributeError:  # a stream that takes no attributes, or none at all: it is not heard
        return

    def put_back() -> None:
        if owner.__dict__.get(name) is not made:
            # somebody has replaced it meanwhile: then it is theirs, and ours passes everything
            # through
            return
        if own is None:
            delattr(owner, name)
        else:
            setattr(owner, name, own)

    _undo.append(put_back)


def _writing(write: Write, which: Callable[[_Capture], Write]) -> Write:
    def put(text: Any) -> Any:
        if not isinstance(text, str):
            return write(text)
        capture = _current()
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
        capture = _current()
        if capture is not None:
            _threads[thread] = capture
        start(thread)

    return begin


def _submitting(submit: Callable[..., Any]) -> Callable[..., Any]:
    def give(
        pool: ThreadPoolExecutor, function: Callable[..., Any], /, *args: Any, **options: Any
    ) -> Any:
        capture = _current()
        return submit(
            pool, function if capture is None else _within(capture, function), *args, **options
        )

    return give


def _within(capture: _Capture, function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **options: Any) -> Any:
        token = _mine.set(capture)
        try:
            return function(*args, **options)
        finally:
            _mine.reset(token)

    return call
