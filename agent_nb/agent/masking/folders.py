"""Finds a run's folders in a text: working folder, temporary folder, folders of the interpreter.

A record must not show where its author works, so it has length and digest of each path. They are
enough to find the path: each stretch of that length that begins like a path is compared.
"""

from __future__ import annotations

import os
import re
import sys
import sysconfig
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from ...record import Home, digest_value

# the roles of a folder: names of rules in `masks.Verdict.masked`, which users see
WORK, TEMPORARY, PYTHON = "working folder", "temporary folder", "interpreter"
PACKAGES = f"{PYTHON}'s packages"
_DRIVE = r"[A-Za-z]:[\\/]"  # C:\ or C:/
# where the path of a folder may begin: /, the sign for the home, or a drive
_FOLDER_START = re.compile(rf"[/{Home.SIGN}]|{_DRIVE}")
_PACKAGES_START = re.compile(rf"[\\/{Home.SIGN}]|{_DRIVE}")  # also at a \ without a drive
_PACKAGES = re.compile(r"[\\/](?:site|dist)-packages(?![\w-])")
# what ends a path: spaces, quotes, brackets; a colon, unless a single letter is before it and a
# slash after it (a drive)
_PATH_END = re.compile(r"[\s'\"<>,;()\[\]]|(?<![A-Za-z]):|:(?![\\/])|(?<=\w\w):")
_LONGEST_PATH = 1024  # characters of a path before the name of a folder of packages
_LONGEST_FOLDER = 4096  # characters of a path; longer ones would fill the memory in `_find_path`
_NAME = re.compile(r"[\\/](?P<name>[^\\/\s'\"<>:,;()\[\]]+)")  # of a file or folder in a folder
# `tempfile` makes up 8 characters of `_RANDOM_ALPHABET`. In two names, up to 3 may be equal.
_RANDOM_LENGTH = 8
_FEWEST_DIFFERENT = 5
_RANDOM_ALPHABET = re.compile(r"[a-z0-9_]*")
_MKTEMP = re.compile(r"tmp\.[A-Za-z0-9]{6,}")


class Folders(msgspec.Struct, frozen=True, kw_only=True):
    """The folders of a run, each as `digest_folder` returns it; None: unknown.

    `python`: the interpreter's folders, by name. A record may hold any JSON value in each field.
    """

    work: Any = None
    temporary: Any = None
    python: Any = None

    def find_roles(self, text: str) -> dict[str, set[str]]:
        """Return path -> roles for the folders of this run that a text (home hidden) contains."""
        python = self.python if isinstance(self.python, Mapping) else {}
        by_role = [(WORK, self.work), (TEMPORARY, self.temporary)]
        by_role += [(f"{PYTHON}'s {name}", digest) for name, digest in python.items()]
        known = any(digest for _, digest in by_role)
        starts = [match.start() for match in _FOLDER_START.finditer(text)] if known else []
        out: dict[str, set[str]] = {}
        for role, digest in by_role:
            if path := _find_path(digest, text, starts):
                out.setdefault(path, set()).add(role)
        return out

    def roles_of(self, path: str) -> set[str]:
        """Return the roles that a path has in this run; several, if two folders are one."""
        packages = {PACKAGES} if _find_packages(path) == [(0, len(path))] else set()
        return self.find_roles(path).get(path, set()) | packages


class PathPiece(msgspec.Struct, frozen=True, kw_only=True):
    """A folder of a run, or a name in the folder of temporary files, from `start` to `end`.

    `roles`: of a folder (`WORK` and its like); empty for a name.
    """

    start: int
    end: int
    roles: frozenset[str] = frozenset()


def digest_folder(folder: str) -> list[int | str]:
    """Return length and digest of a folder's path, home hidden: enough to find it in a text."""
    hidden = Home.of_user().hide(folder)
    return [len(hidden), digest_value(hidden)]


def describe_folders(folder: str) -> dict[str, Any]:
    """Return the folders of a run in this process, as the fields of `Folders`.

    `folder`: the working folder.
    """
    return {
        "work": digest_folder(os.path.abspath(folder)),
        "temporary": digest_folder(tempfile.gettempdir()),
        "python": dict(_interpreter_folders(os.path.expanduser("~"), sys.executable)),
    }


@lru_cache(4)
def _interpreter_folders(home: str, program: str) -> Mapping[str, list[int | str]]:
    """Return the folders of the interpreter `program`; their digests depend on `home`."""
    paths = {
        "prefix": sys.prefix,
        "base": sys.base_prefix,
        "library": sysconfig.get_path("stdlib"),
        "program": program,
        "archive": next((path for path in sys.path if path.endswith(".zip")), ""),
    }
    return {name: digest_folder(path) for name, path in paths.items() if path}


def find_folders(text: str, known: Mapping[str, set[str]]) -> Iterator[PathPiece]:
    """Yield the folders in a text: first folders of packages, then those in `known`, longest first.

    `known`: path -> roles (see `Folders.find_roles`). The name that follows the temporary folder
    is yielded too, since `tempfile` or `mktemp` may have made it up.
    """
    for start, end in _find_packages(text):
        yield PathPiece(start=start, end=end, roles=frozenset({PACKAGES}))
    for path in sorted(known, key=len, reverse=True):
        for match in re.finditer(rf"(?<![\w.~-]){re.escape(path)}(?![\w-])", text):
            roles = frozenset(known[path])
            yield PathPiece(start=match.start(), end=match.end(), roles=roles)
            if TEMPORARY in roles and (name := _NAME.match(text, match.end())):
                start, end = name.span("name")
                yield PathPiece(start=start, end=end)


def differ_at_random(recorded: str, fresh: str) -> bool:
    """Return whether two unequal names differ only in what `tempfile` or `mktemp` makes up.

    Both are names of `mktemp` (`tmp.a1B2c3`), or, as `tmpab12cd_3.csv` and `tmpxk09e_7q.csv`, they
    differ only within 8 neighbouring characters of `tempfile`'s alphabet, in at least 5 of them.
    """
    if _MKTEMP.fullmatch(recorded) and _MKTEMP.fullmatch(fresh):
        return True
    if len(recorded) != len(fresh):
        return False
    first = next(  # index of the first difference
        (n for n, pair in enumerate(zip(recorded, fresh, strict=True)) if len(set(pair)) > 1), 0
    )
    # the 8 characters may begin before the difference: up to 3 of them may be equal by chance
    last = min(first, len(recorded) - _RANDOM_LENGTH)
    for start in range(max(0, first - _RANDOM_LENGTH + _FEWEST_DIFFERENT), last + 1):
        end = start + _RANDOM_LENGTH
        windows = recorded[start:end], fresh[start:end]
        if recorded[end:] == fresh[end:] and all(map(_RANDOM_ALPHABET.fullmatch, windows)):
            return sum(a != b for a, b in zip(*windows, strict=True)) >= _FEWEST_DIFFERENT
    return False


def _find_packages(text: str) -> list[tuple[int, int]]:
    """Return (start, end) of the paths in a text, each up to and with its folder of packages."""
    out: list[tuple[int, int]] = []
    for match in _PACKAGES.finditer(text):
        # the path begins after the last character before `match` that no path contains
        window_start = max(0, match.start() - _LONGEST_PATH)
        window = text[window_start : match.end()]
        path_ends = [m.end() for m in _PATH_END.finditer(window)]
        begin = _PACKAGES_START.search(window, path_ends[-1] if path_ends else 0)
        out += [(window_start + begin.start(), match.end())] if begin else []
    return out


def _find_path(folder: Any, text: str, starts: Sequence[int]) -> str:
    """Return the path at one of `starts` that has the length and digest `folder`, else ""."""
    length, digest = folder if isinstance(folder, list) and len(folder) == 2 else (0, "")
    # "/" would be found in every text
    if not isinstance(length, int) or not 1 < length <= _LONGEST_FOLDER:
        return ""
    for path in dict.fromkeys(text[start : start + length] for start in starts):
        if len(path) == length and digest_value(path) == digest:
            return path
    return ""
