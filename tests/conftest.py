"""What every test has: no network but loopback, no key of the environment or of another test, its
own state and configuration folders.
"""

from __future__ import annotations

import gc
import ipaddress
import os
import socket
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

# a shell in which another environment is active: IPython would warn of it
os.environ.pop("VIRTUAL_ENV", None)
# hundreds of processes would compile the package again
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
pytest_plugins = [
    "helpers.examples",
    "helpers.marks",
    "helpers.worker_order",
    "helpers.kernel_forks",
    "helpers.shells",
    "helpers.agent_cells",
    "helpers.kernels",
    "helpers.redis_server",
    "helpers.run_server",
]
pytest.register_assert_rewrite("helpers")
MANY_BLOCKS = 300_000
SECRET_WORDS = ("KEY", "TOKEN", "SECRET", "PASSWORD")


def _loopback(address: Any) -> bool:
    if not isinstance(address, tuple):
        return True  # a Unix socket
    host = str(address[0])
    if host in ("localhost", ""):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def pytest_collection() -> None:
    """Collect no garbage while tests are collected: they make a million objects, and all stay."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Take what collection made out of the garbage collector's sight.

    Why: `gc.collect()` walks everything that thousands of tests and their imports made; IPython
    collects at each reset of a shell. It is not collected first: that takes longer than it gives.
    """
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session")
def last_freeze() -> list[int]:
    """Blocks of memory at the last freeze."""
    return [sys.getallocatedblocks()]


@pytest.fixture(scope="module", autouse=True)
def frozen(last_freeze: list[int]) -> Iterator[None]:
    """Do the same after a module that leaves many objects, as the laws of the architecture do.

    To collect after each of some 450 modules takes longer than it gives.
    """
    yield
    if sys.getallocatedblocks() - last_freeze[0] > MANY_BLOCKS:
        gc.collect()
        gc.freeze()
        last_freeze[0] = sys.getallocatedblocks()


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse every connection that leaves this machine."""
    real = socket.socket.connect

    def connect(self: socket.socket, address: Any) -> None:
        if not _loopback(address):
            raise AssertionError(f"a test tried to reach {address!r}")
        return real(self, address)

    monkeypatch.setattr(socket.socket, "connect", connect)


@pytest.fixture(scope="session")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yield folders that are new; `mktemp` would look through those of all tests for each."""
    folder = tmp_path_factory.mktemp("homes")
    return (folder / str(number) for number in count())


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, homes: Iterator[Path]) -> Path:
    """Hide keys, proxies and settings of the developer, and give each test a home of its own."""
    for name in list(os.environ):
        private = name.startswith(("AGENT_NB_M", "AGENT_NB_C", "OPENAI", "ANTHROPIC"))
        if private or name.upper().endswith((*SECRET_WORDS, "_PROXY")):
            monkeypatch.delenv(name)
    home = next(homes)
    home.mkdir()
    return _moved(monkeypatch, home)


@pytest.fixture(scope="session", autouse=True)
def no_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What a module's kernel or server keeps is not kept with the user's: it is started before a
    test has a home.
    """
    with pytest.MonkeyPatch.context() as patch:
        _moved(patch, tmp_path_factory.mktemp("home"))
        yield


def _moved(patch: pytest.MonkeyPatch, home: Path) -> Path:
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"):
        patch.setenv(name, str(home / name.lower()))
    return home


@pytest.fixture(autouse=True)
def forgotten_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test knows the keys and the servers' tokens that another gave to this process."""
    from agent_nb.models import keys

    for name, empty in (
        ("_session_keys", {}),
        ("_keyring_keys", {}),
        ("_colab_secrets", {}),
        ("_other_secrets", set()),
    ):
        monkeypatch.setattr(keys, name, empty)
