"""Starts the kernels of the next notebooks early.

Why: a small notebook spends half of its time on the start of the kernel. The first kernel starts
while this process still imports nbclient; a later one while the previous notebook runs. One that
does not fit its notebook or does not start is replaced by a kernel that the notebook starts.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, NamedTuple

import msgspec
from jupyter_client.manager import AsyncKernelManager

from ..host import Launch
from ..record import load_notebook
from .execution_options import ExecutionOptions
from .kernels import KernelChoice, choose_kernel, use_own_launcher

HISTORY = "--HistoryManager.hist_file=:memory:"  # nbclient passes the same to kernels it starts


class StartedKernel(msgspec.Struct, frozen=True):
    """A kernel that was started early: its manager, its secret, and the file of its output."""

    choice: KernelChoice
    manager: Any
    proof: str
    output: IO[bytes]

    def stop(self) -> None:
        """Shut the kernel down."""
        with suppress(Exception):  # it may have died
            asyncio.run(self._stop())
        self.output.close()

    async def _stop(self) -> None:
        await self.manager.shutdown_kernel(now=True)
        await self.manager.cleanup_resources()


class _Starting(NamedTuple):
    """A kernel that starts, and the notebook that it is for."""

    notebook: Path
    kernel: Future[StartedKernel]


class EarlyKernels:
    """Starts the kernel of the next notebook of a list early; a context manager.

    `choose` returns the kernel of a notebook; it is called on another thread and may raise. An
    unused kernel is stopped at the end.
    """

    def __init__(self, notebooks: Iterable[Path], choose: Callable[[Path], KernelChoice]) -> None:
        self._left = list(notebooks)
        self._choose = choose
        self._pool = ThreadPoolExecutor(1, "agent_nb next kernel")
        self._lock = threading.Lock()
        self._next: _Starting | None = None

    @classmethod
    def of_options(cls, notebooks: Iterable[Path], options: ExecutionOptions) -> EarlyKernels:
        """Return early kernels for notebooks that are executed with these options."""
        return cls(notebooks, lambda path: choose_kernel(path, load_notebook(path), options))

    def __enter__(self) -> EarlyKernels:
        with self._lock:
            self._start_next()
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._left, unused, self._next = [], self._next, None
        _stop_unused(unused)
        self._pool.shutdown()

    def take(self, notebook: Path, choice: KernelChoice) -> StartedKernel | None:
        """Return the early kernel of a notebook if it matches `choice`; start the next one."""
        with self._lock:
            starting: Future[StartedKernel] | None = None
            if self._next is not None and self._next.notebook == notebook:
                starting, self._next = self._next.kernel, None
            if notebook in self._left:
                del self._left[: self._left.index(notebook) + 1]
            if self._next is None:
                self._start_next()
        started = _await_started(starting) if starting is not None else None
        if started is not None and started.choice != choice:
            started.stop()
            return None
        return started

    def discard(self, notebook: Path) -> None:
        """Stop the kernel of a notebook that failed before it took one; start the next one."""
        unused: _Starting | None = None
        with self._lock:
            if notebook in self._left:
                self._left.remove(notebook)
            if self._next is not None and self._next.notebook == notebook:
                unused, self._next = self._next, None
                self._start_next()
        _stop_unused(unused)

    def _start_next(self) -> None:
        if self._left:
            kernel = self._pool.submit(self._start, self._left[0])
            self._next = _Starting(self._left[0], kernel)

    def _start(self, notebook: Path) -> StartedKernel:
        return asyncio.run(_start_kernel(self._choose(notebook)))


async def _start_kernel(choice: KernelChoice) -> StartedKernel:
    output = tempfile.TemporaryFile()  # noqa: SIM115  (it is closed with the kernel)
    manager = AsyncKernelManager(kernel_name=choice.kernel)
    use_own_launcher(manager)
    proof = Launch.make_secret()
    environment = {**os.environ, **choice.environment, Launch.PROOF: proof}
    extra = [HISTORY] if manager.ipykernel else []
    await manager.start_kernel(
        extra_arguments=extra, cwd=choice.folder, env=environment, stdout=output, stderr=output
    )
    return StartedKernel(choice, manager, proof, output)


def _stop_unused(starting: _Starting | None) -> None:
    """Stop a kernel that no notebook takes, or its start."""
    if starting is None or starting.kernel.cancel():
        return
    if (started := _await_started(starting.kernel)) is not None:
        started.stop()


def _await_started(future: Future[StartedKernel]) -> StartedKernel | None:
    """Wait for a kernel; None if it did not start."""
    with suppress(Exception):  # the notebook starts its own kernel and reports the error
        return future.result()
    return None
