"""Kernels of this Python, forked from a process that has loaded ipykernel.

Why: nearly all processor time of a kernel's start is imports of ipykernel, and the fast tests start
more than a hundred kernels. A plug-in of pytest; `forking_process.py` is what it starts.

Rules
- A forked kernel has what a started one has: a session of its own, its environment, folder, path
  and streams, and none of our modules. Its hash seed is 0, as that of our runner's kernels. Some
  packages that ours needs are loaded already.
- On other systems than Linux 5.3 or newer, in tests with the mark `fresh_kernel`, in CI (`CI`) in
  all tests without the mark `forked_kernel`, and with other settings of Python, its loader or its
  locale than here, kernels are started.
"""

import io
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any

import pytest


def _can_watch() -> bool:
    """Return whether the end of a process can be waited for as that of a file (Linux 5.3)."""
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (AttributeError, OSError):
        return False
    return True


CAN_FORK = _can_watch()
IN_CI = "CI" in os.environ
PROGRAM = Path(__file__).with_name("forking_process.py")
STARTS = (["-m", "ipykernel_launcher"], ["-P", "-c"])  # of jupyter_client, and of our runner
SETTINGS = ("PYTHON", "LD_", "LC_", "LANG")
PID = 10  # characters
QUIET = {"PYDEVD_DISABLE_FILE_VALIDATION": "1"}


class ForkedKernel:
    """What jupyter_client uses of the `Popen` of a kernel."""

    def __init__(self, answers: int) -> None:
        self._answers = answers  # a pipe: the id of the process, and at its end its return code
        self.pid = int(os.read(answers, PID))
        self.returncode: int | None = None
        self.stdin = io.BytesIO()  # closed by jupyter_client
        self.stdout = self.stderr = None

    def poll(self) -> int | None:
        return self._read_end(0)

    def wait(self, timeout: float | None = None) -> int | None:
        if self._read_end(timeout) is None:
            raise subprocess.TimeoutExpired("a kernel", timeout or 0)
        return self.returncode

    def _read_end(self, seconds: float | None) -> int | None:
        if self.returncode is None and select.select([self._answers], [], [], seconds)[0]:
            self.returncode = int(os.read(self._answers, PID) or -signal.SIGKILL)
            os.close(self._answers)
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class Forks:
    """The processes that fork kernels for the tests of this process; each starts when needed."""

    def __init__(self) -> None:
        self._processes: dict[str, tuple[subprocess.Popen[bytes], socket.socket]] = {}
        self._settings = _select_settings(os.environ)
        self._starting = threading.Lock()

    def open_kernel(self, command: list[str], **options: Any) -> Any:
        """Do as `subprocess.Popen` for the command of a kernel."""
        streams = [options["stdout"] or sys.__stdout__, options["stderr"] or sys.__stderr__]
        if not (
            command[0] == sys.executable
            and command[1:3] in STARTS
            and _select_settings(options["env"]) == self._settings
            and not _is_customized(options["env"])
            and all(hasattr(stream, "fileno") for stream in streams)
        ):
            return subprocess.Popen(command, **options)
        with self._starting:
            if command[1] not in self._processes:
                self._processes[command[1]] = self._start(["-P"] if command[1] == "-P" else [])
        answers, to_answer = os.pipe()
        request = [command[1:], os.path.abspath(options["cwd"] or ""), dict(options["env"])]
        numbers = [to_answer, *(stream.fileno() for stream in streams)]
        _, control = self._processes[command[1]]
        socket.send_fds(control, [json.dumps(request).encode()], numbers)
        os.close(to_answer)
        return ForkedKernel(answers)

    def _start(self, flags: list[str]) -> tuple[subprocess.Popen[bytes], socket.socket]:
        control, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        others = {n: v for n, v in os.environ.items() if not n.startswith(SETTINGS)}
        with other:
            process = subprocess.Popen(
                [sys.executable, *flags, str(PROGRAM), str(other.fileno())],
                stdin=subprocess.DEVNULL,
                pass_fds=[other.fileno()],
                env={**others, **self._settings, **QUIET},
                start_new_session=True,
            )
        return process, control

    def close(self) -> None:
        """End the processes."""
        for process, control in self._processes.values():
            control.close()
            process.terminate()
            process.wait()


def _select_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """Return what changes a Python before its first line; the forked one makes its path itself."""
    names = {name for name in environment if name.startswith(SETTINGS)} - {"PYTHONPATH"}
    return {"PYTHONHASHSEED": "0"} | {name: environment[name] for name in names}


def _is_customized(environment: Mapping[str, str]) -> bool:
    folders = environment.get("PYTHONPATH", "").split(os.pathsep)
    return any(os.path.exists(os.path.join(folder, "sitecustomize.py")) for folder in folders)


def pytest_configure(config: Any) -> None:
    config.kernel_forks = Forks()


def pytest_unconfigure(config: Any) -> None:
    config.kernel_forks.close()


def forks_kernels(marks: set[str], *, in_ci: bool) -> bool:
    """Return whether the kernels of a test with these marks are forked."""
    return "kernel" in marks and (
        "forked_kernel" in marks if in_ci else "fresh_kernel" not in marks
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Fork the kernels of a test and of its fixtures."""
    marks = {mark.name for mark in item.iter_markers()}
    with pytest.MonkeyPatch.context() as patch:
        if CAN_FORK and forks_kernels(marks, in_ci=IN_CI):
            patch.setattr("jupyter_client.launcher.Popen", item.config.kernel_forks.open_kernel)
        return (yield)
