"""Advice on what is installed and missing, for `jupyter agent-nb doctor` and `%agent doctor`.

Why: most failures before a first run come from the environment: a kernel in another one, a disabled
hook, a missing key. A program finds each in a second.

Rule: nothing is changed, no network is used, and no key is shown, only its source. Only a fault
that keeps runs from working is `broken`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Literal

import msgspec

from ...errors import AgentError
from ...host import ATTRIBUTE, DIVERTED, Offer, find_faults, find_library, shorten_path
from ...tools import Toolset
from ..files.git_setup import KEEP_ID, describe_renumbering
from . import environment
from .environment import EXTRAS, HOOK, PACKAGE

# packages of front ends and of what they need
FRONT_ENDS = ("jupyterlab", "notebook", "jupyter_server", "ipywidgets", "jupyterlab_widgets")
# state of a finding -> the mark at the beginning of its line
MARKS: dict[str, str] = {"ok": "✓", "broken": "✗", "missing": "–", "info": " "}
# kind of plug-in -> the function that tries a plug-in, where loading it is not enough
USES = {"tools": Toolset.of_plugin}

State = Literal["ok", "broken", "missing", "info"]


class Finding(msgspec.Struct, frozen=True):
    """One line of the report; `todo` is what the user can do.

    broken: absent or faulty, and runs need it. missing: runs work without it. info: a plain fact.
    """

    topic: str
    state: State
    text: str = msgspec.field(name="said")
    todo: str = ""


class Findings(tuple[Finding, ...]):
    """The findings of all checks, in the order of the checks."""

    __slots__ = ()

    @property
    def sound(self) -> bool:
        """Whether nothing is broken."""
        return not any(f.state == "broken" for f in self)

    def render(self) -> str:
        """Return the findings as lines for people."""
        width = max((len(f.topic) for f in self), default=0)
        lines = []
        for f in self:
            lines.append(f"{MARKS[f.state]} {f.topic:<{width}}  {f.text}".rstrip())
            if f.todo:
                lines.append(f"  {'':<{width}}  → {f.todo}")
        return "\n".join(lines)


Check = Callable[[], Iterable[Finding]]


def collect_findings(model: str = "", further: Iterable[Finding] = ()) -> Findings:
    """Return the findings of all checks, and the `further` ones of the caller.

    `model` is the model that the notebook configures.
    """
    checks: dict[str, Check] = {**CHECKS, "model": partial(_check_model, model)}
    with ThreadPoolExecutor(len(checks)) as pool:  # other Pythons take a second each to answer
        results = pool.map(_run_check, checks, checks.values())
        return Findings([*(finding for findings in results for finding in findings), *further])


def _run_check(topic: str, check: Check) -> list[Finding]:
    try:
        return list(check())
    except Exception as fault:  # a broken environment breaks in every way
        return [Finding(topic, "broken", f"could not be examined: {type(fault).__name__}: {fault}")]


def _check_package() -> Iterator[Finding]:
    yield Finding(
        "python", "ok", f"{sys.version.split()[0]} ({shorten_path(Path(sys.executable))})"
    )
    version = f"{environment.find_version(PACKAGE) or 'from a folder'} ({shorten_path(Path(__file__).parents[2])})"
    yield Finding("package", "ok", f"{PACKAGE} {version}")
    if faults := "; ".join(environment.unmet_requirements()):
        yield Finding("requirements", "broken", faults, f"pip install --upgrade {PACKAGE}")


def _check_front_ends() -> Iterator[Finding]:
    by_name = {name: environment.find_version(name) for name in FRONT_ENDS}
    versions = {name: version for name, version in by_name.items() if version}
    if versions:
        yield Finding("front ends", "ok", ", ".join(map(" ".join, versions.items())))
    else:
        yield Finding("front ends", "missing", "none in this environment", "pip install jupyterlab")
    if {"jupyterlab", "notebook"} & versions.keys() and "jupyterlab_widgets" not in versions:
        fault = "JupyterLab cannot show them: jupyterlab_widgets is missing"
        yield Finding("widgets", "broken", fault, "pip install jupyterlab_widgets")


def _check_kernels() -> Iterator[Finding]:
    kernels = environment.probe_kernels()
    if not kernels:
        todo = "pip install ipykernel && python -m ipykernel install --user"
        yield Finding("kernels", "broken", "there is no Python kernel", todo)
    # one usable kernel is enough for runs
    any_usable = any(python.usable for _, python in kernels.values())
    unusable: State = "missing" if any_usable else "broken"
    for name, (path, installed) in kernels.items():
        topic, python = f"kernel {name}", shorten_path(Path(path))
        if installed.fault:
            todo = f"jupyter kernelspec remove {name}"
            yield Finding(topic, unusable, f"{python}: {installed.fault}", todo)
            continue
        text = f"Python {installed.python}, ipykernel {installed.ipykernel}, {PACKAGE} {installed.agent_nb} ({python})"
        if not installed.usable:
            yield Finding(topic, unusable, text, f"{python} -m pip install {PACKAGE}")
        elif environment.parse_version(installed.ipykernel) < (7,):
            todo = "buttons work while a cell runs from ipykernel 7 on; here the keyboard answers"
            yield Finding(topic, "ok", text, todo)
        else:
            yield Finding(topic, "ok", text)


def _check_hook() -> Iterator[Finding]:
    if not environment.find_version("jupyter_server"):
        text = "there is no Jupyter server in this environment"
        yield Finding("server hook", "missing", text, "pip install jupyterlab")
    elif state := environment.read_hook_state():
        yield Finding("server hook", "ok", "enabled: saving moves records into the metadata")
    else:
        text = "not enabled" if state is None else "disabled"
        yield Finding("server hook", "broken", text, f"jupyter server extension enable {HOOK}")


def _check_signing_secret() -> Iterator[Finding]:
    from jupyter_core.paths import jupyter_data_dir

    path = Path(jupyter_data_dir()) / "notebook_secret"
    if path.is_file() and os.access(path, os.R_OK):
        yield Finding("signatures", "ok", f"records are signed with {shorten_path(path)}")
    elif _is_writable(path.parent) and not path.exists():
        yield Finding("signatures", "ok", f"the first run makes {shorten_path(path)}")
    else:
        text = "records cannot be signed, so that their code must be trusted by hand"
        todo = f"make {shorten_path(path)} readable, or set JUPYTER_DATA_DIR"
        yield Finding("signatures", "broken", text, todo)


def _check_journals() -> Iterator[Finding]:
    from ...record import Journal

    path = Journal.folder()
    if _is_writable(path):
        yield Finding("journals", "ok", f"{shorten_path(path)}, {len(Journal.files())} kept")
    else:
        text = f"{shorten_path(path)} cannot be written: a killed kernel loses its run"
        todo = "make the folder writable, or set XDG_STATE_HOME"
        yield Finding("journals", "broken", text, todo)


def _is_writable(folder: Path) -> bool:
    """Return whether `folder` can be written, or made."""
    nearest = next((p for p in (folder, *folder.parents) if p.exists()), None)
    return nearest is not None and nearest.is_dir() and os.access(nearest, os.W_OK)


def _check_keys() -> Iterator[Finding]:
    from ...models import Key

    available = [(provider, source) for provider, _, source in Key.list_sources() if source]
    for provider, source in available:
        yield Finding(f"key {provider}", "ok", f"from {source}")
    if (offer := Key.find_offer()) is not None and not offer.is_allowed():
        yield Finding("keys of the folder", "missing", f"{offer}; not used", Offer.HOW)
    if not available:
        yield Finding("keys", "missing", "none is set; models on this machine need none")


def _check_extras() -> Iterator[Finding]:
    for name, extra in EXTRAS.items():
        if None in map(find_library, extra.modules):
            yield Finding(f"extra {name}", "missing", extra.purpose, extra.install)
        else:
            yield Finding(f"extra {name}", "ok", extra.purpose)


def _check_git() -> Iterator[Finding]:
    for fault in describe_renumbering(Path.cwd()):
        yield Finding("nbstripout", "missing", fault, f"add {KEEP_ID} to it")


def _check_plugins() -> Iterator[Finding]:
    for room in ATTRIBUTE:
        for fault in find_faults(room, USES.get(room)):
            yield Finding("plug-in", "missing", fault)


def _check_model(configured: str) -> Iterator[Finding]:
    """Check the model that a run would use, and its fallback models."""
    from ...models import choose_model, split_names

    try:
        names, source = choose_model("", configured)
    except AgentError as fault:
        first, _, ways = str(fault).partition("\n")
        todo = " · ".join(line.strip() for line in ways.splitlines())
        yield Finding("model", "missing", f"{first} Recorded runs replay without one.", todo)
        return
    for name in split_names(names):
        yield _check_access(name, f"{name} ({source})")


def _check_access(name: str, text: str) -> Finding:
    """Return the finding on one model: whether its provider is known and has a key."""
    from ...models import Key, list_known_models

    provider = name.partition("/")[0]
    if provider not in (known := list_known_models()):
        todo = f"known: {', '.join(known)}"
        return Finding("model", "broken", f"{text}: there is no provider {provider!r}", todo)
    try:
        if (
            provider not in Key.VARIABLES
            or Key.find(provider) is not None
            or DIVERTED.read_original(f"{provider.upper()}_BASE_URL")
        ):
            return Finding("model", "ok", text)
    except AgentError as fault:
        return Finding("model", "broken", f"{text}: {fault}")
    todo = f"set {Key.VARIABLES[provider][0]}, or %agent key {provider}"
    return Finding("model", "broken", f"{text}: it has no key", todo)


CHECKS: dict[str, Check] = {  # topic of a finding where the check fails -> the check
    "package": _check_package,
    "front ends": _check_front_ends,
    "kernels": _check_kernels,
    "server hook": _check_hook,
    "signatures": _check_signing_secret,
    "journals": _check_journals,
    "keys": _check_keys,
    "extras": _check_extras,
    "git": _check_git,
    "plug-ins": _check_plugins,
}
