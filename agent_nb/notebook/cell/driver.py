"""The awaited cell: the agent runs on its own thread and event loop while the cell awaits it.

Why: the kernel's thread must stay free for messages (clicks), for tools that need it and for
interrupts, and the agent must not depend on how a kernel runs its loop.

Rules
- The thread starts in a copy of the cell's context, so that its output lands in this cell. It is a
  daemon and ends before the cell, unless it is abandoned.
- The cell waits in ticks: an untimed await would not notice a kernel interrupt. A waiting job wakes
  it at once.
- The first interrupt cancels the work, a second one abandons it. A cancellation of the cell's task
  counts as an interrupt. Work that was interrupted before its start does not start.
- The signal handler cancels the work directly: after a tool that the interrupt ended, the model
  must not be called again first.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from ...errors import Cancelled, UsageError
from .interrupts import Interrupts
from .main_thread import MainThread

TICK = 0.05
LINGER = 0.1  # s; for the thread to close connections after its work


class Work:
    """What the driver runs: `run` on the agent's loop, `cancel` there at the first interrupt."""

    def __init__(
        self, run: Callable[[], Coroutine[Any, Any, None]], cancel: Callable[[], None]
    ) -> None:
        self._run, self._cancel = run, cancel

    async def run(self) -> None:
        """Do the work; what it raises is kept in `Driver.fault`."""
        await self._run()

    def cancel(self) -> None:
        """Ask the work to stop soon."""
        self._cancel()


class Driver:
    """One run of a cell. Make it in the cell, whose `interrupts` it hears.

    `host` gives tools the main thread; `clean` takes the secrets out of what their code displays.
    Raises UsageError when no asyncio loop runs here.
    """

    def __init__(
        self,
        shell: Any,
        interrupts: Interrupts,
        clean: Callable[[Any], Any] = lambda shown: shown,
    ) -> None:
        self._loop = _running_loop()
        self._woken = self._loop.create_future()
        self.interrupts = interrupts
        self.host = MainThread(shell, interrupts, self._wake, clean)
        self.abandoned = False
        self.fault: BaseException | None = None
        self._work: Work | None = None
        self._agent_loop: asyncio.AbstractEventLoop | None = None
        self._cancelled = False
        self._done = self._over = False  # the work is done; its thread has nothing left to do

    async def drive(self, make: Callable[[], Work]) -> None:
        """Make the work and run it to its end, or until it is abandoned.

        `make` is called on the cell's thread; the user's code in it can be interrupted. Raises only
        what `make` raises, and Cancelled if it was interrupted.
        """
        self.interrupts.listen(self._pressed)
        work, fault = self.interrupts.guard(self, make)
        # raised by the user's code, not by a press
        if isinstance(fault, KeyboardInterrupt) and not self.interrupts.stopped:
            self.interrupts.press()
        if isinstance(fault, KeyboardInterrupt | None) and self.interrupts.stopped:
            raise Cancelled("user", self.interrupts.by)
        if fault is not None:
            raise fault
        self._work = work
        thread = self._start(work)
        try:
            await self._serve(thread)
        finally:
            self.host.close()

    def stop(self, by: str = "stop button") -> None:
        """Interrupt the work, from any thread; the log names `by` as what stopped it."""
        self.interrupts.press(by)

    async def _serve(self, thread: threading.Thread) -> None:
        while not self._done:
            if self.interrupts.abandoned:
                self.abandoned = True
                return
            if self.interrupts.stopped:
                self._cancel()
            self.host.step()
            await self._wait()
        end = self._loop.time() + LINGER
        while not self._over and (left := end - self._loop.time()) > 0:
            await self._wait(left)
        if self._over:
            thread.join(LINGER)

    def _start(self, work: Work) -> threading.Thread:
        context = contextvars.copy_context()
        thread = threading.Thread(
            target=context.run, args=(self._agent, work), name="agent_nb run", daemon=True
        )
        thread.start()
        return thread

    def _agent(self, work: Work) -> None:
        """Run the work on a loop of this thread."""
        try:
            asyncio.run(self._to_end(work))
        except BaseException as fault:  # the thread's outermost frame: the cell reports it
            self.fault = self.fault or fault
        finally:
            self._done = self._over = True
            self._wake()

    async def _to_end(self, work: Work) -> None:
        self._agent_loop = asyncio.get_running_loop()
        try:
            await work.run()
        except BaseException as fault:
            self.fault = fault
        finally:
            self._done = True
            self._wake()

    def _pressed(self) -> None:
        self._cancel()
        self._wake()

    def _cancel(self) -> None:
        """Cancel the work, once; if its loop has not started yet, the next tick cancels it."""
        loop, work = self._agent_loop, self._work
        if loop is None or work is None or self._cancelled:
            return
        self._cancelled = True
        with suppress(RuntimeError):  # its loop closed just now
            loop.call_soon_threadsafe(work.cancel)

    async def _wait(self, seconds: float = TICK) -> None:
        """Wait for one tick, or until woken."""
        try:
            await asyncio.wait([self._woken], timeout=seconds)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None:
                task.uncancel()
            self.interrupts.press()
        if self._woken.done():
            self._woken = self._loop.create_future()

    def _wake(self) -> None:
        with suppress(RuntimeError):  # the cell's loop is closed
            self._loop.call_soon_threadsafe(self._set)

    def _set(self) -> None:
        if not self._woken.done():
            self._woken.set_result(None)


def _running_loop() -> asyncio.AbstractEventLoop:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        raise UsageError(
            "%%agent needs an asyncio event loop. In a terminal: %autoawait asyncio"
        ) from None
