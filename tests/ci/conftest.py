"""The corpus, recorded once for all tests and workers, and a provider that counts its requests.

`jupyter agent-nb run --live` records each notebook when a test first needs it; the tests have the
key that signed it. Meanwhile every provider is a server of this module that would answer: a test
that went live would pass, so the server counts, and must count nothing.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from ci.recipes import RECIPES
from helpers.lacking import lacking
from helpers.marks import starts
from helpers.moved_clock import moved_clock
from helpers.paths import python_path
from helpers.providers import Provider

from agent_nb.cli.main import main
from agent_nb.record import file_lock

MISSING = "no other kernel: AGENT_NB_TEST_KERNELS names no Python"


def other_kernels():
    """Return the cases of a test for each other kernel."""
    listed = os.environ.get("AGENT_NB_TEST_KERNELS", "").split(os.pathsep)
    pythons = [python for python in listed if python] or [MISSING]
    return [
        pytest.param(p, id=Path(p).parent.parent.name if p != MISSING else "missing")
        for p in pythons
    ]


@pytest.fixture(scope="session")
def _providers():
    made = Provider(), Provider()
    yield made
    for provider in made:
        provider.shutdown()
        provider.server_close()
    assert made[1].connections == 0


@pytest.fixture(scope="session")
def _corpus(tmp_path_factory):
    """The folder of the corpus, one for all workers."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base) / "corpus"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture
def provider(_providers, _corpus, monkeypatch):
    """Route every provider to the server; assert that nothing asked it."""
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(_corpus / "jupyter"))
    _providers[1].route(monkeypatch)
    yield _providers[1]
    assert _providers[1].connections == 0


@pytest.fixture
@starts("kernel")
def recorded(_providers, _corpus, provider):
    """Return a recorded notebook by the name of its recipe, where it was recorded."""

    def recorded(name):
        for module in RECIPES[name].needs:
            pytest.importorskip(module)
        folder = _corpus / name
        with _locked(_corpus / "lock"):
            secret = _corpus / "jupyter" / "notebook_secret"
            secret.parent.mkdir(exist_ok=True)
            secret.exists() or secret.write_bytes(os.urandom(64))
        with _locked(_corpus / f"{name}.lock"):
            if not (folder / "done").exists():
                _record(RECIPES[name], folder, _providers[0])
                (folder / "done").touch()
        return folder / f"{name}.ipynb"

    return recorded


@pytest.fixture
def copied(recorded, tmp_path):
    """Return a copy of a recorded notebook, and of the files beside it, in another folder."""

    def copied(name):
        folder = shutil.copytree(recorded(name).parent, tmp_path / "copied" / name)
        return folder / f"{name}.ipynb"

    return copied


@pytest.fixture
def move_on(monkeypatch, tmp_path):
    """Move the clock of what starts from now on by many days."""

    def move_on():
        for name, value in moved_clock(tmp_path).items():
            monkeypatch.setenv(name, value)

    return move_on


@pytest.fixture
def other_kernel(monkeypatch, tmp_path):
    """Return the options of `test` for the kernel of another Python, "" for the notebook's own."""

    def other_kernel(python, needs=()):
        if not python:
            return []
        if python == MISSING:
            lacking(MISSING)
        for module in needs:
            command = [python, "-c", f"import {module}"]
            if subprocess.run(command, capture_output=True, check=False).returncode:
                pytest.skip(f"{module} is not installed beside {python}")
        spec = tmp_path / "share" / "kernels" / "other" / "kernel.json"
        spec.parent.mkdir(parents=True)
        argv = [python, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        spec.write_text(json.dumps({"argv": argv, "display_name": "other", "language": "python"}))
        monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "share"))
        monkeypatch.setenv("PYTHONPATH", python_path())
        assert python != sys.executable
        return ["--kernel", "other"]

    return other_kernel


@pytest.fixture
def check(capsys):
    """Run `jupyter agent-nb test`; return its exit code and output lines, without the path."""

    def check(path, *options):
        trust = ["--trust-folder"] if RECIPES[path.stem].trusts else []
        capsys.readouterr()
        code = main(["test", "--timeout", "60", *trust, *options, str(path)])
        return code, [
            line.removeprefix(f"{path}: ").strip() for line in capsys.readouterr().out.splitlines()
        ]

    return check


def _record(recipe, folder, provider):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    path = recipe.write(folder)
    trust = ["--trust-folder"] if recipe.trusts else []
    with pytest.MonkeyPatch.context() as patch:
        provider.route(patch)
        assert main(["run", "--live", "--inplace", *trust, str(path)]) == 0, recipe.name


class _locked:
    """Hold the lock of a file; wait while another process has it."""

    def __init__(self, path):
        self._path = path

    def __enter__(self):
        self._file = os.open(self._path, os.O_RDWR | os.O_CREAT)
        while True:
            try:
                return file_lock.take_lock(self._file)
            except BlockingIOError:
                time.sleep(0.05)

    def __exit__(self, *_):
        os.close(self._file)
