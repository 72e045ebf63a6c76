"""A notebook in a hostile folder: whoever executes it, nothing of the folder is executed, obeyed or
sent without a yes.

Every case is a file (or two) that a stranger may put beside a notebook; if it had its way it would
leave its name in the folder `marks`. One notebook uses all that agent_nb has; it is executed by
each runner in a folder that holds all cases at once.

The counters are honest: the same folder with the user's yes leaves the marks of `WITH_A_YES`, and a
notebook without agents leaves none, so that no mark is the doing of Jupyter itself.
"""

import json
import os
import shutil
import subprocess
import sys

import nbformat
import pytest
from helpers.hostile_folder import CASES, MODULE, WITH_A_YES, Requests, cells, hostile, written
from helpers.paths import python_path
from nbclient import NotebookClient

from agent_nb.cli.main import main

pytestmark = [pytest.mark.kernel, pytest.mark.fresh_kernel, pytest.mark.timeout(400)]


def plainly(path, patch):
    """As `jupyter execute` does."""
    client = NotebookClient(
        nbformat.read(path, 4), resources={"metadata": {"path": str(path.parent)}}, timeout=120
    )
    client.execute()


def as_a_front_end(path, patch):
    """As a notebook does, and nobody answers."""
    from jupyter_client.manager import start_new_kernel

    manager, client = start_new_kernel(cwd=str(path.parent))
    try:
        for cell in json.loads(path.read_text())["cells"]:
            content = {
                "code": cell["source"],
                "silent": False,
                "store_history": True,
                "user_expressions": {},
                "allow_stdin": False,
            }
            client.shell_channel.send(
                message := client.session.msg(
                    "execute_request", {**content, "stop_on_error": False}
                )
            )
            while (
                client.get_shell_msg(timeout=120)["parent_header"].get("msg_id")
                != message["header"]["msg_id"]
            ):
                pass
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def under_pytest(path, patch):
    """As a test of the folder, started elsewhere."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--agent-nb",
        str(path),
    ]
    subprocess.run(command, cwd=path.parents[1], check=False, capture_output=True, timeout=300)


def as_a_module(path, patch):
    """As `python -m agent_nb` there, which has the folder first on its path."""
    for arguments in (["test", path.name], ["doctor"], ["run", "--live", "--inplace", path.name]):
        command = [sys.executable, "-m", "agent_nb", *arguments]
        subprocess.run(command, cwd=path.parent, check=False, capture_output=True, timeout=300)


RUNNERS = {
    "kernel": as_a_front_end,
    "nbclient": plainly,
    "run": lambda path, patch: main(["run", "--live", "--inplace", str(path)]),
    "test": lambda path, patch: main(["test", str(path)]),
    "pytest": under_pytest,
    "module": as_a_module,
}  # fmt: skip


FAST = "nbclient"
EACH_RUNNER = [
    pytest.param(name, marks=[] if name == FAST else pytest.mark.long) for name in RUNNERS
]
REPLAYING = ("test", "pytest")  # the notebook was recorded before the folder became hostile


@pytest.fixture(scope="module")
def executed(tmp_path_factory):
    """(what, work) -> the marks that were left and the requests that were made; each is executed
    once, when it is first asked for.
    """
    root = tmp_path_factory.mktemp("hostile")
    known = {}

    def once(what, work, *, sources=cells, **environment):
        if what not in known:
            server = Requests()
            path, marks = written(root / what, sources)
            with pytest.MonkeyPatch.context() as patch:
                own = {
                    "JUPYTER_DATA_DIR": root / what / "jupyter",
                    "HOME": root / what / "home",
                    "XDG_STATE_HOME": root / what / "state",
                }
                for name, value in own.items():
                    value.mkdir()
                    patch.setenv(name, str(value))
                patch.setenv(
                    "PYTHONPATH",
                    python_path(),
                )
                for name, value in {
                    "HTTPS_PROXY": server.url,
                    "HTTP_PROXY": server.url,
                    **environment,
                }.items():
                    patch.setenv(name, value)
                if what in REPLAYING:
                    main(["run", "--live", "--inplace", str(path)])
                    (root / what / "last").unlink()
                hostile(path.parent, marks, server.url)
                work(path, patch)
            server.close()
            known[what] = (
                {*os.listdir(marks), *(["a request"] if server.count else [])},
                path.parents[1],
            )
        return known[what]

    yield once
    shutil.rmtree(root, ignore_errors=True)


def test_there_are_at_least_sixty():
    assert len(CASES) >= 60


def test_no_mark_is_the_doing_of_jupyter_itself(executed):
    found, _ = executed(
        "control",
        plainly,
        sources=lambda marks: [("a", "import helper"), ("b", "1 / 0"), ("c", "print(helper)")],
    )
    assert found == set()


@pytest.mark.parametrize("case", [*CASES, "a request"])
@pytest.mark.parametrize("runner", EACH_RUNNER)
def test_nothing_of_the_folder_is_executed_obeyed_or_sent(executed, runner, case):
    assert case not in executed(runner, RUNNERS[runner])[0]


@pytest.mark.parametrize("runner", EACH_RUNNER)
def test_the_notebook_itself_works_there(executed, runner):
    _, place = executed(runner, RUNNERS[runner])
    assert (place / "last").read_text() == "helpedhelped"


@pytest.mark.parametrize("runner", EACH_RUNNER)
def test_the_folder_does_not_choose_the_model(executed, runner):
    _, place = executed(runner, RUNNERS[runner])
    assert not (place / "chosen").exists() or (place / "chosen").read_text() == "local/smollm2"


@pytest.mark.long
def test_with_a_yes_the_policies_and_the_keys_count_and_nothing_else(executed):
    found, place = executed("yes", plainly, AGENT_NB_TRUST_FOLDER="yes")
    assert found == WITH_A_YES
    assert not (place / "chosen").exists() or (place / "chosen").read_text() == "local/smollm2"


@pytest.mark.few(1)
@pytest.mark.parametrize(("yes", "left"), [("", set()), ("yes", {"config-mcp"})])
def test_a_server_of_the_folder_starts_only_after_a_yes_of_its_own(executed, yes, left):
    def sources(marks):
        return [
            ("a", "%load_ext agent_nb\nfrom agent_nb import Scripted\nhello = Scripted(['hi'])"),
            ("b", "%%agent -m hello -t mcp:evil\ngo"),
        ]

    environment = {"AGENT_NB_TRUST_FOLDER": "yes", "AGENT_NB_TRUST_MCP": yes}
    found, _ = executed(f"mcp{yes}", plainly, sources=sources, **environment)
    assert found == left


@pytest.mark.long
@pytest.mark.parametrize(("yes", "requests"), [("", False), ("yes", True)])
def test_a_configuration_by_a_relative_path_counts_after_a_yes(executed, yes, requests):
    def sources(marks):
        return [("a", "%load_ext agent_nb"), ("b", "%%agent\nhello"), ("c", "%agent models")]

    found, _ = executed(
        f"config{yes}",
        plainly,
        sources=sources,
        AGENT_NB_CONFIG="agent.toml",
        AGENT_NB_TRUST_FOLDER=yes,
    )
    assert ("a request" in found) is requests


STARTING = (
    "fnmatch",
    "ipykernel",
    "ipykernel_launcher",
    "IPython",
    "jupyter_client",
    "pathlib",
    "runpy",
    "tornado",
    "traitlets",
    "zmq",
)


@pytest.mark.few(1)
@pytest.mark.parametrize("command", ["run", "test"])
def test_a_kernel_that_we_start_imports_nothing_of_the_folder_on_its_way(tmp_path, command):
    """Others start kernels with the folder first on the path; what these import before the notebook
    runs is not ours.
    """
    path, marks = written(
        tmp_path, lambda marks: [("a", "import helper\nassert helper.answer == 'helped'")]
    )
    for name in STARTING:
        (path.parent / f"{name}.py").write_text(MODULE.format(case=name, marks=str(marks)))
    assert main([command, str(path)]) == 0
    assert os.listdir(marks) == []
