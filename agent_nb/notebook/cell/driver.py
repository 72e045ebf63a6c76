"""Run an agent on its own thread and event loop while the cell awaits it.

Why: the kernel's thread must stay free for clicks, interrupts, and the tools that run on it. Brief
work is a task on the cell's own loop: a thread costs more than the replay of a small cell.

Rules
- The cell waits in ticks: an untimed await would not notice a kernel interrupt.
- The signal handler cancels the work directly: after a tool that the interrupt ended, the model
  must not be called again first.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, NamedTuple

from ...errors import Cancelled, UsageError
from .interrupts import Interrupts
from .main_thread import MainThread

TICK = 0.05  # s; the longest wait of the cell before it looks for interrupts
LINGER = 0.1  # s; the cell waits so long for the thread to close connections after its work


class Work(NamedTuple):
    """What the driver runs: `run`, on the agent's loop.

    `cancel` is called on the same loop at the first interrupt. `brief`: the work neither waits nor
    runs the user's code, and needs no loop of its own.
    """

    run: Callable[[], Coroutine[Any, Any, None]]
    cancel: Callable[[], None]
    brief: bool = False


class Driver:
    """Drives one run of a cell. Make it on the cell's thread and event loop.

    interrupts: the interrupts of the cell; the first cancels the work, a second one abandons it.
    clean: removes secrets from what tools display. host: lets tools run on the cell's thread.
    fault: after `drive`, the exception of the work, or None. abandoned: after `drive`, whether the
    work was given up and may still run.

    Raises UsageError where no event loop runs.
    """

    def __init__(
        self, shell: Any, interrupts: Interrupts, clean: Callable[[Any], Any] = lambda shown: shown
    ) -> None:
        try:
            self._loop = asyncio.get_running_loop()
        except RuntimeError:
            advice = "In a terminal: %autoawait asyncio"
            raise UsageError(f"%%agent needs an asyncio event loop. {advice}") from None
        self._woken = self._loop.create_future()
        self.interrupts = interrupts
        self.host = MainThread(shell, interrupts, self._wake, clean)
        self.abandoned = False
        self.fault: BaseException | None = None
        self._work: Work | None = None
        self._agent_loop: asyncio.AbstractEventLoop | None = None
        self._cancelled = False
        self._work_done = False
        self._loop_closed = False  # the loop of the thread, after its connections

    async def drive(self, make: Callable[[], Work]) -> None:
        """Make the work and run it to its end, or until it is abandoned.

        `make` is called on the cell's thread; the user's code in it can be interrupted. Raises only
        what `make` raises, and Cancelled if a press came before `make` had returned. An exception
        of the work itself is kept as `fault`.
        """
        self.interrupts.listen(self._on_press)
        work, fault = self.interrupts.guard(self, make)
        # a KeyboardInterrupt that the user's code raised itself counts as a press
        if isinstance(fault, KeyboardInterrupt) and not self.interrupts.stopped:
            self.interrupts.press()
        if isinstance(fault, KeyboardInterrupt | None) and self.interrupts.stopped:
            raise Cancelled("user", self.interrupts.by)
        if fault is not None:
            raise fault
        self._work = work
        try:
            if work.brief:
                await self._serve_brief(work)
            else:
                await self._serve(self._start(work))
        finally:
            self.host.close()

    def stop(self, by: str = "stop button") -> None:
        """Count a press, from any thread; the log names `by` as the cause of the stop."""
        self.interrupts.press(by)

    async def _serve(self, thread: threading.Thread) -> None:
        """Serve the work, and then wait for the thread, unless the work was abandoned."""
        await self._handle_until_done()
        if self.abandoned:
            return
        end = self._loop.time() + LINGER
        while not self._loop_closed and (remaining := end - self._loop.time()) > 0:
            await self._wait(remaining)
        if self._loop_closed:
            thread.join(LINGER)

    async def _handle_until_done(self) -> None:
        """Run jobs of the host and handle interrupts until the work is done or abandoned."""
        while not self._work_done:
            if self.interrupts.abandoned:
                self.abandoned = True
                return
            if self.interrupts.stopped:
                self._cancel()
            self.host.step()
            await self._wait()

    async def _serve_brief(self, work: Work) -> None:
        """Run the work as a task on this loop, in a copy of the cell's context."""
        task = self._loop.create_task(self._run_work(work))
        try:
            await self._handle_until_done()
        finally:
            task.cancel()  # it is done, unless it was abandoned

    def _start(self, work: Work) -> threading.Thread:
        """Start the thread of the work in a copy of the cell's context."""
        context = contextvars.copy_context()
        thread = threading.Thread(
            target=context.run, args=(self._run_thread, work), name="agent_nb run", daemon=True
        )
        thread.start()
        return thread

    def _run_thread(self, work: Work) -> None:
        """Run the work on a loop of this thread, and close the loop."""
        try:
            asyncio.run(self._run_work(work))
        except BaseException as fault:  # the thread's outermost frame: the cell reports it
            self.fault = self.fault or fault
        finally:
            self._work_done = self._loop_closed = True
            self._wake()

    async def _run_work(self, work: Work) -> None:
        self._agent_loop = asyncio.get_running_loop()
        try:
            await work.run()
        except BaseException as fault:
            self.fault = fault
        finally:
            self._work_done = True
            self._wake()

    def _on_press(self) -> None:
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
        """Wait for `seconds`, or until woken; a cancellation of the cell's task becomes a press."""
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
            self._loop.call_soon_threadsafe(self._set_woken)

    def _set_woken(self) -> None:
        if not self._woken.done():
            self._woken.set_result(None)
