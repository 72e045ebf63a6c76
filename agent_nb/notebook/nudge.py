"""A nudge for the main thread after each SIGINT, so that no press of the stop button is lost.

Why: a signal that comes between Python's last look at its signals and a blocking system call is noticed only when that call
returns: an interrupt of `time.sleep(60)` then takes 60 s. The same holds for a signal that another thread of the process took.

Rules
- Python writes each signal to a socket at once (`signal.set_wakeup_fd`); a thread reads it and, a little later, sends the main thread
  `NUDGE`. Its handler does nothing, but the system call returns, and Python runs the handlers that wait.
- A nudge that was not needed changes nothing. Who read the signals before still gets them.
- Nothing is left behind: the last one that leaves puts back what was there. Where threads cannot be signalled, nothing is done.
"""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from contextlib import suppress
from typing import Any

NUDGE = getattr(signal, "SIGURG", None)  # ignored by default, and used by hardly any program
AFTER = (0.1, 0.4)  # s; the second one is for a machine so busy that the first came too early too


class Nudger:
    """The nudges of this process; entered by each run that listens to SIGINT, on the main thread."""

    def __init__(self) -> None:
        self._users = 0
        self._main = 0
        self._old_fd = -1
        self._old_handler: Any = None
        self._ends: tuple[socket.socket, socket.socket] | None = None

    def enter(self) -> None:
        """Begin to watch, unless a run does already."""
        self._users += 1
        if self._users > 1 or NUDGE is None or signal.getsignal(NUDGE) is not signal.SIG_DFL:
            return
        self._main = threading.get_ident()
        self._ends = ours, theirs = socket.socketpair()
        theirs.setblocking(False)
        self._old_handler = signal.signal(NUDGE, lambda *_: None)
        self._old_fd = signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False)
        threading.Thread(target=_watch, args=(ours, self._old_fd, self._main), name="agent_nb nudge", daemon=True).start()

    def leave(self) -> None:
        """Put everything back when the last run leaves."""
        self._users -= 1
        if self._users or self._ends is None:
            return
        (_, theirs), self._ends = self._ends, None
        now = signal.set_wakeup_fd(self._old_fd)
        if now not in {theirs.fileno(), -1}:  # set by code that ran meanwhile, and still wanted
            signal.set_wakeup_fd(now)
        signal.signal(signal.Signals(NUDGE or 0), self._old_handler)
        theirs.close()


def _watch(signals: socket.socket, old_fd: int, main: int) -> None:
    """Nudge the thread `main` after each SIGINT until the other end is closed; hand everything on to `old_fd`."""
    with signals:
        while numbers := signals.recv(64):
            if old_fd != -1:
                with suppress(OSError):
                    os.write(old_fd, numbers)
            if signal.SIGINT not in numbers:
                continue
            for seconds in AFTER:
                time.sleep(seconds)
                signal.pthread_kill(main, NUDGE or 0)


NUDGER = Nudger()
