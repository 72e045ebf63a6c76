"""The command line of the package under test: of this checkout, or of an installed wheel.

`AGENT_NB_WHEEL` names the Python of an environment with the wheel; CI sets it. The commands are
then processes, and they and their kernels see nothing of the checkout.
"""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.paths import python_path

from agent_nb.cli.main import main

WHEEL = os.environ.get("AGENT_NB_WHEEL", "")


def run_python(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run Python with the package under test, in a folder."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    if WHEEL:
        environment["PATH"] = f"{Path(WHEEL).parent}{os.pathsep}{environment['PATH']}"
    else:
        environment["PYTHONPATH"] = python_path()
    return subprocess.run(
        [WHEEL or sys.executable, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def run_command(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run `jupyter agent-nb` with arguments, in a folder."""
    if WHEEL:
        return run_python("-m", "agent_nb", *arguments, folder=folder)
    output, errors = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("PYTHONPATH", python_path())
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
            code = main(list(arguments))
    return subprocess.CompletedProcess(arguments, code, output.getvalue(), errors.getvalue())
