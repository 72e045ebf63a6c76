"""Installs the drivers for notebooks (`git`) in a repository, and warns of a filter in their way.

That filter is nbstripout: without `--keep-id` it gives all cells new ids at each commit. Records
survive that (`record.split_merge`), and setup reports it.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from ...errors import UsageError
from .git import run_git

DRIVER = "agent-nb"  # the name of our drivers in git's configuration
PATTERN = "*.ipynb"
ATTRIBUTES = ".gitattributes"
KEEP_ID = "--keep-id"  # the option with which nbstripout leaves the ids of cells
HOOKS = ".pre-commit-config.yaml"  # may call nbstripout, too


def install_drivers(folder: Path, *, filtered: bool = False) -> list[str]:
    """Install the drivers in the repository of `folder`; return the steps done, then advice.

    `filtered` keeps records out of commits. Raises UsageError without a repository or git.
    """
    answer = run_git(["git", "-C", str(folder), "rev-parse", "--show-toplevel"])
    if answer.returncode:
        raise UsageError(f"{folder} is not in a git repository.")
    root = Path(answer.stdout.strip())
    _require_plain_file(root / ATTRIBUTES)
    # git runs the command in the repository: with -P, Python imports nothing from that folder
    command = f'"{sys.executable}" -P -m agent_nb'
    settings = {
        f"diff.{DRIVER}.textconv": f"{command} git-text",
        f"merge.{DRIVER}.name": "notebooks with recorded runs",
        f"merge.{DRIVER}.driver": f"{command} git-merge %O %A %B",
        **({f"filter.{DRIVER}.clean": f"{command} strip"} if filtered else {}),
    }
    for name, value in settings.items():
        if run_git(["git", "-C", str(root), "config", name, value]).returncode:
            raise UsageError(f"git could not set {name} in {root}.")
    line = f"{PATTERN} diff={DRIVER} merge={DRIVER}" + (f" filter={DRIVER}" if filtered else "")
    steps = [*(f"set {name}" for name in settings), _append_line(root / ATTRIBUTES, line)]
    return [*steps, *(f"{fault}: add {KEEP_ID}" for fault in describe_renumbering(root))]


def describe_renumbering(folder: Path) -> list[str]:
    """Describe each setting of nbstripout that gives cells new ids; [] without git."""
    try:
        clean = run_git(["git", "-C", str(folder), "config", "filter.nbstripout.clean"]).stdout
        root = run_git(["git", "-C", str(folder), "rev-parse", "--show-toplevel"]).stdout.strip()
    except UsageError:
        return []
    hooks = Path(root or folder) / HOOKS
    hook_text = hooks.read_text(encoding="utf-8", errors="replace") if hooks.is_file() else ""
    renumbers = {
        "git's filter nbstripout": bool(clean.strip()) and KEEP_ID not in clean,
        HOOKS: "nbstripout" in hook_text and KEEP_ID not in hook_text,
    }
    return [
        f"{source} gives all cells new ids, so that their records are found by the texts of the cells only"
        for source in renumbers
        if renumbers[source]
    ]


def _require_plain_file(path: Path) -> None:
    """Raise UsageError for a folder, or for a link, by which a clone could redirect our writing."""
    if path.is_symlink():
        raise UsageError(
            f"{path} is a link to {os.readlink(path)}: nothing is written through it, and git does not read it. Replace it by a file."
        )
    if path.exists() and not path.is_file():
        raise UsageError(f"{path} is not a file. Move it away.")


def _append_line(path: Path, line: str) -> str:
    """Append our line to `.gitattributes` and remove a former one; return what was done."""
    # the paths in the file may have any encoding: `surrogateescape` keeps their bytes
    lines: list[str] = []
    if path.exists():
        lines = path.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    if line in lines:
        return f"{path.name} has the line already"
    other_lines = [
        other for other in lines if not (other.startswith(f"{PATTERN} ") and f"={DRIVER}" in other)
    ]
    text = "\n".join([*other_lines, line]) + "\n"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    return f"added to {path.name}: {line}"
