"""Where this package's own imports are looked up: never in the user's project (see `imports`).

A project is the working folder and all below it, the folders above it, and the repository around
it. If this folder or repository is the user's home or the root of the disk, what lies below it does
not count. Relative entries of `sys.path` belong to the project.
"""

from __future__ import annotations

import os
import site
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

MARKS = (".git", "pyproject.toml")  # what the top folder of a project has


class Places:
    """Where our imports are looked up, for one state of `sys.path` and the working folder.

    `folders` are the working folder and the one in which the process started. `path` holds the
    entries that are searched: installed ones first (the standard library, site-packages, and the
    folders that their .pth files name), then other absolute ones. `rest` holds the entries of
    `sys.path` that are not searched.
    """

    def __init__(self, entries: Sequence[str], folders: Sequence[str]) -> None:
        self._folders = set(folders)
        no_projects = {_find_home(), os.path.abspath(os.sep)}
        self._projects = set(map(_find_project, folders)) - no_projects
        self._sites = _list_sites()
        absolute = [e for e in entries if os.path.isabs(e)]
        self._pth_entries: set[str] = set()
        # reading .pth files takes time: needed only if an entry is outside the sites
        if not all(_is_within(e, self._sites) for e in absolute):
            self._pth_entries = set(_read_pth_entries(self._sites))
        self._known: dict[tuple[str, str], bool] = {}  # earlier answers of `is_in_project`
        above = {  # the folders above a project, unless they are installed
            e
            for e in absolute
            if any(_is_within(folder, [os.path.realpath(e)]) for folder in folders)
            and not self._is_installed(e)
        }
        allowed = [e for e in absolute if e not in above and not self._is_project_entry(e)]
        self.path = sorted(allowed, key=lambda e: not self._is_installed(e))
        self.rest = [e for e in entries if e not in self.path]

    def is_in_project(self, name: str, path: str) -> bool:
        """Return whether the module `name` belongs to the project.

        `path` is its file, or the folder of a namespace package.
        """
        key = (name, path)
        if key not in self._known:
            self._known[key] = self._is_project_entry(_find_entry(name, os.path.abspath(path)))
        return self._known[key]

    def _is_installed(self, entry: str) -> bool:
        return entry in self._pth_entries or _is_within(entry, self._sites)

    def _is_project_entry(self, entry: str) -> bool:
        if self._is_installed(entry):
            return False
        paths = (entry, os.path.realpath(entry))
        return any(path in self._folders or _is_within(path, self._projects) for path in paths)


def _find_entry(name: str, path: str) -> str:
    """Return the entry of `sys.path` by which the module `name` at `path` is found."""
    package = os.path.basename(path).startswith("__init__.")
    # one folder up for each dot of the name, for the file, and for an `__init__`
    for _ in range(name.count(".") + package + 1):
        path = os.path.dirname(path)
    return path


def _find_project(folder: str) -> str:
    """Return the top folder of the project around `folder`, else the folder itself."""
    top = folder
    while top not in (_find_home(), os.path.dirname(top)):
        if any(os.path.exists(os.path.join(top, mark)) for mark in MARKS):
            return top
        top = os.path.dirname(top)
    return folder


def _find_home() -> str:
    """Return the user's home, links resolved: never a project, whatever it holds."""
    return os.path.realpath(os.path.expanduser("~"))


def _is_within(path: str, folders: Iterable[str]) -> bool:
    """Return whether a path is one of the folders or lies in one."""
    path = os.path.join(os.path.normcase(path), "")
    return any(path.startswith(os.path.join(os.path.normcase(folder), "")) for folder in folders)


def _list_sites() -> list[str]:
    """Return the folders of installed packages."""
    library = os.path.dirname(os.__file__)
    sites = [library, os.path.join(sys.base_exec_prefix, "DLLs"), *site.getsitepackages()]
    if site.ENABLE_USER_SITE:
        sites.append(site.getusersitepackages())
    # the folder that holds this package; a site only after `pip install --target`
    home = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    is_target = any(
        name.startswith("jupyter_agent_nb-") and name.endswith(".dist-info")
        for name in _list_folder(home)
    )
    return [*sites, home] if is_target else sites


def _read_pth_entries(sites: Iterable[str]) -> Iterator[str]:
    """Yield the entries named in .pth files: editable checkouts, other environments."""
    for folder in sites:
        for name in _list_folder(folder):
            if name.endswith(".pth"):
                with (
                    suppress(OSError, UnicodeDecodeError),
                    open(os.path.join(folder, name), encoding="utf-8-sig") as file,
                ):
                    lines = [line.strip() for line in file]
                    yield from (
                        os.path.abspath(os.path.join(folder, line))
                        for line in lines
                        if line[:6] not in ("", "import")  # lines with `import` are code
                    )


def _list_folder(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []
