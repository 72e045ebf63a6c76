"""One SIGINT handler over a cell: "interrupt the kernel" stops the run, wherever the main thread
happens to be.

Why: while an async cell waits, Python's own handler would raise KeyboardInterrupt into the event
loop, which kills the kernel, and ipykernel's cancels the cell between two awaits but never reaches
code that blocks. Here a press only sets a flag, unless the user's own synchronous code is what
runs; then KeyboardInterrupt is raised inside it, and nowhere else.

Rules
- KeyboardInterrupt is raised only under a guard (`guard`, `guard_async`), which catches it; never
  into an event loop.
- The frame that was interrupted decides: from the innermost outwards, code of this package means
  "only the flag", the user's namespace below a guard means "raise". Code that a stand-in calls
  counts as the user's.
- A job that is broken before it starts does not start.
- A press that met our own code inside the user's (a captured `print`) is raised when that code
  returns (`checkpoint`).
- The first press asks to stop; a further one, unless it is part of a double click, says: abandon
  the run. `break_job` interrupts one job without a press.
- Runs may overlap (a button's and a cell's): the newest hears the press, and whoever leaves takes
  only its own handler away. Where each of several must hear it (awaited runs of one cell), the
  newest hands it on to the handler below.
- A signal that comes too late to break a system call is handled after a nudge (`nudge.py`).
- Outside the main thread no handler can be set; then only `press` counts.
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

OURS = "agent_nb.notebook."
# Modules of ours that do the user's work: wait for the user's answer, compute the user's
# expressions.
STAND_INS = frozenset(
    {
        "agent_nb.notebook.cell.approvals",
        "agent_nb.notebook.interpolate",
        "agent_nb.notebook.cell.trusting",
    }
)
KERNEL = "kernel interrupt"
DOUBLE = 0.25  # s; presses closer to the first one than this are one press


class Interrupts:
    """The interrupts of one cell. A context manager; enter and leave it on the thread of the cell.

    `namespaces` are the globals of the user's code; `hand_on`: the handler below hears each press
    too; `clock` gives seconds. `presses` counts the presses, `by` says what the first was,
    `abandoned` whether a later one gave the run up.
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
        self._hears: Callable[[], None] = lambda: None
        self._first = 0.0
        self._old: Any = None
        self._thread = 0
        self._lock = threading.Lock()
        self._job: object = None
        self._victim: object = None
        self._broken: object = None
        self._deferred = False
        self._in_guard = False

    @property
    def stopped(self) -> bool:
        """True after the first press."""
        return self.presses > 0

    def listen(self, hears: Callable[[], None]) -> None:
        """Call `hears` after each press from now on, from the signal handler too; the latest
        listener counts.
        """
        self._hears = hears

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            self._thread = threading.get_ident()
            self._old = signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        if not self._thread:
            return
        with self._lock:
            self._thread = 0
        # else somebody came after us, and puts us back when they leave
        if signal.getsignal(signal.SIGINT) == self._handle:
            signal.signal(signal.SIGINT, self._below())

    def _below(self) -> Any:
        """Return the handler before ours; one set outside Python reads as None and cannot be put
        back.
        """
        return self._old if self._old is not None else signal.default_int_handler

    def press(self, by: str = KERNEL) -> None:
        """Count a press, also one that came another way (a button, a cancellation of the cell's
        task). `by`: what the log says.
        """
        now = self._clock()
        self.by = self.by or by
        self._first = self._first if self.presses else now
        self.abandoned = self.abandoned or now - self._first >= DOUBLE
        self.presses += 1
        self._hears()

    def guard(self, job: object, function: Callable[[], Any]) -> tuple[Any, BaseException | None]:
        """Call `function` as the user's synchronous code of `job`; return its value and what it
        raised.
        """
        NUDGER.enter()
        # Signals are handled after calls and at backward jumps only: none strikes between the
        # handler and its end.
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
        """Await `work`, which runs the user's code of `job`; return its value and what
        it raised.
        """
        NUDGER.enter()
        try:
            self._job, self._deferred = job, False
            if self._broken is job:
                work.close()
                raise KeyboardInterrupt  # noqa: TRY301  (the handler below makes it a value)
            return await work, None
        except BaseException as fault:  # as above; a cancellation is also an answer
            return None, fault
        finally:
            self._deferred = False
            NUDGER.leave()

    def checkpoint(self) -> None:
        """Raise the KeyboardInterrupt that met our own code inside the user's; call it just before
        returning there.
        """
        if self._deferred and self._may_raise(sys._getframe(2)):  # noqa: SLF001  (the frame that called our caller)
            self._deferred = False
            raise KeyboardInterrupt

    def break_job(self, job: object) -> None:
        """Raise KeyboardInterrupt in the synchronous code of `job` if that is what runs, or before
        it begins; from any thread.
        """
        # written before `_job` is read; a guard writes `_job`, then reads this: one of both sees
        # the other
        self._broken = job
        with self._lock:
            if self._thread and self._job is job:
                self._victim = job
                _signal_thread(self._thread)

    def _handle(self, signum: int, frame: FrameType | None) -> None:
        # we have left, and somebody who came after us put us back, or hands on to us
        if not self._thread:
            if signal.getsignal(signal.SIGINT) == self._handle:
                signal.signal(signal.SIGINT, self._below())
            self._pass_on(signum, frame)
            return
        victim, self._victim = self._victim, None
        if victim is None:
            self.press()
            # which would raise into the event loop
            if self._hand_on and self._below() is not signal.default_int_handler:
                self._pass_on(signum, frame)
        elif victim is not self._job:
            return
        if self._may_raise(frame):
            raise KeyboardInterrupt

    def _pass_on(self, signum: int, frame: FrameType | None) -> None:
        below = self._below()
        if callable(below):
            below(signum, frame)

    def _may_raise(self, frame: FrameType | None) -> bool:
        user = ours = False
        while frame is not None and frame.f_code not in _GUARDS:
            module = str(frame.f_globals.get("__name__", ""))
            stand_in = module in STAND_INS
            user = user or stand_in or any(frame.f_globals is names for names in self._namespaces)
            ours = not stand_in and (ours or (not user and module.startswith(OURS)))
            frame = frame.f_back
        self._deferred = self._deferred or (frame is not None and ours)
        return frame is not None and not ours and (user or self._in_guard)


_GUARDS: frozenset[CodeType] = frozenset(
    {Interrupts.guard.__code__, Interrupts.guard_async.__code__}
)


def _signal_thread(ident: int) -> None:
    """Send SIGINT to one thread so that its blocking system call returns; where that is impossible,
    mark it pending.
    """
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(ident, signal.SIGINT)
    else:
        signal.raise_signal(signal.SIGINT)
