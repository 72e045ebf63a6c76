"""Debian's `redis-server`, started by the tests, and hubs that publish to it and read from it."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers.lacking import lacking
from helpers.ports import take_port

from agent_nb.server.hub import Hub
from agent_nb.server.redis.address import parse_address
from agent_nb.server.redis.hub import RedisHub
from agent_nb.server.redis.outgoing import Limits

KEY = b"the key of the tests"
PATIENCE = 20.0  # s


class RedisServer:
    """A server process on a free port of loopback; `kill` and `start` lose nothing with `aof`.

    `options`: more of its command line.
    """

    def __init__(self, folder: Path, *options: str, aof: bool = False) -> None:
        need_redis()
        program = shutil.which("redis-server") or lacking("redis-server is not here")
        self._folder, self.port = folder, take_port()
        keep = ("--appendonly", "yes", "--appendfsync", "always") if aof else ()
        self._command = [program, "--port", str(self.port), "--bind", "127.0.0.1", "--save", ""]
        self._command += ["--dir", str(folder), *keep, *options]
        self.start()

    @property
    def url(self) -> str:
        """An address whose prefix nothing else uses."""
        return f"redis://127.0.0.1:{self.port}/0?prefix=t{uuid.uuid4().hex[:8]}"

    def start(self) -> None:
        self._process = subprocess.Popen(
            self._command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        until(self._answers)

    def kill(self) -> None:
        """End the process as a power cut does."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait(PATIENCE)

    def freeze(self) -> None:
        """Let it answer nothing."""
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        self._process.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(PATIENCE)

    def command(self, *words: str | bytes | int) -> Any:
        """Send one command as redis-cli does, and return the raw reply."""
        import redis

        with redis.Redis(port=self.port, protocol=2) as client:
            client.response_callbacks.clear()
            return client.execute_command(*words)

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as connection:
                connection.sendall(b"PING\r\n")
                return connection.recv(100).startswith((b"+PONG", b"-NOAUTH"))
        except OSError:
            return False


def need_redis() -> None:
    """Skip the test where the package `redis` is not installed."""
    if importlib.util.find_spec("redis") is None:
        lacking("the package redis (extra redis) is not here")


def until(true: Callable[[], Any]) -> None:
    """Wait until a condition holds."""
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end, "it did not come to that"
        time.sleep(0.005)


class Together(Hub):
    """A hub in one process: what is published there is read there."""

    def settle(self) -> None:
        """Wait for nothing: publishing is reading."""


class Apart:
    """Two hubs over one Redis, in the place of one: `kernel` publishes, `server` reads."""

    def __init__(self, url: str, *, entries: int = 100_000, **options: Any) -> None:
        limits = Limits(entries=entries, runs=options.get("runs", 200))
        self.place = parse_address(url)
        self.kernel = RedisHub(self.place, key=KEY, limits=limits, **options)
        self.server = RedisHub(self.place, key=KEY, limits=limits, keep=options.get("keep", 20_000))
        self.attach, self.channel = self.kernel.attach, self.kernel.channel
        self.close = self.server.close

    def open(self, run: str) -> Any:
        return self.kernel.open(run)

    def settle(self) -> None:
        """Wait until the server has what the kernel published."""
        assert self.kernel.flush(PATIENCE)
        for run, mirror in list(self.server._mirrors._known.items()):
            until(lambda run=run, mirror=mirror: (mirror.seq, mirror._n) >= self._top(run))

    def _top(self, run: str) -> tuple[int, int]:
        channel = self.kernel.channel(run)
        return (channel.seq, channel._n)

    def runs(self) -> Any:
        self.settle()
        return asyncio.run(self.server.list_runs())

    def subscribe(self, run: str, *wanted: Any, **options: Any) -> Any:
        assert self.kernel.flush(PATIENCE)
        asyncio.run(self.server.find(run))
        self.settle()
        return Settled(self, self.server.subscribe(run, *wanted, **options))

    def listeners(self, run: str = "") -> int:
        return self.server.listeners(run)

    def stop(self) -> None:
        self.kernel.stop()
        self.server.stop()


class Settled:
    """A subscription whose reader looks when all that was published has come."""

    def __init__(self, hub: Apart, subscription: Any) -> None:
        self._hub, self._subscription = hub, subscription

    def __getattr__(self, name: str) -> Any:
        if name in ("take", "closed", "reason", "fault"):
            self._hub.settle()
        return getattr(self._subscription, name)


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """One server for all tests, each with a prefix of its own."""
    made = RedisServer(tmp_path_factory.mktemp("redis"))
    yield made
    made.stop()


@pytest.fixture
def redis_folder(tmp_path: Path) -> Iterator[Callable[..., RedisServer]]:
    """A function that starts a server of the test's own; all are stopped at the end."""
    made: list[RedisServer] = []

    def make(*options: str, **more: Any) -> RedisServer:
        folder = tmp_path / f"redis{len(made)}"
        os.mkdir(folder)
        made.append(RedisServer(folder, *options, **more))
        return made[-1]

    yield make
    for each in made:
        each.stop()


HUBS = ["process", pytest.param("redis", marks=pytest.mark.extra)]


@pytest.fixture(params=HUBS)
def make_hub(request: pytest.FixtureRequest) -> Iterator[Callable[..., Any]]:
    """A function that makes a hub: in one process, or two over Redis."""
    made: list[Any] = []

    def make(**options: Any) -> Any:
        if request.param == "process":
            options.pop("entries", None)
            return Together(**options)
        made.append(Apart(request.getfixturevalue("redis_server").url, **options))
        return made[-1]

    yield make
    for each in made:
        each.stop()
