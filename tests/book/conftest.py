"""The built book, for tests of its pages."""

import subprocess
import sys

import pytest
from helpers.lacking import needed
from helpers.paths import EXAMPLES, python_path


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    """The folder of the built book."""
    needed("sphinx")
    needed("myst_nb")
    needed("furo")
    out = tmp_path_factory.mktemp("book")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going"]
    command += ["-c", str(EXAMPLES / "book"), "-d", str(out / ".trees"), str(EXAMPLES), str(out)]
    environment = {"PYTHONPATH": python_path(), "PATH": "/usr/bin:/bin", "HOME": str(out)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return out
