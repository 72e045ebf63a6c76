"""Chooses the kernel for a notebook, its environment, and how it is launched.

Rule: if the kernel that a notebook names is not installed, a Python notebook runs on the default
kernel, with a warning. For other notebooks, and if it was requested, a missing kernel is an error.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_core.paths import jupyter_path

from ..errors import UsageError
from ..host import Launch, Offer, read_launch
from ..notebook import make_printable
from ..record import NotebookRuns, list_cells, source_of
from ..wire import as_dict
from .execution_options import EXECUTION_DEFAULTS, ExecutionOptions

DEFAULT_KERNEL = "python3"
HASH_SEED = "PYTHONHASHSEED"
# `python -m ipykernel_launcher` puts the notebook's folder first on the path, so that its files
# hide modules of the standard library. Here the folder is added after the kernel is loaded, in
# front of the installed packages only, as IPython does. Modules loaded by then stay to the end, so
# `gc.freeze` exempts them from garbage collection.
LAUNCH = """
import gc, sys
gc.disable()
from ipykernel import kernelapp
gc.freeze()
gc.enable()
sites = [n for n, entry in enumerate(sys.path) if entry.endswith(("site-packages", "dist-packages"))]
sys.path.insert(min(sites, default=0), "")
kernelapp.launch_new_instance()
"""
_MAJOR, _MINOR = sys.version_info[:2]
#: Commands of kernel specs that mean the Python of this process.
OWN_PYTHONS = (sys.executable, "python", f"python{_MAJOR}", f"python{_MAJOR}.{_MINOR}")
# code that starts the tape, as a magic or as a call, unless it turns the tape off
_STARTS_TAPE = re.compile(
    r"^[^\S\n]*%agent[^\S\n]+tape\b(?![^\S\n]+off\b)"
    r"|^[^#\n]*AgentMagics\.tape\b(?![^\S\n]*=[^\S\n]*False\b)",
    re.MULTILINE,
)


class InstalledKernels(KernelSpecManager):  # type: ignore[misc]  # its traits have no types
    """The installed kernels, found without importing IPython, which is slow.

    IPython is imported only if its folder, in one of its usual places, has kernels.
    """

    def _kernel_dirs_default(self) -> list[str]:
        settings = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
        folders = os.environ.get("IPYTHONDIR") or "~/.ipython", os.path.join(settings, "ipython")
        if any(os.path.isdir(os.path.expanduser(f"{folder}/kernels")) for folder in folders):
            return list(super()._kernel_dirs_default())
        return jupyter_path("kernels")


class KernelChoice(msgspec.Struct, frozen=True):
    """The kernel for a notebook: its name, its working folder, and additions to its environment.

    `missing`: the name of the notebook's own kernel, if that is not installed.
    """

    kernel: str
    folder: str
    environment: Mapping[str, str]
    missing: str = ""


def use_own_launcher(manager: Any) -> None:
    """Make a kernel manager start kernels of this Python with `LAUNCH`."""
    manager.kernel_spec_manager = InstalledKernels(data_dir=manager.data_dir)
    program, *arguments = manager.kernel_spec.argv
    if program in OWN_PYTHONS and arguments[:2] == ["-m", "ipykernel_launcher"]:
        manager.kernel_spec.argv = [program, "-P", "-c", LAUNCH, *arguments[2:]]


def choose_kernel(
    path: Path, nb: Mapping[str, Any], options: ExecutionOptions = EXECUTION_DEFAULTS
) -> KernelChoice:
    """Return the kernel for the notebook at `path`.

    Its environment fixes the order of sets (hash seed 0). Raises UsageError as `find_kernel` does.
    """
    notebook_path = path.resolve()
    # runs that Python code begins read this mode from the environment only
    replays = Launch.REPLAY if options.rerun == Launch.REPLAY else ""
    wanted_variables = {
        Offer.TRUST_FOLDER: Offer.OPTION if options.trust_folder else "",
        Offer.TRUST_SERVERS: "1" if options.trust_mcp else "",
        Launch.STRICT: "1" if options.strict else "",
        Launch.RERUN: replays,
        Launch.TAPE: "1" if options.tape or read_launch().tapes or _needs_tape(nb) else "",
        "TZ": options.zone,
    }
    environment = {
        "JPY_SESSION_NAME": str(notebook_path),  # as a Jupyter server sets it
        HASH_SEED: "0",
        **{name: value for name, value in wanted_variables.items() if value},
    }
    name, missing = find_kernel(nb, options.kernel)
    return KernelChoice(name, str(notebook_path.parent), environment, missing)


def _needs_tape(nb: Mapping[str, Any]) -> bool:
    """Return whether a notebook has taped calls and no cell that starts the tape."""
    code_cells = [cell for cell in list_cells(nb) if cell.get("cell_type") == "code"]
    starts_tape = any(_STARTS_TAPE.search(source_of(cell)) for cell in code_cells)
    return not starts_tape and NotebookRuns(nb).has_taped_calls()


def find_kernel(nb: Mapping[str, Any], kernel: str = "") -> tuple[str, str]:
    """Return (kernel to use, name of the notebook's kernel if that is missing, else "").

    `kernel`: the requested one, or "". Raises UsageError if no suitable kernel is installed.
    """
    known = InstalledKernels().find_kernel_specs()
    metadata = as_dict(nb.get("metadata"))
    spec = as_dict(metadata.get("kernelspec"))
    name = kernel or str(spec.get("name") or DEFAULT_KERNEL)
    if name in known:
        return name, ""
    language = spec.get("language") or as_dict(metadata.get("language_info")).get("name")
    if not kernel and str(language).lower() == "python" and DEFAULT_KERNEL in known:
        return DEFAULT_KERNEL, name
    installed = ", ".join(sorted(known))
    choice = f"Installed: {installed}; --kernel chooses one"
    advice = choice if installed else "None is: pip install ipykernel"
    raise UsageError(f"The kernel {name!r} is not installed. {advice}.")


def warn_other_kernel(path: Path, choice: KernelChoice) -> None:
    """Warn on stderr if a notebook runs on another kernel than its own."""
    if choice.missing:
        warning = f"{path}: the kernel {choice.missing!r} is not installed; {choice.kernel!r} runs this notebook in Python."
        sys.stderr.write(f"agent_nb: {make_printable(warning)}\n")
