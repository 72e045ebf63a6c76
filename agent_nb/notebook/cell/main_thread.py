"""Jobs of tools on the kernel's main thread, one at a time.

Why: Python tools need the user's namespace on the thread that libraries expect (matplotlib, GUI,
signals), and `input()` works on no other. The cell awaits meanwhile, so its event loop is free.

Rule: a job is submitted on the agent's loop and runs on the cell's, under the guard of
`Interrupts`; its exceptions never reach the cell's loop. Cancelling the waiter cancels the job's
task; code that does not await gets KeyboardInterrupt.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import msgspec

from ...errors import Cancelled, ToolError
from ...tools import CallDisplays, Collector, Outcome, current_call, enter_call
from .code_cell import format_traceback, run_code
from .interrupts import Interrupts

Fault = BaseException | None  # the exception of a job; None if it returned a value


class Job:
    """One job of the main thread. Its waiter makes it on the agent's loop, and awaits `done`.

    work: does the job on the cell's loop; returns its value and fault. call: the tool call that
    the job belongs to. done: gets the value and the fault. task: runs the work, None before it.
    """

    def __init__(self, work: Callable[[Job], Awaitable[tuple[Any, Fault]]]) -> None:
        self.work = work
        self.call = current_call()
        self.loop = asyncio.get_running_loop()
        self.done: asyncio.Future[tuple[Any, Fault]] = self.loop.create_future()
        self.task: asyncio.Task[None] | None = None

    def deliver(self, value: Any, fault: Fault) -> None:
        """Hand the result to the waiter, if it has none yet; from any thread."""
        with suppress(RuntimeError):  # its loop is closed: the run was abandoned
            self.loop.call_soon_threadsafe(self._set_done, value, fault)

    def _set_done(self, value: Any, fault: Fault) -> None:
        if not self.done.done():
            self.done.set_result((value, fault))


class MainThread:
    """The host of one cell's tools (`tools.base.Host`). Make it on the cell's thread and loop.

    `wake` is called, from any thread, when a job waits or has ended; `clean` removes secrets from
    what code displays.
    """

    def __init__(
        self,
        shell: Any,
        interrupts: Interrupts,
        wake: Callable[[], None] = lambda: None,
        clean: Callable[[Any], Any] = lambda shown: shown,
    ) -> None:
        self._clean = clean
        self._shell = shell
        self._interrupts = interrupts
        self._wake = wake
        self._loop = asyncio.get_running_loop()
        self._lock = threading.Lock()
        self._waiting: deque[Job] = deque()
        self._running: Job | None = None
        self._closed = False

    def namespace(self) -> dict[str, Any]:
        """Return the user's namespace itself, not a copy."""
        return self._shell.user_ns  # type: ignore[no-any-return]  # IPython is not typed

    async def call(self, function: Callable[[], Any]) -> Any:
        """Call a synchronous `function` on the main thread and return its value.

        Raises the exception of `function`, Cancelled if the user interrupted it, ToolError if it
        tried to exit, and EOFError if it called `input()` where the front end has no keyboard.
        """

        async def work(job: Job) -> tuple[Any, Fault]:
            return self._interrupts.guard(job, function)

        value, fault = await self._submit(work)
        if fault is not None:
            raise _error_for_caller(fault)
        return value

    async def run_cell(
        self,
        code: str,
        on_output: Callable[[str], None],
        on_picture: Callable[[int, dict[str, Any] | None], None] = lambda index, picture: None,
    ) -> Outcome:
        """Run `code` as a cell of the user's namespace; top-level await works.

        On the caller's loop `on_output` receives stdout and stderr, `on_picture` the pictures (see
        `Update.picture`). The outcome's content is the printed text, then the value of the last
        expression or a short traceback, all bounded; its display is the value's mime bundle. Its
        pictures are all that the code showed, even before an error.
        """
        loop, printed = asyncio.get_running_loop(), Collector()

        def take(text: str) -> None:
            printed.add(text)
            on_output(text)

        def show(index: int, picture: dict[str, Any] | None) -> None:
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(on_picture, index, picture)

        write = _forward_to_loop(loop, take)
        displays = CallDisplays(write, show, self._clean)

        async def work(job: Job) -> tuple[Any, Fault]:
            cell = run_code(self._shell, code, write, self._interrupts.checkpoint, displays)
            return await self._interrupts.guard_async(job, cell)

        start = time.perf_counter()
        outcome: Outcome
        outcome, fault = await self._submit(work)
        if fault is not None and _is_stop(fault):
            outcome = displays.convert_stop(fault)
        elif fault is not None:
            outcome = displays.add_to(Outcome("error", format_traceback(fault, self.namespace())))
        duration = round(time.perf_counter() - start, 3)
        return msgspec.structs.replace(outcome.after(printed.text), duration=duration)

    async def _submit(
        self, work: Callable[[Job], Awaitable[tuple[Any, Fault]]]
    ) -> tuple[Any, Fault]:
        """Queue a job and wait for its value and exception; cancel it if the wait is cancelled."""
        job = Job(work)
        with self._lock:
            if self._closed:
                raise Cancelled("user", "the cell has ended")
            self._waiting.append(job)
        self._wake()
        try:
            return await job.done
        except asyncio.CancelledError:
            self._cancel(job)
            raise

    def _cancel(self, job: Job) -> None:
        """Remove a job from the queue, or interrupt it if it runs."""
        with self._lock:
            if job in self._waiting:
                self._waiting.remove(job)
                return
        with suppress(RuntimeError):  # the cell's loop is closed
            self._loop.call_soon_threadsafe(_cancel_task, job)
        self._interrupts.break_job(job)

    def step(self) -> None:
        """Start the next job if none runs; on the cell's thread."""
        if self.is_busy:
            return
        with self._lock:
            self._running = self._waiting.popleft() if self._waiting else None
        if self._running is not None:
            job = self._running
            job.task = self._loop.create_task(self._run_job(job), name="agent main-thread job")
            job.task.add_done_callback(lambda _: self._end_job(job))

    async def _run_job(self, job: Job) -> None:
        enter_call(job.call)
        value, fault = await job.work(job)
        job.deliver(value, fault)

    def _end_job(self, job: Job) -> None:
        # has an effect only if the job was cancelled before it could deliver
        job.deliver(None, Cancelled("user", "the cell has ended"))
        self._wake()

    @property
    def is_busy(self) -> bool:
        """Whether a job runs."""
        task = self._running.task if self._running is not None else None
        return task is not None and not task.done()

    def close(self) -> None:
        """Refuse further jobs; cancel the waiting and the running ones. On the cell's thread."""
        with self._lock:
            self._closed = True
            waiting, self._waiting = self._waiting, deque()
        for job in waiting:
            job.deliver(None, Cancelled("user", "the cell has ended"))
        if self._running is not None:
            _cancel_task(self._running)


def self_driven_host(
    shell: Any, interrupts: Interrupts, clean: Callable[[Any], Any] = lambda shown: shown
) -> MainThread | None:
    """Return a host that starts its own jobs, for a run on the cell's loop; None without a loop."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return None

    def wake() -> None:
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(host.step)

    host = MainThread(shell, interrupts, wake, clean)
    return host


def _cancel_task(job: Job) -> None:
    if job.task is not None:
        job.task.cancel()


def _is_stop(fault: BaseException) -> bool:
    """Return whether the user, a cancellation of the waiter or the cell's end stopped a job."""
    return isinstance(fault, KeyboardInterrupt | asyncio.CancelledError | Cancelled)


def _error_for_caller(fault: BaseException) -> BaseException:
    """Return the exception that `MainThread.call` raises for the fault of a job."""
    from IPython.core.error import StdinNotImplementedError

    if _is_stop(fault):
        return fault if isinstance(fault, Cancelled) else Cancelled("user", "interrupted")
    if isinstance(fault, StdinNotImplementedError):
        return EOFError(str(fault))
    if isinstance(fault, Exception):
        return fault
    return ToolError(f"the tool tried to end the kernel: {fault!r}")


def _forward_to_loop(
    loop: asyncio.AbstractEventLoop, on_output: Callable[[str], None]
) -> Callable[[str], None]:
    """Return a function that hands text from any thread, joined, to `on_output` on `loop`."""
    lock = threading.Lock()
    pieces: list[str] = []

    def drain() -> None:
        with lock:
            text = "".join(pieces)
            pieces.clear()
        on_output(text)

    def put(text: str) -> None:
        with lock:
            first = not pieces
            pieces.append(text)
        if first:
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(drain)

    return put
