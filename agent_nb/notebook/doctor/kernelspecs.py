"""Checks of the installed kernels: whether their Python starts and has our package."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from ...host.paths import tilde
from .findings import Finding, State
from .versions import PACKAGE, numbers

PATIENCE = 30.0  # seconds that another Python may take to answer
PROBE = """
import importlib.util, json, sys
from importlib.metadata import version
found = {"python": ".".join(map(str, sys.version_info[:3]))}
for name in ("ipykernel", "ipywidgets", "jupyter-agent-nb"):
    try:
        found[name] = version(name)
    except Exception:
        found[name] = "not installed" if importlib.util.find_spec(name.replace("jupyter-", "").replace("-", "_")) is None else "here"
print(json.dumps(found))
"""


def kernels() -> Iterator[Finding]:
    """Check every installed Python kernel."""
    from jupyter_client.kernelspec import KernelSpecManager

    specs = {name: entry["spec"] for name, entry in KernelSpecManager().get_all_specs().items()}
    ours = {
        name: _interpreter(spec)
        for name, spec in specs.items()
        if spec.get("language", "").lower() == "python" and spec.get("argv")
    }
    if not ours:
        yield Finding(
            "kernels",
            "broken",
            "there is no Python kernel",
            "pip install ipykernel && python -m ipykernel install --user",
        )
        return
    with ThreadPoolExecutor(len(ours)) as pool:
        answers = dict(zip(ours, pool.map(_ask, ours.values()), strict=True))
    usable = [name for name, answer in answers.items() if _usable(answer)]
    for name, answer in answers.items():
        yield _kernel(name, ours[name], answer, alone=not usable)


def _kernel(name: str, python: str, answer: Mapping[str, str], *, alone: bool) -> Finding:
    topic = f"kernel {name}"
    bad: State = "broken" if alone else "missing"
    if "error" in answer:
        return Finding(
            topic,
            bad,
            f"{tilde(Path(python))}: {answer['error']}",
            f"jupyter kernelspec remove {name}",
        )
    said = f"Python {answer['python']}, ipykernel {answer['ipykernel']}, {PACKAGE} {answer[PACKAGE]} ({tilde(Path(python))})"
    if not _usable(answer):
        return Finding(topic, bad, said, f"{tilde(Path(python))} -m pip install {PACKAGE}")
    slow = numbers(answer["ipykernel"]) < (7,)
    return Finding(
        topic,
        "ok",
        said,
        "buttons work while a cell runs from ipykernel 7 on; here the keyboard answers"
        if slow
        else "",
    )


def _usable(answer: Mapping[str, str]) -> bool:
    return "error" not in answer and "not installed" not in (answer["ipykernel"], answer[PACKAGE])


def _interpreter(spec: Mapping[str, Any]) -> str:
    """Return the Python of a kernelspec as the kernel's launcher finds it."""
    first = str(spec["argv"][0])
    plain = {
        "python",
        f"python{sys.version_info[0]}",
        f"python{sys.version_info[0]}.{sys.version_info[1]}",
    }
    return sys.executable if first in plain else first


def _ask(python: str) -> dict[str, str]:
    """Return what another Python has installed, or `error`."""
    try:
        done = subprocess.run(  # noqa: S603  (the interpreters of the user's own kernels)
            [python, "-c", PROBE],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            cwd=tempfile.gettempdir(),
            check=False,
        )
        answer = json.loads(done.stdout.strip().splitlines()[-1])
        return {str(k): str(v) for k, v in answer.items()}
    except (OSError, subprocess.SubprocessError) as fault:
        return {
            "error": "does not start"
            if not isinstance(fault, subprocess.TimeoutExpired)
            else "did not answer"
        }
    except (ValueError, IndexError):
        return {"error": "is not a working Python"}
