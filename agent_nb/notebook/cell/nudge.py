"""A nudge for the main thread after each SIGINT, so that no press of the stop button is lost.

Why: if a signal arrives just after Python checked for signals and just before a blocking system
call, its handler runs only when that call returns: interrupting `time.sleep(60)` then takes 60 s. A
signal that another thread receives has the same effect.

Rules
- Python writes each signal to a socket at once (`signal.set_wakeup_fd`). A thread reads it and
  shortly after sends `NUDGE` to the main thread. The handler of `NUDGE` does nothing, but the
  system call returns, and Python runs the pending handlers.
- An unneeded nudge is harmless. A wakeup descriptor that was set before still receives every
  signal.
- Only the user's code is watched (`Interrupts.guard`); nothing else blocks the main thread.
- The last job ends the thread, so no nudge comes later, and restores the wakeup descriptor and the
  handler. Outside the main thread, or where `NUDGE` is missing or already handled, nothing happens.
"""

from __future__ import annotations

import os
import signal
import socket
import threading
from contextlib import suppress

NUDGE = getattr(signal, "SIGURG", None)  # ignored by default and rarely used; missing on Windows
# s between nudges; on a busy machine the first may come before the system call too
AFTER = (0.1, 0.4)


class Nudger:
    """The nudges of this process. Each job of the user's code enters and leaves on one thread."""

    def __init__(self) -> None:
        self._users = 0
        self._old_fd = -1
        self._writing: socket.socket | None = None
        self._watcher: threading.Thread | None = None
        self._ended = threading.Event()

    def enter(self) -> None:
        """Begin to watch the signals, unless another job does."""
        if threading.current_thread() is not threading.main_thread():
            return
        self._users += 1
        if self._users > 1 or NUDGE is None or signal.getsignal(NUDGE) is not signal.SIG_DFL:
            return
        reading, writing = socket.socketpair()
        writing.setblocking(False)
        self._writing = writing
        signal.signal(NUDGE, lambda *_: None)
        self._old_fd = signal.set_wakeup_fd(writing.fileno(), warn_on_full_buffer=False)
        self._ended = threading.Event()
        self._watcher = threading.Thread(
            target=_watch,
            args=(reading, self._old_fd, threading.get_ident(), NUDGE, self._ended),
            name="agent_nb nudge",
            daemon=True,
        )
        self._watcher.start()

    def leave(self) -> None:
        """End the watch and restore the former settings when the last job leaves."""
        if threading.current_thread() is not threading.main_thread():
            return
        self._users -= 1
        if self._users or self._writing is None or NUDGE is None:
            return
        now = signal.set_wakeup_fd(self._old_fd)
        if now not in {self._writing.fileno(), -1}:  # other code set its own meanwhile
            signal.set_wakeup_fd(now)
        signal.signal(NUDGE, signal.SIG_DFL)
        self._ended.set()
        self._writing.close()
        if self._watcher is not None:
            self._watcher.join(1)
        self._writing = self._watcher = None


def _watch(
    signals: socket.socket, old_fd: int, main: int, nudge: int, ended: threading.Event
) -> None:
    """Send `nudge` to the thread `main` after each SIGINT until the socket closes or `ended`.

    All signals are copied to `old_fd`.
    """
    with signals:
        while numbers := signals.recv(64):
            if old_fd != -1:
                with suppress(OSError):
                    os.write(old_fd, numbers)
            if signal.SIGINT not in numbers:
                continue
            for seconds in AFTER:
                if ended.wait(seconds):
                    break
                signal.pthread_kill(main, nudge)


NUDGER = Nudger()
