"""What is installed and what is missing, for `jupyter agent-nb doctor` and `%agent doctor`.

Why: most failures before a first run come from the surroundings: a kernel in another environment, a
disabled hook, a missing key. A program finds each in a second.

Rules
- A table of small functions; each yields findings and raises nothing. Nothing is changed, and no
  network is used.
- A finding that is not well says what to do. Only what runs cannot do without counts as broken.
- Of a key only the place is shown, never the value.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from ...host import plugins
from ...tools.toolset import of_plugin
from ..files.git import KEEP_ID, renumbering
from . import kernelspecs, model_access, packages, user_files
from .findings import Check, Finding, as_json, report, well
from .packages import EXTRAS, HOOK

__all__ = ("CHECKS", "EXTRAS", "HOOK", "Check", "Finding", "as_json", "examine", "report", "well")

USES = {"tools": of_plugin}  # how the plug-ins of a room are tried, if not just by loading them
CHECKS: dict[str, Check] = {
    "python": packages.python,
    "package": packages.requirements,
    "front ends": packages.front_ends,
    "kernels": kernelspecs.kernels,
    "server hook": packages.server_hook,
    "signatures": user_files.signing_secret,
    "journals": user_files.journal_folder,
    "keys": model_access.keys_found,
    "extras": packages.extras,
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


def examine(*, model: str = "", more: Mapping[str, Check] | None = None) -> list[Finding]:
    """Return all findings; `model` is the configured model, `more` are checks of the caller."""
    checks: dict[str, Check] = {
        **CHECKS,
        "model": partial(model_access.model, model),
        **(more or {}),
    }
    with ThreadPoolExecutor(len(checks)) as pool:  # other Pythons take a second each to answer
        return [
            finding
            for found in pool.map(lambda item: _quietly(*item), checks.items())
            for finding in found
        ]


def _quietly(topic: str, check: Check) -> list[Finding]:
    try:
        return list(check())
    except Exception as fault:  # a broken environment breaks in every way
        return [Finding(topic, "broken", f"could not be examined: {type(fault).__name__}: {fault}")]
