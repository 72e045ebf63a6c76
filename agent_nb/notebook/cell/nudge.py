"""A nudge for the main thread after each SIGINT, so that no press of the stop button is lost.

Why: if a signal arrives just after Python checked for signals and just before a blocking system
call, its handler runs only when that call returns: interrupting `time.sleep(60)` then takes 60 s. A
signal that another thread receives has the same effect. So while the user's code runs
(`Interrupts.guard`), Python writes each signal to a socket (`signal.set_wakeup_fd`); a thread reads
it and sends `NUDGE` to the main thread, whose system call returns.

Rule: other code may have set a wakeup descriptor before. While jobs run, we copy to it every signal
but our nudges; when the last job leaves, Python writes to it again. If its owner closes it, its
number may stand for another file: we never write to that.
"""

from __future__ import annotations

import os
import signal
import socket
import threading
from contextlib import suppress
from typing import NamedTuple

NUDGE = getattr(signal, "SIGURG", None)  # ignored by default and rarely used; missing on Windows
# seconds to wait before each of the two nudges: on a busy machine the first may be too early, too
NUDGE_AFTER = (0.1, 0.4)


class Nudger:
    """The nudges of this process. Each job of the user's code enters and leaves on one thread."""

    def __init__(self) -> None:
        self._jobs = 0
        self._watching = False
        self._process = 0  # the id of the process that has the thread and the sockets
        self._pair: tuple[socket.socket, socket.socket] | None = None  # to read, to write
        self._round = _Round(-1, None, threading.Event())
        self._lock = threading.Lock()  # a nudge is sent before its round ends, or not at all

    def enter(self) -> None:
        """Count a job in; the first job begins to watch the signals."""
        if threading.current_thread() is not threading.main_thread():
            return
        self._jobs += 1
        if self._jobs > 1 or NUDGE is None or signal.getsignal(NUDGE) is not signal.SIG_DFL:
            return
        writing = self._open_sockets(NUDGE)
        signal.signal(NUDGE, lambda *_: None)
        former = signal.set_wakeup_fd(writing.fileno(), warn_on_full_buffer=False)
        self._round = _Round(former, _stat(former), threading.Event())
        self._watching = True

    def leave(self) -> None:
        """End the watch and restore the former settings when the last job leaves."""
        if threading.current_thread() is not threading.main_thread():
            return
        self._jobs -= 1
        if self._jobs or not self._watching or self._pair is None or NUDGE is None:
            return
        reading, writing = self._pair
        former = self._round.find_former()
        try:
            current = signal.set_wakeup_fd(former)
        except (OSError, ValueError):  # its owner closed it just now, or made it blocking
            current = signal.set_wakeup_fd(-1)
        if current not in {writing.fileno(), -1}:  # other code set its own meanwhile
            with suppress(OSError, ValueError):
                signal.set_wakeup_fd(current)
        with self._lock:
            if self._process == os.getpid():  # a forked child leaves them to its parent
                _copy_signals(reading, former, NUDGE)
            self._round.ended.set()
        signal.signal(NUDGE, signal.SIG_DFL)
        self._watching = False

    def _open_sockets(self, nudge: int) -> socket.socket:
        """Return the socket that Python writes signals to, and start its reader if none runs."""
        if self._pair is None or self._process != os.getpid():
            self._pair = socket.socketpair()
            self._pair[1].setblocking(False)
            self._process = os.getpid()
            threading.Thread(
                target=self._watch,
                args=(self._pair[0], threading.get_ident(), nudge),
                name="agent_nb nudge",
                daemon=True,
            ).start()
        return self._pair[1]

    def _watch(self, signals: socket.socket, main: int, nudge: int) -> None:
        """Send `nudge` to the thread `main` after each SIGINT, and copy all other signals."""
        while signals.recv(1, socket.MSG_PEEK):  # waits; `_copy_signals` takes the byte
            with self._lock:
                current = self._round
                numbers = _copy_signals(signals, current.find_former(), nudge)
            if signal.SIGINT not in numbers:
                continue
            for seconds in NUDGE_AFTER:
                current.ended.wait(seconds)
                with self._lock:
                    if current.ended.is_set():
                        break
                    signal.pthread_kill(main, nudge)


class _Round(NamedTuple):
    """The time from the first job's entry until the last job leaves."""

    former: int  # the wakeup descriptor that was set before, -1: none
    file: os.stat_result | None  # its file; None if it was closed
    ended: threading.Event

    def find_former(self) -> int:
        """Return the former descriptor, -1 if it does not stand for the same file any more."""
        now = _stat(self.former)
        same = self.file is not None and now is not None and os.path.samestat(self.file, now)
        return self.former if same else -1


def _stat(descriptor: int) -> os.stat_result | None:
    try:
        return os.fstat(descriptor)
    except OSError:
        return None


def _copy_signals(signals: socket.socket, former: int, nudge: int) -> bytes:
    """Read the signals that have come; write all but nudges to the descriptor `former` (-1: none).

    The caller has the lock, and its round has not ended.
    """
    try:
        numbers = signals.recv(64, socket.MSG_DONTWAIT)
    except BlockingIOError:
        return b""
    foreign = numbers.replace(bytes([nudge]), b"")
    if former != -1 and foreign:
        with suppress(OSError):  # full: its owner misses the signal
            os.write(former, foreign)
    return numbers


NUDGER = Nudger()
