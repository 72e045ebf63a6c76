"""Ctrl-C, SIGTERM and a cancelled CI job end `test` and `run` with one line, and their kernels."""

import os
import signal
import subprocess
import sys
import time

import nbformat
import pytest
from helpers.paths import python_path

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.skipif(os.name == "nt", reason="signals of POSIX"),
]
CELL = """import os, pathlib, time
pathlib.Path('{name}.new').write_text(str(os.getpid()))
os.rename('{name}.new', '{name}.pid')
{work}"""
SLEEP = "time.sleep(300)"
BUSY = "import asyncio\nwhile True:\n    await asyncio.sleep(0.01)"


@pytest.fixture
def begun(tmp_path):
    """Start a command on notebooks and wait until their last cells run: (process, kernels' ids)."""
    started = []

    def begin(command, *works):
        paths = []
        for n, work in enumerate(works):
            cell = nbformat.v4.new_code_cell(CELL.format(name=n, work=work), id="c")
            paths.append(tmp_path / f"n{n}.ipynb")
            nbformat.write(nbformat.v4.new_notebook(cells=[cell]), paths[-1])
        process = subprocess.Popen(
            [sys.executable, "-m", "agent_nb", *command, *map(str, paths)],
            env={**os.environ, "PYTHONPATH": python_path(), "IPYTHONDIR": str(tmp_path / "i")},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        started.append(process)
        marks = [tmp_path / f"{n}.pid" for n in range(len(works))]
        until = time.monotonic() + 90
        while not all(mark.exists() for mark in marks):
            assert process.poll() is None, process.stderr.read()
            assert time.monotonic() < until, "the cells did not begin"
            time.sleep(0.05)
        return process, [int(mark.read_text()) for mark in marks]

    yield begin
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def gone(pid):
    until = time.monotonic() + 20
    while time.monotonic() < until:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False


def lines(said):
    """Return what was said beside the progress."""
    return [line for line in said.splitlines() if "import os" not in line]


@pytest.mark.few("two at once-SIGINT")
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
@pytest.mark.parametrize(
    ("command", "works"),
    [
        (["test"], [SLEEP]),
        (["test"], [BUSY]),
        (["test", "-j", "2"], [SLEEP, BUSY]),
        (["run", "--live"], [SLEEP]),
    ],
    ids=["test", "awaiting", "two at once", "run"],
)
def test_a_signal_ends_it_with_one_line_and_its_kernels(begun, name, command, works):
    process, kernels = begun(command, *works)
    process.send_signal(getattr(signal, name))
    out, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert lines(err) == [f"jupyter agent-nb: stopped by {name}; nothing more was run"]
    assert out == ""
    assert all(map(gone, kernels))


@pytest.mark.long
def test_a_second_signal_leaves_no_kernel_behind(begun):
    """A CI system sends both; an impatient user presses twice."""
    process, [kernel] = begun(["test"], SLEEP)
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=60)
    assert [line.rpartition(";")[2] for line in lines(err)] == [" nothing more was run"]
    assert gone(kernel)
