"""Forged notebooks, executed in every way a notebook is: nothing of them runs, writes or asks a
model unasked.

The cases are a table (`forgeries`); one notebook holds them all, and each runner executes it once.
Where the cases' code could run is shown by `--trust-record`.
"""

import json
import os
import queue
import shutil
import subprocess
import sys
import time
from importlib.metadata import entry_points

import nbformat
import pytest
from helpers.forgeries import CASES, KINDS, MINE, marks, own, unasked, written
from helpers.kernels import Kernel
from helpers.paths import python_path
from nbclient import NotebookClient

from agent_nb.cli.main import main
from agent_nb.record.ipynb import load_notebook
from agent_nb.record.notebook_file import NotebookRuns

# a test executes some hundred cells at most
pytestmark = [pytest.mark.kernel, pytest.mark.timeout(400)]


def plainly(path, patch, **environment):
    """Execute as `jupyter execute` does: the kernel learns of the file from the
    environment only.
    """
    for name, value in {"AGENT_NB_NOTEBOOK": str(path), **environment}.items():
        patch.setenv(name, value)
    client = NotebookClient(
        nbformat.read(path, 4), resources={"metadata": {"path": str(path.parent)}}, timeout=120
    )
    client.execute()


def by_pytest(path, patch):
    """Execute as `pytest --agent-nb` does."""
    patch.setenv(
        "PYTHONPATH",
        python_path(),
    )
    plugin = (
        ()
        if entry_points(group="pytest11", name="agent_nb")
        else ("-p", "agent_nb.runner.pytest_plugin")
    )
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        *plugin,
        "--agent-nb",
        path.name,
    ]
    done = subprocess.run(
        command, cwd=path.parent, capture_output=True, text=True, timeout=300, check=False
    )
    assert "1 failed" in done.stdout, done.stdout + done.stderr


class Lab:
    """Executes cells as JupyterLab does: their metadata go along, and whoever looks on says no to
    every question.
    """

    def __init__(self, path):
        self.kernel = Kernel(sys.executable, path.parent)
        self.client = self.kernel.client
        self.asked = 0
        self._buttons = {}

    def run(self, cell, seconds=60):
        content = {
            "code": "".join(cell["source"]),
            "silent": False,
            "store_history": True,
            "user_expressions": {},
            "allow_stdin": True,
            "stop_on_error": False,
        }
        metadata = {
            **cell["metadata"],
            "trusted": True,
            "deletedCells": [],
            "recordTiming": False,
            "cellId": cell["id"],
        }
        message = self.client.session.msg("execute_request", content, metadata=metadata)
        self.client.shell_channel.send(message)
        until = time.monotonic() + seconds
        while not self._ended(message["header"]["msg_id"]):
            assert time.monotonic() < until, f"the cell {cell['id']} does not end"

    def _ended(self, request):
        """Take one message; return whether it says that the request is done."""
        try:
            self.client.get_stdin_msg(timeout=0)
            self.client.input("n")
            self.asked += 1
        except queue.Empty:
            pass
        try:
            message = self.client.get_iopub_msg(timeout=0.1)
        except queue.Empty:
            return False
        kind, content = message["msg_type"], message["content"]
        if kind in ("comm_open", "comm_msg") and (state := content["data"].get("state")):
            self._button(content["comm_id"], state)
        return (
            kind == "status"
            and content["execution_state"] == "idle"
            and message["parent_header"].get("msg_id") == request
        )

    def _button(self, comm, state):
        button = self._buttons.setdefault(comm, {})
        fresh = not button.get("pressed")
        button.update(state)
        if fresh and button.get("description") == "Deny" and not button.get("disabled"):
            button["pressed"] = True
            data = {"method": "custom", "content": {"event": "click"}}
            self.client.shell_channel.send(
                self.client.session.msg("comm_msg", {"comm_id": comm, "data": data})
            )
            self.asked += 1


def in_lab(path, patch):
    """Execute as JupyterLab does, in a kernel that a Jupyter server has started."""
    patch.setenv("JPY_SESSION_NAME", str(path))
    lab = Lab(path)
    try:
        for cell in load_notebook(path)["cells"]:
            lab.run(cell)
    finally:
        lab.kernel.close()
    assert lab.asked > 20, "what would run is asked about"


RUNNERS = {
    "run": lambda path, patch: main(["run", "--inplace", str(path)]),
    "run-replay": lambda path, patch: main(["run", "--inplace", "--rerun", "replay", str(path)]),
    "test": lambda path, patch: main(["test", str(path)]),
    "pytest": by_pytest,
    "plain": plainly,
    "plain-replay": lambda path, patch: plainly(path, patch, AGENT_NB_RERUN="replay"),
    "lab": in_lab,
}  # fmt: skip
FAST = "run"
EACH_RUNNER = [
    pytest.param(name, marks=[] if name == FAST else pytest.mark.long) for name in RUNNERS
]


@pytest.fixture(scope="module")
def executed(tmp_path_factory):
    """runner -> the marks after it has executed the notebook, and its path; each runs once, when it
    is first asked for.
    """
    root = tmp_path_factory.mktemp("forged")
    (root / "jupyter").mkdir()
    (root / "jupyter" / "notebook_secret").write_bytes(MINE)
    known = {}

    def once(runner, work):
        if runner not in known:
            path = written(root / runner)
            known[runner] = None
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("JUPYTER_DATA_DIR", str(root / "jupyter"))
                work(path, patch)
            known[runner] = marks(path.parent), path
        assert known[runner] is not None, "it could not be executed: see the first failure"
        return known[runner]

    yield once
    shutil.rmtree(root, ignore_errors=True)


def test_there_are_at_least_sixty_of_every_kind():
    assert len(CASES) >= 60
    assert len(CASES) == sum(map(len, KINDS.values()))
    assert all(len(cases) >= 5 for cases in KINDS.values())


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("runner", EACH_RUNNER)
def test_nothing_of_it_happens_unasked(executed, runner, case):
    found, _ = executed(runner, RUNNERS[runner])
    assert unasked(case, found, runner) == set()


@pytest.mark.parametrize("runner", ["run", pytest.param("lab", marks=pytest.mark.long)])
def test_a_cell_in_which_nothing_was_forged_still_asks_its_model(executed, runner):
    """The notebook really runs: cells whose records do not count go live."""
    found, _ = executed(runner, RUNNERS[runner])
    assert {
        "arguments-altered-and-the-old-hash.model",
        "go-live-where-nothing-is-recorded.model",
    } <= found


@pytest.mark.long
@pytest.mark.parametrize("case", CASES)
def test_with_trust_it_runs_unless_it_is_broken_or_never_runs_again(executed, case):
    trusting = ["run", "--inplace", "--rerun", "replay", "--trust-record"]
    found, _ = executed("trusted", lambda path, patch: main([*trusting, str(path)]))
    assert (case in found) is CASES[case].trusted


@pytest.mark.long
def test_a_plain_runner_finds_the_same_records(executed):
    found, _ = executed(
        "trusted-plain",
        lambda path, patch: plainly(
            path, patch, AGENT_NB_TRUST_RECORD="1", AGENT_NB_RERUN="replay"
        ),
    )
    assert found >= {name for name, case in CASES.items() if case.trusted}


def test_what_the_user_has_signed_is_still_there_afterwards(executed):
    _, path = executed("run", RUNNERS["run"])
    kept = {
        r["signature"]
        for listed in NotebookRuns(load_notebook(path)).by_cell().values()
        for r in listed
        if r.get("signature")
    }
    missing = [
        n
        for n, case in CASES.items()
        for r in case.records(n)
        if r == own(n) and r["signature"] not in kept
    ]
    assert missing == []


@pytest.mark.parametrize("runner", EACH_RUNNER)
def test_no_file_is_written_that_a_cell_names(executed, runner):
    _, path = executed(runner, RUNNERS[runner])
    assert sorted(os.listdir(path.parent)) == sorted(
        {"canary", "n.ipynb", "other.ipynb", *_own_files(path.parent)}
    )


def _own_files(folder):
    """Return the files that kernels and test runners leave beside a notebook."""
    return {
        p.name
        for p in folder.iterdir()
        if p.name.startswith((".", "__pycache__", "profile_", "history", "security"))
    }


def test_the_marks_of_a_notebook_are_told_from_a_notebook_that_did_not_run(tmp_path):
    path = written(tmp_path / "n", {"unsigned": CASES["unsigned"]})
    with pytest.raises(FileNotFoundError):
        marks(path.parent)
    assert json.loads(path.read_text())["cells"][0]["id"] == "setup"
