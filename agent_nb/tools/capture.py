"""Catch what code prints, for the code of one context only.

Why: `contextlib.redirect_stdout` changes stdout for every thread; here several tools and the user's own prints go on at the same time.

Rules
- The proxy is in place while somebody captures; a write goes to the capture of the writing context, else to the real stream.
- Threads that the code starts have no capture and print where they always did.
- A proxy, once made, is kept for good: `print` of CPython up to 3.13 holds no reference to the stream it writes to, and crashes
  when another thread's restoring of stdout frees it.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

_sink: ContextVar[Callable[[str], None] | None] = ContextVar("agent_nb_output", default=None)
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
        sink(str(text))
        return len(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


_proxies: dict[int, _Proxy] = {}  # by id of the stream, which its proxy keeps alive


@contextmanager
def captured(sink: Callable[[str], None]) -> Iterator[None]:
    """Send what this context writes to stdout and stderr to `sink`."""
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
