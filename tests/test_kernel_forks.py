"""Kernels that the tests fork are like kernels that are started."""

import json
import os
import subprocess
import sys

import pytest
from helpers.kernel_forks import ForkedKernel, Forks, forks_kernels
from jupyter_client.manager import KernelManager

from agent_nb.runner.kernels import use_own_launcher

LOOK = """
import json, os, signal, sys
seen = {
    "environment": {n: v for n, v in os.environ.items() if not n.startswith(("JPY_", "PYDEVD_"))},
    "parent": int(os.environ["JPY_PARENT_PID"]) == os.getppid(),
    "interrupt": str(signal.getsignal(signal.SIGINT)),
    "group": os.getpgid(0) == os.getsid(0) == os.getpid(),
    "folder": os.getcwd(),
    "flags": str(sys.flags),
    "path": sys.path,
    "main": sorted(vars(sys.modules["__main__"])),
    "files": sorted(os.readlink(f"/proc/self/fd/{n}").split(":")[0] for n in (1, 2)),
    "ours": [name for name in sys.modules if name.startswith(("agent_nb", "helpers"))],
}
print(json.dumps(seen), file=open("seen.json", "w"))
"""


@pytest.mark.kernel
@pytest.mark.skipif(sys.platform != "linux", reason="kernels are forked on Linux only")
@pytest.mark.parametrize("prepare", [lambda manager: None, use_own_launcher], ids=["usual", "ours"])
def test_a_forked_kernel_is_like_a_started_one(tmp_path, monkeypatch, prepare):
    forks, seen = Forks(), []
    for opener in (subprocess.Popen, forks.open_kernel):
        monkeypatch.setattr("jupyter_client.launcher.Popen", opener)
        manager = KernelManager()
        prepare(manager)
        manager.start_kernel(
            cwd=str(tmp_path),
            env={**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONHASHSEED": "0"},
        )
        client = manager.blocking_client()
        client.start_channels()
        client.wait_for_ready(timeout=60)
        assert client.execute_interactive(LOOK, timeout=60)["content"]["status"] == "ok"
        client.stop_channels()
        process = manager.provisioner.process
        manager.shutdown_kernel(now=True)
        manager.cleanup_resources()
        code = {"code": process.returncode}
        seen.append(json.loads((tmp_path / "seen.json").read_text()) | code)
    forks.close()
    assert isinstance(process, ForkedKernel)
    started, forked = seen
    assert {name: forked[name] for name in started if forked[name] != started[name]} == {}


@pytest.mark.parametrize(
    "name", ["LD_PRELOAD", "LC_ALL", "PYTHONHASHSEED", "PYTHONWARNINGS", "PYTHONPATH"]
)
def test_a_kernel_whose_environment_changes_its_start_is_started(monkeypatch, tmp_path, name):
    (tmp_path / "sitecustomize.py").touch()
    monkeypatch.setattr(subprocess, "Popen", lambda command, **options: command)
    command = [sys.executable, "-m", "ipykernel_launcher", "-f", "x"]
    environment = {**os.environ, name: str(tmp_path)}
    options = {"env": environment, "stdout": None, "stderr": None, "cwd": None}
    assert Forks().open_kernel(command, **options) is command


@pytest.mark.parametrize(
    ("marks", "outside", "in_ci"),
    [
        ({"kernel"}, True, False),
        ({"kernel", "fresh_kernel"}, False, False),
        ({"kernel", "forked_kernel"}, True, True),
        ({"slow"}, False, False),
    ],
)
def test_kernels_are_forked_in_ci_only_where_a_mark_says_so(marks, outside, in_ci):
    assert forks_kernels(marks, in_ci=False) is outside
    assert forks_kernels(marks, in_ci=True) is in_ci
