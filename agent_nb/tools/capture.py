"""Catch or filter what code prints, for the code of one context only.

Why: `contextlib.redirect_stdout` changes stdout for every thread; here several tools and the user's own prints go on at the same time.
What a tool prints lands in the cell and is saved with it, so it passes the secret filter as everything else does.

Rules
- The proxy is in place while somebody captures; a write goes to the capture of the writing context, else to the real stream.
- Threads that the code starts have no capture and print where they always did. While prints are filtered, what they write and what
  goes to the stream past its proxy (a log handler) is filtered write by write. What a process writes may come later, and is not.
- A proxy, once made, is kept for good: `print` of CPython up to 3.13 holds no reference to the stream it writes to, and crashes
  when another thread's restoring of stdout frees it.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol

Sink = Callable[[Any, str], None]  # (the real stream, text)
Clean = Callable[[str], str]
_sink: ContextVar[Sink | None] = ContextVar("agent_nb_output", default=None)
_cleans: list[Clean] = []
_guards: dict[int, tuple[Any, Any]] = {}  # the streams whose `write` is replaced, and what was there if it was their own
_lock = threading.Lock()
_users = 0


class _Proxy:
    """Stands in for a text stream; everything but writing is the stream's own."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        sink = _sink.get()
        if sink is None:
            return int(self.stream.write(text) or 0)
        sink(self.stream, str(text))
        return len(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


_proxies: dict[int, _Proxy] = {}  # by id of the stream, which its proxy keeps alive


class Filter(Protocol):
    """A filter of one stream of text; it may hold back what it cannot decide yet."""

    def feed(self, text: str) -> str:
        """Return the text that may pass now."""

    def close(self) -> str:
        """Return what was held back."""


@contextmanager
def captured(sink: Callable[[str], None]) -> Iterator[None]:
    """Send what this context writes to stdout and stderr to `sink`."""
    with _sent(lambda _, text: sink(text)):
        yield


@contextmanager
def filtered(stream: Callable[[], Filter], clean: Clean) -> Iterator[None]:
    """Let what this context writes to stdout and stderr pass a filter each, made by `stream`; `clean` is for what others write."""
    filters: dict[int, tuple[Any, Filter]] = {}
    lock = threading.Lock()

    def write(real: Any, text: str) -> None:
        with lock:
            _, passing = filters.setdefault(id(real), (real, stream()))
            real.write(passing.feed(text))

    with _guarded(clean), _sent(write):
        try:
            yield
        finally:
            for real, passing in filters.values():
                if rest := passing.close():
                    real.write(rest)


@contextmanager
def _guarded(clean: Clean) -> Iterator[None]:
    """Clean every write to the real streams themselves, where their `write` can be replaced (a kernel's can)."""
    with _lock:
        _cleans.append(clean)
        for stream in (sys.stdout, sys.stderr):
            real: Any = stream.stream if isinstance(stream, _Proxy) else stream
            if id(real) not in _guards and hasattr(real, "__dict__"):
                _guards[id(real)] = (real, vars(real).get("write"))
                real.write = _cleaned(real.write)
    try:
        yield
    finally:
        with _lock:
            _cleans.remove(clean)
            while not _cleans and _guards:
                _, (real, own) = _guards.popitem()
                if own is None:
                    del real.write
                else:
                    real.write = own


def _cleaned(write: Callable[[str], Any]) -> Callable[[str], Any]:
    def cleaned(text: str) -> Any:
        for clean in tuple(_cleans):
            text = clean(text)
        return write(text)

    return cleaned


@contextmanager
def _sent(sink: Sink) -> Iterator[None]:
    token = _sink.set(sink)
    _install()
    try:
        yield
    finally:
        _remove()
        _sink.reset(token)


def _install() -> None:
    global _users  # noqa: PLW0603  (as global as the streams that it counts for)
    with _lock:
        _users += 1
        for name in ("stdout", "stderr"):
            if not isinstance(getattr(sys, name), _Proxy):
                setattr(sys, name, _proxy(getattr(sys, name)))


def _proxy(stream: Any) -> _Proxy:
    return _proxies.setdefault(id(stream), _Proxy(stream))


def _remove() -> None:
    global _users  # noqa: PLW0603
    with _lock:
        _users -= 1
        for name in ("stdout", "stderr"):
            stream = getattr(sys, name)
            if not _users and isinstance(stream, _Proxy):
                setattr(sys, name, stream.stream)
