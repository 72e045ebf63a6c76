"""The kernels of our runner: which one a notebook gets, what it is told, and that of the next
notebook, which starts while one runs.

Why ahead: half of the time that a small notebook takes is the start of its kernel. The first one
starts while this process still loads what executes notebooks.

Rules
- The kernel of a notebook is the one that was asked for, else the notebook's own. Where that is not
  installed, a notebook in Python runs on the default one, and a line says so; any other is an
  error.
- Every kernel is fresh and has a secret of its own. One that was started ahead runs the notebook it
  was started for, if that still wants the same; else it is shut down. There is one ahead at most,
  however many notebooks run at the same time.
- A kernel ahead that does not start is nobody's fault: the notebook starts its own.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import msgspec
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager

from ...errors import UsageError
from ...host import launch
from ...host.trust import OPTION, VARIABLE
from ..files.notebook_path import SESSION
from ..notices import warn

DEFAULT_KERNEL = "python3"
HASH_SEED = "PYTHONHASHSEED"
# `python -m ipykernel_launcher` has the notebook's folder first on its path while it starts, before
# the standard library; here it comes to its place (as IPython has it, before the installed
# packages) when the kernel is loaded.
LAUNCH = """
import sys
from ipykernel import kernelapp
sites = [n for n, entry in enumerate(sys.path) if entry.endswith(("site-packages", "dist-packages"))]
sys.path.insert(min(sites, default=0), "")
kernelapp.launch_new_instance()
"""
OWN = (
    sys.executable,
    "python",
    f"python{sys.version_info[0]}",
    f"python{sys.version_info[0]}.{sys.version_info[1]}",
)
HISTORY = "--HistoryManager.hist_file=:memory:"  # as nbclient starts kernels


class Wanted(msgspec.Struct, frozen=True):
    """What a notebook wants: the name of its kernel, the folder it runs in, and what is added to
    its environment.
    """

    kernel: str
    folder: str
    environment: Mapping[str, str]


class Started(msgspec.Struct, frozen=True):
    """A kernel that was started ahead: its manager and its secret; `said` is the file of what its
    process says.
    """

    wanted: Wanted
    manager: Any
    proof: str
    said: IO[bytes]

    def stop(self) -> None:
        """End the kernel."""
        with suppress(Exception):  # it may have ended itself
            asyncio.run(self._stop())
        self.said.close()

    async def _stop(self) -> None:
        await self.manager.shutdown_kernel(now=True)
        await self.manager.cleanup_resources()


class Ahead:
    """Starts the kernel of the next notebook in a list before it is needed; a context manager that
    stops an unused one at its end.

    `wanted` says what a notebook wants; it is asked on a thread of its own, and may raise.
    """

    def __init__(self, notebooks: Iterable[Path], wanted: Callable[[Path], Wanted]) -> None:
        self._left = list(notebooks)
        self._wanted = wanted
        self._pool = ThreadPoolExecutor(1, "agent_nb next kernel")
        self._lock = threading.Lock()
        self._next: tuple[Path, Future[Started]] | None = None

    def __enter__(self) -> Ahead:
        with self._lock:
            self._begin()
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._left, following, self._next = [], self._next, None
        if following is not None:
            _end(following[1])
        self._pool.shutdown()

    def take(self, notebook: Path, wanted: Wanted) -> Started | None:
        """Return the kernel that was started for a notebook, None if there is none that is
        `wanted`; start that of the next one.
        """
        with self._lock:
            mine = self._next if self._next is not None and self._next[0] == notebook else None
            if mine is not None:
                self._next = None
            if notebook in self._left:
                del self._left[: self._left.index(notebook) + 1]
            if self._next is None:
                self._begin()
        started = _result(mine[1]) if mine is not None else None
        if started is not None and started.wanted != wanted:
            started.stop()
            return None
        return started

    def _begin(self) -> None:
        if self._left:
            self._next = (self._left[0], self._pool.submit(self._start, self._left[0]))

    def _start(self, notebook: Path) -> Started:
        return asyncio.run(_started(self._wanted(notebook)))


async def _started(wanted: Wanted) -> Started:
    said = tempfile.TemporaryFile()  # noqa: SIM115  (it is closed with the kernel)
    manager = AsyncKernelManager(kernel_name=wanted.kernel)
    launched_by_us(manager)
    proof = launch.secret()
    environment = {**os.environ, **wanted.environment, launch.PROOF: proof}
    extra = [HISTORY] if manager.ipykernel else []
    await manager.start_kernel(
        extra_arguments=extra, cwd=wanted.folder, env=environment, stdout=said, stderr=said
    )
    return Started(wanted, manager, proof, said)


def _result(future: Future[Started]) -> Started | None:
    with suppress(Exception):  # whoever runs the notebook hears what is wrong with it
        return future.result()
    return None


def _end(future: Future[Started]) -> None:
    if not future.cancel() and (started := _result(future)) is not None:
        started.stop()


def launched_by_us(manager: Any) -> None:
    """Let a kernel of this Python start with `LAUNCH`."""
    program, *rest = manager.kernel_spec.argv
    if program in OWN and rest[:2] == ["-m", "ipykernel_launcher"]:
        manager.kernel_spec.argv = [program, "-P", "-c", LAUNCH, *rest[2:]]


def wanted(
    path: Path,
    nb: Mapping[str, Any],
    kernel: str = "",
    *,
    trust_folder: bool = False,
    strict: bool = False,
    zone: str = "",
    rerun: str = "",
) -> Wanted:
    """Return what the notebook at `path` wants, or the `kernel` that was asked for; see
    `execute.execute`. Raises UsageError.

    In its environment sets have one order, that of a hash seed of 0.
    """
    where = path.resolve()
    replays = launch.REPLAY if rerun == launch.REPLAY else ""  # runs of Python code obey only this
    wished = {
        VARIABLE: OPTION if trust_folder else "",
        launch.STRICT: "1" if strict else "",
        launch.RERUN: replays,
        "TZ": zone,
    }
    added = {
        SESSION: str(where),
        HASH_SEED: "0",
        **{name: value for name, value in wished.items() if value},
    }
    return Wanted(kernel_of(nb, kernel)[0], str(where.parent), added)


def kernel_of(nb: Mapping[str, Any], asked: str = "") -> tuple[str, str]:
    """Return the name of the kernel to use and, where it is not the notebook's, that one's. Raises
    UsageError.
    """
    known = KernelSpecManager().find_kernel_specs()
    metadata = _mapping(nb.get("metadata"))
    spec = _mapping(metadata.get("kernelspec"))
    name = asked or str(spec.get("name") or DEFAULT_KERNEL)
    if name in known:
        return name, ""
    language = spec.get("language") or _mapping(metadata.get("language_info")).get("name")
    if not asked and str(language).lower() == "python" and DEFAULT_KERNEL in known:
        return DEFAULT_KERNEL, name
    there = ", ".join(sorted(known))
    todo = (
        f"Installed: {there}; --kernel chooses one" if there else "None is: pip install ipykernel"
    )
    raise UsageError(f"The kernel {name!r} is not installed. {todo}.")


def say(path: Path, nb: Mapping[str, Any], asked: str) -> None:
    """Say on stderr that a notebook runs on another kernel than its own, if it does."""
    name, missing = kernel_of(nb, asked)
    if missing:
        warn(
            f"{path}: the kernel {missing!r} is not installed; {name!r} runs this notebook in Python."
        )


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
