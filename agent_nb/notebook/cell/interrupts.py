"""The SIGINT handler of a running cell: "interrupt the kernel" stops the run, whatever runs.

Why: while an async cell waits, Python's own handler would raise KeyboardInterrupt into the event
loop, which kills the kernel; ipykernel's handler never reaches blocking code. So a press only sets
a flag, except while the user's synchronous code runs: the exception is raised inside it.

Rules
- KeyboardInterrupt is raised only below a guard (`guard`, `guard_async`), which catches it.
- The innermost frame of our code or the user's decides. A press while our code runs inside the
  user's is raised when ours returns (`checkpoint`).
- Runs may overlap: the newest receives the press, and a run that ends removes only its own handler.
"""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Mapping
from types import CodeType, FrameType, TracebackType
from typing import Any

from .nudge import NUDGER

OURS = __name__.removesuffix("cell.interrupts")  # the prefix of our modules' names
# A module of this package that acts for the user (waits for an answer, evaluates expressions, reads
# data) sets this name to True: a press then interrupts it like the user's own code.
STAND_IN = "ACTS_FOR_USER"
KERNEL = "kernel interrupt"  # the source of a press by signal, in the log
DOUBLE_CLICK = 0.25  # s; a press sooner than this after the first one does not abandon the run


class Interrupts:
    """The interrupts of one cell; a context manager, within which its SIGINT handler is set.

    namespaces: the globals of the user's code. clock: returns the time in seconds. hand_on: pass
    each press by a signal on to the former handler, too. presses: the number of presses; the first
    stops the run. by: the source of the first one, "" before it. abandoned: a later press, not part
    of a double click, abandoned the run.
    """

    def __init__(
        self,
        *namespaces: Mapping[str, Any],
        hand_on: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.presses = 0
        self.by = ""
        self.abandoned = False
        self._namespaces = namespaces
        self._hand_on = hand_on
        self._clock = clock
        self._on_press: Callable[[], None] = lambda: None
        self._first = 0.0  # the time of the first press
        self._former: Any = None  # the handler that was set before
        self._thread = 0  # the id of the main thread while the handler is set
        self._lock = threading.Lock()
        self._job: object = None  # the latest job
        self._signalled: object = None  # the job whose signal (`break_job`) is not handled yet
        self._broken: object = None  # the latest job that `break_job` named
        self._deferred = False  # a press arrived in our code inside the user's: `checkpoint` raises
        self._in_guard = False  # the synchronous code of a job runs

    @property
    def stopped(self) -> bool:
        """True after the first press."""
        return self.presses > 0

    def listen(self, on_press: Callable[[], None]) -> None:
        """Call `on_press` after each press, in the signal handler too; replace the former one."""
        self._on_press = on_press

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            self._thread = threading.get_ident()
            self._former = signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        if not self._thread:
            return
        with self._lock:
            self._thread = 0
        # otherwise the handler of a newer run is set; when that run ends, it restores our handler,
        # which then removes itself and passes the signal on (`_handle`)
        if signal.getsignal(signal.SIGINT) == self._handle:
            signal.signal(signal.SIGINT, self._former_handler())

    def _former_handler(self) -> Any:
        """Return the former handler; Python's own for one outside Python, which reads as None."""
        return self._former if self._former is not None else signal.default_int_handler

    def press(self, by: str = KERNEL) -> None:
        """Count a press by a signal, a button or a cancellation; the log names it as `by`."""
        now = self._clock()
        self.by = self.by or by
        self._first = self._first if self.presses else now
        self.abandoned = self.abandoned or now - self._first >= DOUBLE_CLICK
        self.presses += 1
        self._on_press()

    def guard(self, job: object, function: Callable[[], Any]) -> tuple[Any, BaseException | None]:
        """Call `function`, the user's synchronous code of `job`; return its value and exception."""
        NUDGER.enter()
        # Python handles signals after calls and at backward jumps only, so none strikes between
        # the except clause and its return.
        try:
            self._job, self._in_guard, self._deferred = job, True, False
            if self._broken is job:
                raise KeyboardInterrupt  # noqa: TRY301  (the handler below makes it a value)
            return function(), None
        except BaseException as fault:  # KeyboardInterrupt must end here, below the event loop
            return None, fault
        finally:
            self._in_guard = self._deferred = False
            NUDGER.leave()

    async def guard_async(
        self, job: object, work: Coroutine[Any, Any, Any]
    ) -> tuple[Any, BaseException | None]:
        """Await `work`, which runs the user's code of `job`; return its value and exception."""
        NUDGER.enter()
        try:
            self._job, self._deferred = job, False
            if self._broken is job:
                work.close()
                raise KeyboardInterrupt  # noqa: TRY301  (the handler below makes it a value)
            return await work, None
        except BaseException as fault:  # as above; a cancellation is a result too
            return None, fault
        finally:
            self._deferred = False
            NUDGER.leave()

    def checkpoint(self) -> None:
        """Raise KeyboardInterrupt for a deferred press; call it before the user's code goes on."""
        if self._deferred and self._may_raise(sys._getframe(2)):  # noqa: SLF001  (the frame that called our caller)
            self._deferred = False
            raise KeyboardInterrupt

    def break_job(self, job: object) -> None:
        """Raise KeyboardInterrupt in `job`, now or as it begins; from any thread; no press."""
        # This thread writes `_broken`, then reads `_job`; a guard writes `_job`, then reads
        # `_broken`. So at least one of them sees what the other wrote, and the job is broken.
        self._broken = job
        with self._lock:
            if self._thread and self._job is job:
                self._signalled = job
                # sent to the main thread: its system call returns; on Windows it is only marked
                if hasattr(signal, "pthread_kill"):
                    signal.pthread_kill(self._thread, signal.SIGINT)
                else:
                    signal.raise_signal(signal.SIGINT)

    def _handle(self, signum: int, frame: FrameType | None) -> None:
        """Handle SIGINT: a press, or the signal of `break_job`."""
        # `__exit__` was called, but a newer handler restored this one or passes a press on to it
        if not self._thread:
            if signal.getsignal(signal.SIGINT) == self._handle:
                signal.signal(signal.SIGINT, self._former_handler())
            self._pass_on(signum, frame)
            return
        job, self._signalled = self._signalled, None
        if job is None:
            self.press()
            # Python's own handler would raise into the event loop
            if self._hand_on and self._former_handler() is not signal.default_int_handler:
                self._pass_on(signum, frame)
        elif job is not self._job:
            return  # the job ended meanwhile
        if self._may_raise(frame):
            raise KeyboardInterrupt

    def _pass_on(self, signum: int, frame: FrameType | None) -> None:
        former = self._former_handler()
        if callable(former):  # not SIG_IGN or SIG_DFL
            former(signum, frame)

    def _may_raise(self, frame: FrameType | None) -> bool:
        """Return whether KeyboardInterrupt may be raised in this frame (the rules above).

        The frames from here out to the guard decide: the user's code and the libraries that it
        calls may be interrupted, our code that it calls may not: then the press is deferred.
        """
        user = ours = False
        while frame is not None and frame.f_code not in _GUARDS:
            module = str(frame.f_globals.get("__name__", ""))
            stand_in = frame.f_globals.get(STAND_IN) is True
            user = user or stand_in or any(frame.f_globals is names for names in self._namespaces)
            # our code counts only further in than the user's: the user's code called it
            ours = not stand_in and (ours or (not user and module.startswith(OURS)))
            frame = frame.f_back
        # the frame is now the guard's, or None if no guard is active
        self._deferred = self._deferred or (frame is not None and ours)
        # within `guard`, frames of libraries alone count as the user's synchronous code too
        return frame is not None and not ours and (user or self._in_guard)


_GUARDS: frozenset[CodeType] = frozenset(
    {Interrupts.guard.__code__, Interrupts.guard_async.__code__}
)
