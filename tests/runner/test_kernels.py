"""The kernels of the runner: which one a notebook gets, and starting the next one early."""

import asyncio
import json
import os
import subprocess
import sys

import nbformat
import pytest
from helpers.paths import python_path
from jupyter_client.kernelspec import KernelSpecManager
from nbformat.v4 import new_code_cell, new_notebook

from agent_nb.cli.main import main
from agent_nb.errors import UsageError
from agent_nb.host import launch
from agent_nb.runner import early_kernels
from agent_nb.runner.cell_client import Client
from agent_nb.runner.early_kernels import EarlyKernels
from agent_nb.runner.execution_options import ExecutionOptions
from agent_nb.runner.kernels import InstalledKernels, choose_kernel, find_kernel

ELSEWHERE = {"name": "of-somebody-else", "display_name": "x"}
LOOK = """
import json, os
from pathlib import Path
from agent_nb.host.launch import LAUNCH
seen = [os.getpid(), os.getcwd(), os.environ["JPY_SESSION_NAME"], LAUNCH._secret.decode()]
Path(os.environ["JPY_SESSION_NAME"]).with_suffix(".json").write_text(json.dumps(seen))
"""


@pytest.fixture(autouse=True)
def reachable(monkeypatch, tmp_path):
    monkeypatch.setenv("PYTHONPATH", python_path())
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))


@pytest.fixture
def notebooks(tmp_path):
    """Write notebooks that print their names; return their paths."""

    def notebooks(*names, source=LOOK, **metadata):
        paths = []
        for name in names:
            path = tmp_path / name / "n.ipynb"
            path.parent.mkdir()
            nbformat.write(
                new_notebook(cells=[new_code_cell(source, id="look")], metadata=metadata), path
            )
            paths.append(path)
        return paths

    return notebooks


@pytest.fixture
def started(monkeypatch):
    """Return the kernels that were started ahead, by notebook."""
    found, plain = [], EarlyKernels._start

    def start(self, notebook):
        found.append((notebook, plain(self, notebook)))
        return found[-1][1]

    monkeypatch.setattr(EarlyKernels, "_start", start)
    return found


def alive(kernel):
    return asyncio.run(kernel.manager.is_alive()) if kernel.manager.has_kernel else False


class TestWhichOne:
    def test_kernels_in_the_folder_of_ipython_are_found(self, tmp_path):
        spec = {"argv": ["x"], "display_name": "Mine", "language": "python"}
        folder = tmp_path / "ipython" / "kernels" / "mine"
        folder.mkdir(parents=True)
        (folder / "kernel.json").write_text(json.dumps(spec))
        assert find_kernel({"metadata": {"kernelspec": {"name": "mine"}}}) == ("mine", "")
        assert InstalledKernels().kernel_dirs == KernelSpecManager().kernel_dirs

    def test_without_such_a_folder_ipython_is_not_imported(self):
        code = "import sys; from agent_nb.runner.kernels import find_kernel as f; print(f({})[0], 'IPython' in sys.modules)"
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
        assert done.stdout == "python3 False\n"

    def test_nothing_that_runs_agents_is_imported_before_a_kernel_starts(self):
        code = "import sys, agent_nb.cli.main, agent_nb.runner.notebook_check; print('agent_nb.agent.loop' in sys.modules)"
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
        assert done.stdout == "False\n"

    @pytest.mark.parametrize(
        "metadata",
        [
            {"kernelspec": {**ELSEWHERE, "language": "python"}},
            {"kernelspec": ELSEWHERE, "language_info": {"name": "python"}},
        ],
    )
    def test_a_missing_kernel_in_python_is_replaced_by_the_default_one(self, metadata):
        assert find_kernel({"metadata": metadata}) == ("python3", "of-somebody-else")

    @pytest.mark.parametrize(
        "metadata",
        [
            {"kernelspec": {**ELSEWHERE, "language": "R"}},
            {"kernelspec": ELSEWHERE, "language_info": {"name": "julia"}},
            {"kernelspec": ELSEWHERE},
        ],
    )
    def test_any_other_is_an_error_that_names_those_that_are_here(self, metadata):
        with pytest.raises(
            UsageError,
            match=r"'of-somebody-else' is not installed\. Installed: .*python3.*--kernel",
        ):
            find_kernel({"metadata": metadata})

    @pytest.mark.parametrize(
        "metadata",
        [None, [], {"kernelspec": []}, {"kernelspec": {"name": None}}, {"language_info": 1}],
    )
    def test_a_notebook_that_names_none_gets_the_default_one(self, metadata):
        assert find_kernel({"metadata": metadata}) == ("python3", "")

    @pytest.mark.long
    @pytest.mark.kernel
    def test_one_line_on_stderr_says_so_and_json_stays_json(self, notebooks, capsys):
        (path,) = notebooks("a", kernelspec={**ELSEWHERE, "language": "python"})
        for command in (["run", "--json"], ["test", "--json"]):
            assert main([*command, str(path)]) == 0
            told = capsys.readouterr()
            json.loads(told.out)
            assert [line for line in told.err.splitlines() if "not installed" in line] == [
                f"agent_nb: {path}: the kernel 'of-somebody-else' is not installed; 'python3' runs this notebook in Python."
            ]

    @pytest.mark.kernel
    def test_a_notebook_without_a_kernel_here_fails_and_the_others_run(self, notebooks, capsys):
        (other,) = notebooks("a", kernelspec={**ELSEWHERE, "language": "R"})
        (path,) = notebooks("b")
        assert main(["test", str(other), str(path)]) == 1
        told = capsys.readouterr().out
        assert "'of-somebody-else' is not installed" in told
        assert "1 passed" in told


@pytest.mark.kernel
def test_the_collector_of_garbage_works_and_spares_what_the_kernel_loads(notebooks):
    source = "import gc\nassert gc.isenabled()\nassert gc.get_freeze_count() > 10_000"
    assert main(["test", *map(str, notebooks("a", source=source))]) == 0


@pytest.mark.kernel
class TestAhead:
    @pytest.mark.few(1)
    @pytest.mark.parametrize("jobs", ["1", "2"])
    def test_each_notebook_has_a_fresh_kernel_that_was_started_for_it(
        self, notebooks, started, jobs
    ):
        paths = notebooks("a", "b", "c", "d")
        assert main(["test", "-j", jobs, *map(str, paths)]) == 0
        seen = [json.loads(path.with_suffix(".json").read_text()) for path in paths]
        assert len({pid for pid, *_ in seen}) == len({proof for *_, proof in seen}) == 4
        assert [(folder, notebook) for _, folder, notebook, _ in seen] == [
            (str(p.parent), str(p)) for p in paths
        ]
        assert started
        for path, kernel in started:
            assert kernel.proof == seen[paths.index(path)][-1]
            assert not alive(kernel)
        assert launch.Launch.PROOF not in os.environ

    @pytest.mark.long
    def test_one_is_started_while_another_runs_and_ends_with_the_command(self, notebooks, started):
        a, b, c = notebooks("a", "b", "c")
        with EarlyKernels([a, b, c], lambda path: choose_kernel(path, {})) as ahead:
            for path in (a, b):
                kernel = ahead.take(path, choose_kernel(path, {}))
                assert alive(kernel)
                kernel.stop()
        assert [path for path, _ in started] in ([a, b], [a, b, c])
        assert not any(alive(kernel) for _, kernel in started)

    @pytest.mark.long
    def test_a_kernel_that_no_longer_fits_the_notebook_is_not_used(self, notebooks, started):
        a, b = notebooks("a", "b")
        with EarlyKernels(
            [a, b], lambda path: choose_kernel(path, {}, ExecutionOptions(zone="UTC"))
        ) as ahead:
            ahead.take(a, choose_kernel(a, {}))
            assert (
                ahead.take(b, choose_kernel(b, {}, ExecutionOptions(zone="Europe/Berlin"))) is None
            )
            assert not alive(started[0][1])

    @pytest.mark.long
    def test_a_kernel_ahead_serves_only_its_notebook(self, notebooks, started):
        a, b, c = notebooks("a", "b", "c")
        with EarlyKernels([a, b, c], lambda path: choose_kernel(path, {})) as ahead:
            ahead.take(a, choose_kernel(a, {})).stop()
            assert ahead.take(c, choose_kernel(c, {})) is None

    @pytest.mark.long
    def test_a_notebook_that_takes_no_kernel_does_not_end_the_early_starts(
        self, notebooks, started
    ):
        a, b, c, d = notebooks("a", "b", "c", "d")
        with EarlyKernels([a, b, c, d], lambda path: choose_kernel(path, {})) as ahead:
            ahead.take(a, choose_kernel(a, {})).stop()
            ahead.discard(b)
            assert not any(alive(kernel) for path, kernel in started if path == b)
            for path in (c, d):
                ahead.take(path, choose_kernel(path, {})).stop()

    @pytest.mark.long
    def test_a_kernel_that_does_not_start_ahead_is_started_by_its_notebook(
        self, notebooks, monkeypatch
    ):
        async def fails(_):
            raise RuntimeError("no port is free")

        monkeypatch.setattr(early_kernels, "_start_kernel", fails)
        assert main(["test", *map(str, notebooks("a", "b"))]) == 0


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (None, r"no answer"),
        ({"status": "error", "ename": "UsageError", "evalue": "no relay"}, "UsageError: no relay"),
    ],
)
def test_a_kernel_in_which_the_tape_cannot_start_is_an_error_in_words(reply, why):
    class Kernel:
        def execute(self, code, **options):
            return "mine"

        async def get_shell_msg(self):
            if reply is None:  # it has died
                await asyncio.Event().wait()
            return {"parent_header": {"msg_id": "mine"}, "content": reply}

    client = Client(nbformat.v4.new_notebook(), {}, lambda *_: None, startup_timeout=0)
    with pytest.raises(UsageError, match=rf"The tape cannot start in this kernel \({why}\)"):
        asyncio.run(client._load_extension(Kernel()))
