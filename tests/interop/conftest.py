"""The example notebooks in a folder of their own, and other people's tools that run in a closed
network.

How a user gets a replay out of a tool that knows nothing of this package (what these tests do):

- `AGENT_NB_NOTEBOOK=path/of/the.ipynb` says which file the kernel runs. `jupyter execute`,
  papermill and `nbconvert --execute` need it where the cell stands in several notebooks of the
  kernel's folder, or in none; under pytest (nbmake) the package's plug-in says it.
- `AGENT_NB_RERUN=replay` makes a cell without a fitting record fail. Without it (`auto`) such a
  cell calls its model.
- `AGENT_NB_TRUST_RECORD=1` lets code of records run again that this user has not signed: notebooks
  of somebody else, a fresh machine.
"""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.lacking import lacking
from helpers.marks import starts
from helpers.paths import CHECKOUT

EXAMPLES = CHECKOUT / "examples"
PATIENCE = 240  # seconds for one command

# Run by a Python that is root of a network of its own: brings its loopback up, then becomes the
# command.
LOOPBACK_ONLY = """
import fcntl, os, socket, struct, sys
with socket.socket() as s:
    fcntl.ioctl(s, 0x8914, struct.pack("16sh", b"lo", 0x49))
os.execvp(sys.argv[1], sys.argv[1:])
"""

# What Python processes import first where networks cannot be unshared.
REFUSING = """
import ipaddress, socket

def loopback(address):
    if not isinstance(address, tuple) or address[0] in ("", "localhost"):
        return True
    try:
        return ipaddress.ip_address(address[0]).is_loopback
    except ValueError:
        return False

def refusing(plain):
    def connect(self, address):
        if not loopback(address):
            raise ConnectionRefusedError(f"the network is closed: {address}")
        return plain(self, address)
    return connect

socket.socket.connect = refusing(socket.socket.connect)
socket.socket.connect_ex = refusing(socket.socket.connect_ex)
"""


# examples that need a package which the README's test command does not install
NEEDED = {"tape_langchain.ipynb": "langchain"}
LEFT_OUT = [
    name
    for name, package in NEEDED.items()
    if importlib.util.find_spec(package) is None and os.environ.get("CI") != "true"
]


def notebooks():
    """The example notebooks, by their path below the examples."""
    found = [p.relative_to(EXAMPLES).as_posix() for p in EXAMPLES.rglob("*.ipynb")]
    return sorted(
        p
        for p in found
        if not p.endswith(".run.ipynb")
        and not any(part.startswith(".") for part in Path(p).parts)
        and p not in LEFT_OUT
    )


def pytest_generate_tests(metafunc):
    """Run tests that ask for an `example` on each of them."""
    if "example" in metafunc.fixturenames:
        metafunc.parametrize("example", notebooks(), ids=lambda name: Path(name).stem)


@pytest.fixture(scope="session")
def others():
    """Skip where the tools are not installed; in CI their absence is a failure."""
    missing = [
        name
        for name in ("papermill", "nbmake", "nbconvert")
        if importlib.util.find_spec(name) is None
    ]
    if missing:
        lacking(f"{', '.join(missing)} missing: pip install '.[interop]'")


@pytest.fixture
def names():
    """The names of all example notebooks."""
    return notebooks()


def copied(folder):
    """Copy the examples into a folder; return where they are."""
    return Path(
        shutil.copytree(
            EXAMPLES,
            folder / "examples",
            ignore=shutil.ignore_patterns(".*", "*.run.ipynb", *LEFT_OUT),
        )
    )


@pytest.fixture
def examples(tmp_path):
    """A copy of the examples, where tools may write."""
    return copied(tmp_path)


@pytest.fixture
def original():
    """The path of an example as the repository has it, by its name."""
    return lambda name: EXAMPLES / name


@pytest.fixture(scope="session")
def closed(tmp_path_factory):
    """(what stands before a command, what its environment adds) for a network in which there is
    only loopback.
    """
    for unshare in (["unshare", "-n"], ["unshare", "-rn"]):
        prefix = [*unshare, sys.executable, "-c", LOOPBACK_ONLY]
        if (
            shutil.which("unshare")
            and subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode == 0
        ):
            return prefix, {}
    folder = tmp_path_factory.mktemp("refusing")
    (folder / "sitecustomize.py").write_text(REFUSING)
    return [], {"PYTHONPATH": str(folder)}


@pytest.fixture(scope="session")
@starts("kernel")
def in_the_closed(closed, tmp_path_factory):
    """Run `python -m …` with the network closed, every key gone, and strict replay; return the
    finished process, output as text.
    """
    prefix, added = closed
    home = tmp_path_factory.mktemp("ipython")

    def run(*command, cwd, check=True, **variables):
        path = os.pathsep.join(
            filter(None, [added.get("PYTHONPATH"), str(CHECKOUT), os.environ.get("PYTHONPATH")])
        )
        environment = {
            **{
                k: v
                for k, v in os.environ.items()
                if not k.upper().endswith(("KEY", "TOKEN", "SECRET", "PASSWORD"))
            },
            "PYTHONPATH": path,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "PWD": str(cwd),
            "IPYTHONDIR": str(home),
            "AGENT_NB_RERUN": "replay",
            "AGENT_NB_TRUST_RECORD": "1",
            **variables,
        }
        done = subprocess.run(
            [*prefix, sys.executable, "-m", *map(str, command)],
            cwd=cwd,
            env=environment,
            text=True,
            timeout=PATIENCE,
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        assert not check or done.returncode == 0, done.stdout[-4000:]
        return done

    return run


@pytest.fixture
def tool(in_the_closed, clean_environment):
    """The same, in the environment of one test: its home is its own."""
    return in_the_closed


@pytest.fixture(scope="session")
def converted(in_the_closed, tmp_path_factory):
    """Every example as HTML, made by one command: {name of the example: path of its page}."""
    here = copied(tmp_path_factory.mktemp("html"))
    in_the_closed("nbconvert", "--to", "html", *notebooks(), cwd=here)
    return {name: (here / name).with_suffix(".html") for name in notebooks()}


@pytest.fixture
def read():
    """Read a notebook's JSON."""
    return lambda path: json.loads(Path(path).read_text(encoding="utf-8"))
