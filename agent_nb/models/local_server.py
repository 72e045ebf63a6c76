"""llama.cpp's server in this process, and the progress of its start.

The answers of a server can be read like any other's. It listens on a loopback port and requires a
random key, so only this process can use it. The last step of loading holds the interpreter (about a
second), so the file is read beforehand in steps that `Loading` reports.
"""

from __future__ import annotations

import atexit
import os
import secrets
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from ..errors import ModelError, UsageError

CONTEXT = 4096  # tokens of one run
RUNS = 2  # runs that the server answers at once
BLOCK = 8 * 1024 * 1024  # bytes read between two reports of the progress


class Progress(msgspec.Struct, frozen=True):
    """The progress of a server.

    `state` is idle, loading, ready or failed; `fraction` from 0 to 1; `message` is for people.
    """

    state: str = "idle"
    fraction: float = 0.0
    message: str = ""


class Loading:
    """The observable progress of a server. Safe to use from any thread."""

    def __init__(self) -> None:
        self.now = Progress()
        self._listeners: list[Callable[[Progress], None]] = []

    def subscribe(self, listener: Callable[[Progress], None]) -> Callable[[], None]:
        """Call `listener` now and at each change; return a function that ends this.

        Changes are reported from the loading thread, a stop from the thread that stops.
        """
        self._listeners.append(listener)
        self._notify(listener)
        return lambda: self._drop(listener)

    def report(self, state: str, fraction: float, message: str) -> None:
        """Set the progress and notify the listeners."""
        self.now = Progress(state, fraction, message)
        for listener in tuple(self._listeners):
            self._notify(listener)

    def _notify(self, listener: Callable[[Progress], None]) -> None:
        try:
            listener(self.now)
        except Exception:  # a faulty display must not stop the loading
            self._drop(listener)

    def _drop(self, listener: Callable[[Progress], None]) -> None:
        with suppress(ValueError):  # dropped already
            self._listeners.remove(listener)


class _Start(threading.Event):
    """A start of a server; it is set once the start has succeeded, failed or was stopped."""

    url = ""
    handle: Any = None  # llama.cpp's object: the server runs while it lives
    fault: Exception | None = None  # why the start failed


class Server:
    """llama.cpp's server for one file of weights, started once."""

    def __init__(self, path: Path, alias: str) -> None:
        self.path = path
        self.alias = alias
        self.key = secrets.token_urlsafe(24)
        self.loading = Loading()
        self._started: _Start | None = None
        self._lock = threading.Lock()  # of `_started`, and of the end of a start

    @property
    def url(self) -> str:
        """The base URL, "" until the server is ready."""
        started = self._started
        return started.url if started is not None else ""

    def start(self) -> _Start:
        """Begin to load in the background, once."""
        with self._lock:
            if self._started is None:
                self._started = _Start()
                name = f"load {self.alias}"
                load = partial(self._load, self._started)
                threading.Thread(target=load, name=name, daemon=True).start()
            return self._started

    def wait(self) -> str:
        """Return the base URL once the server is ready. Raises UsageError or ModelError."""
        started = self.start()
        started.wait()
        if started.fault is not None:
            raise started.fault
        return started.url

    def stop(self) -> None:
        """Stop the server and free its memory; `start` and `wait` start it anew."""
        with self._lock:
            started, self._started = self._started, None
            if started is not None:
                started.handle = None
                if not started.is_set():
                    message = f"{self.path.name} was stopped while it was loading."
                    started.fault = ModelError(message, code="local")
                    started.set()
        self.loading.report("idle", 0.0, "")

    def _load(self, started: _Start) -> None:
        """Start the server in this thread, unless it is stopped; a fault is kept for `wait`."""
        name, handle = self.path.name, None
        fault: Exception | None = None
        try:
            self._read_ahead(started)
            self._report(started, "loading", 0.9, f"Starting {name}")
            if self._started is started:
                handle = _serve(self.path, self.alias, self.key)
        except RuntimeError:
            fault = UsageError(
                f"{self.path} could not be loaded: it is damaged, or of a kind that this llama.cpp does not know."
            )
        except Exception as error:
            fault = ModelError(f"{name} could not be started: {error}.", code="local")
        with self._lock:
            if started.is_set():  # stopped meanwhile; the server ends with its handle
                return
            if handle is not None:
                started.handle, started.url = handle, f"{handle.listening_address}/v1"
            started.fault = fault
        if fault is None:
            self._report(started, "ready", 1.0, f"{name} is ready")
        else:
            self._report(started, "failed", 0.0, str(fault))
        started.set()

    def _report(self, started: _Start, state: str, fraction: float, message: str) -> None:
        """Report the progress of a start, unless the server was stopped."""
        if self._started is started:
            self.loading.report(state, fraction, message)

    def _read_ahead(self, started: _Start) -> None:
        """Read the file into the system's cache, so that the last, invisible step is short."""
        size = self.path.stat().st_size
        bytes_read = 0
        with self.path.open("rb", buffering=0) as file:
            while self._started is started and (block := len(file.read(BLOCK))):
                bytes_read += block
                # the last tenth stands for the start of the server, which reports nothing
                fraction = 0.9 * bytes_read / max(size, 1)
                self._report(started, "loading", fraction, f"Reading {self.path.name}")


def _serve(path: Path, alias: str, key: str) -> Any:
    """Start llama.cpp's server and return it when it is ready.

    Raises RuntimeError if the weights cannot be loaded.
    """
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    # without an alias the file's path is the model's name and gets into records
    params.model_alias = {alias}
    params.api_keys = [key]
    params.n_ctx = CONTEXT * RUNS
    params.n_parallel = RUNS
    params.kv_unified = True  # the runs share the context instead of halving it
    for cpu in (params.cpuparams, params.cpuparams_batch):
        cpu.n_threads = count_threads()
    params.verbosity = -1
    params.ui = False
    return xllamacpp.Server(params)


def count_threads() -> int:
    """Return the number of computing threads: all cores but one, at most 8.

    llama.cpp's threads wait for each other in busy loops: one that shares its core slows all of
    them (on two busy cores: 35 tokens/s with one thread, 2 to 6 with two).
    """
    allowed = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else ()
    cores = len(allowed) or os.cpu_count() or 2
    return max(1, min(cores - 1, 8))


_servers: dict[Path, Server] = {}
_lock = threading.Lock()


def find_server(path: Path, alias: str) -> Server:
    """Return the process's server for a file of weights; if its start failed, a new one."""
    with _lock:
        server = _servers.get(path)
        # after a failure, the file may have been replaced
        if server is None or server.loading.now.state == "failed":
            server = _servers[path] = Server(path, alias)
        return server


@atexit.register
def stop_all() -> None:
    """Stop every server of this process; a `LocalModel` that is used later starts its own anew."""
    with _lock:
        for server in _servers.values():
            server.stop()
