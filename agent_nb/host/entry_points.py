"""The entry points of installed packages, read from the places of `imports`.

`importlib.metadata.entry_points` also reads the notebook's folder, and takes milliseconds, though
each agent asks several times. Here a folder is read again after a change, not each time.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from .imports import GUARD, is_from_project

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

SETTLED = 5_000_000_000  # nanoseconds without a change after which an installation is complete


def list_entry_points(group: str) -> list[EntryPoint]:
    """Return the entry points of a group in search order, from installed packages alone."""
    return [
        entry
        for folder in GUARD.places().path
        for entry in _FOLDERS.setdefault(folder, _Folder(folder)).entry_points(group)
        if (top := sys.modules.get(entry.module.partition(".")[0])) is None
        or not is_from_project(top)
    ]


class _Folder:
    """The entry points of the packages in one entry of `sys.path`."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._groups: dict[str, list[EntryPoint]] = {}  # as read last
        # the last change (ns since the epoch) of the folder when it was read; -1: read it anew
        self._changed = -1
        # name and last change of each package's metadata when `_groups` was read; None: read anew
        self._packages: frozenset[tuple[str, int]] | None = None

    def entry_points(self, group: str) -> Sequence[EntryPoint]:
        """Return the entry points of a group."""
        if (mtime := _read_mtime(self._path)) != self._changed:
            packages = frozenset(_scan_metadata(self._path))
            if packages != self._packages:
                self._groups = _read_entry_points(self._path)
            # An installer creates the folder of a package before its files, and adding these does
            # not change the time of our folder again: what may be half written is read once more.
            latest = max((when for _, when in packages), default=0)
            settled = latest < time.time_ns() - SETTLED
            self._changed, self._packages = (mtime, packages) if settled else (-1, None)
        return self._groups.get(group, ())


_FOLDERS: dict[str, _Folder] = {}  # by entry of `sys.path`


def _read_mtime(path: str) -> int:
    """Return when a file or folder was changed (ns since the epoch; 0: it is absent)."""
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return 0


def _scan_metadata(folder: str) -> Iterator[tuple[str, int]]:
    """Yield the name and last change of each package's metadata in a folder (`.dist-info` …)."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith((".dist-info", ".egg-info")):
                yield entry.name, _read_mtime(entry.path)


def _read_entry_points(folder: str) -> dict[str, list[EntryPoint]]:
    """Return the entry points of all packages in a folder, by group."""
    from importlib.metadata import distributions  # takes milliseconds, and few cells need it

    groups: dict[str, list[EntryPoint]] = {}
    for package in distributions(path=[folder]):
        with suppress(Exception):  # its metadata is damaged
            for entry in package.entry_points:
                groups.setdefault(entry.group, []).append(entry)
    return groups
