"""Front ends without a browser, each driven in the way of its profile.

- A client that speaks to a kernel in messages (with or without a keyboard, with or without widgets,
  never with a subshell).
- IPython on a pseudo-terminal, nbclient, nbconvert.

Each runs scenes (SCENES) and returns what was `Seen`. A runner executes all its scenes in one
notebook.
"""

from __future__ import annotations

import importlib.util
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from helpers.front_ends import Keyboard, Messages
from helpers.kernels import Kernel
from helpers.lacking import lacking
from helpers.marks import starts
from helpers.notebook_runners import Runner
from helpers.paths import python_path
from helpers.scenes import POLICY, PREPARE
from helpers.shells import Terminal


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A folder for kernels and notebooks, with separate state folders and no keys."""
    folder = tmp_path_factory.mktemp("profiles")
    (folder / "policy.yaml").write_text(POLICY)
    with pytest.MonkeyPatch.context() as patch:
        for name in (
            "XDG_CONFIG_HOME",
            "XDG_STATE_HOME",
            "XDG_DATA_HOME",
            "XDG_CACHE_HOME",
            "IPYTHONDIR",
        ):
            patch.setenv(name, str(folder / name.lower()))
        patch.setenv("PYTHONPATH", python_path())
        patch.setenv("AGENT_NB_TRUST_FOLDER", "1")
        yield folder


@pytest.fixture(scope="module")
@starts("kernel")
def kernel(folder: Path) -> Any:
    """A kernel of this Python."""
    kernel = Kernel(sys.executable, folder)
    assert kernel.run(PREPARE)[0] == "ok"
    yield kernel
    kernel.close()


@pytest.fixture(scope="module")
@starts("kernel")
def terminal(folder: Path) -> Any:
    """IPython on a pseudo-terminal."""
    terminal = Terminal(folder)
    terminal.expect(r"In \[1\]: ", 60)
    (folder / "prepare.py").write_text(PREPARE.replace("%load_ext agent_nb\n", ""))
    terminal.cell("%load_ext agent_nb")
    terminal.cell("exec(open('prepare.py').read())")
    yield Keyboard(terminal)
    terminal.close()


@pytest.fixture(scope="module")
@starts("kernel")
def nbclient(folder: Path) -> Runner:
    """A notebook executed by nbclient."""
    return Runner(folder, convert=False)


@pytest.fixture(scope="module")
@starts("kernel")
def nbconvert(folder: Path) -> Runner:
    """A notebook executed by nbconvert."""
    if importlib.util.find_spec("nbconvert") is None:
        lacking("nbconvert is not installed")
    # a kernel that nobody tells its notebook would find what nbclient has written
    alone = folder / "alone"
    shutil.copytree(folder, alone, ignore=shutil.ignore_patterns("*.ipynb", "alone"))
    return Runner(alone, convert=True)


@pytest.fixture
def profile(request: pytest.FixtureRequest) -> Any:
    """A function that returns the front end of a profile."""

    def profile(name: str) -> Any:
        clients = {
            "no-widgets": {"keyboard": True, "widgets": False},
            "no-stdin": {"keyboard": False, "widgets": True},
            "no-subshell": {"keyboard": True, "widgets": True},
        }
        if name in clients:
            return Messages(request.getfixturevalue("kernel"), **clients[name])
        return request.getfixturevalue(name)

    return profile
