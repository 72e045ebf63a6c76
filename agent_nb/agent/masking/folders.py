"""The folders of a run in a text: its working folder, that of temporary files, the interpreter's.

Why digests: a record must not show where its author works. Length and digest are enough to find a
folder in a text that names it.

Rules
- What a record says about folders is a stranger's and may have any form.
- Folders of packages are known by their names, whatever the record says.
- Names that `tempfile` and `mktemp` make up are alike if enough of their random part differs.
- The user's home does not count.
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

WORK, TEMPORARY, PYTHON = "working folder", "temporary folder", "interpreter"
PACKAGES = f"{PYTHON}'s packages"
_PATH = re.compile(rf"[/{Home.SIGN}]|[A-Za-z]:[\\/]")
_PATH_ITEM = r"[^\\/\s'\"<>:,;()\[\]]+"
_PACKAGES = re.compile(r"[\\/](?:site|dist)-packages(?![\w-])")
_PATH_END = re.compile(r"[\s'\"<>,;()\[\]]|(?<![A-Za-z]):|:(?![\\/])|(?<=\w\w):")  # of a path
_PATH_START = re.compile(rf"[\\/{Home.SIGN}]|[A-Za-z]:[\\/]")
_LONGEST = 1024  # characters of a path before the name of a folder of packages
_NAME = re.compile(rf"[\\/](?P<name>{_PATH_ITEM})")
_RANDOM = 8  # characters that `tempfile` makes up
_LEAST_DIFFERENT = 5  # of them that differ
_MADE_UP = re.compile(r"[a-z0-9_]*")
_MKTEMP = re.compile(r"tmp\.[A-Za-z0-9]{6,}")


class Folders(msgspec.Struct, frozen=True, kw_only=True):
    """The folders of a run, each as `digest_folder` returns it; None: unknown.

    `python`: those of the interpreter, by name.
    """

    work: Any = None
    temporary: Any = None
    python: Any = None

    def roles(self, text: str) -> dict[str, set[str]]:
        """Return the paths in a text that are folders of this run, with their roles."""
        python = self.python if isinstance(self.python, Mapping) else {}
        named = [(WORK, self.work), (TEMPORARY, self.temporary)]
        named += [(f"{PYTHON}'s {name}", path) for name, path in python.items()]
        parts = _path_starts(text) if any(folder for _, folder in named) else []
        out: dict[str, set[str]] = {}
        for role, folder in named:
            if path := _find_path(folder, text, parts):
                out.setdefault(path, set()).add(role)
        return out

    def roles_of(self, path: str) -> set[str]:
        """Return the roles of a path in this run: which folders it is."""
        packages = {PACKAGES} if _find_packages(path) == [(0, len(path))] else set()
        return self.roles(path).get(path, set()) | packages


class Named(msgspec.Struct, frozen=True, kw_only=True):
    """A folder, or a made-up name in one, at `start` to `end` of a text."""

    start: int
    end: int
    path: str
    roles: frozenset[str] = frozenset()  # none: it is a name


def digest_folder(folder: str) -> list[int | str]:
    """Return length and digest of a folder's path, home hidden: enough to find it in a text."""
    hidden = hide_home(folder)
    return [len(hidden), digest_value(hidden)]


def hide_home(text: str) -> str:
    """Return a text without the user's home."""
    return Home(os.path.expanduser("~")).hide(text)


def describe_folders(folder: str) -> dict[str, Any]:
    """Return the folders of a run in this process, by the names of `Folders`."""
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


def find_folders(text: str, known: Mapping[str, set[str]]) -> Iterator[Named]:
    """Yield the folders of a text, those of packages first, then the longest of `known` first."""
    for start, end in _find_packages(text):
        yield Named(start=start, end=end, path=text[start:end], roles=frozenset({PACKAGES}))
    for path in sorted(known, key=len, reverse=True):
        for match in re.finditer(rf"(?<![\w.~-]){re.escape(path)}(?![\w-])", text):
            roles = frozenset(known[path])
            yield Named(start=match.start(), end=match.end(), path=path, roles=roles)
            if TEMPORARY in roles and (name := _NAME.match(text, match.end())):
                start, end = name.span("name")
                yield Named(start=start, end=end, path=name["name"])


def differ_at_random(one: str, other: str) -> bool:
    """Return whether two names differ in nothing but what `tempfile` or `mktemp` makes up."""
    if _MKTEMP.fullmatch(one) and _MKTEMP.fullmatch(other):
        return True
    if len(one) != len(other):
        return False
    first = next(
        (n for n, pair in enumerate(zip(one, other, strict=True)) if len(set(pair)) > 1), 0
    )
    for start in range(max(0, first - _RANDOM + _LEAST_DIFFERENT), first + 1):
        end = start + _RANDOM
        parts = one[start:end], other[start:end]
        if one[end:] == other[end:] and all(map(_MADE_UP.fullmatch, parts)):
            return sum(a != b for a, b in zip(*parts, strict=True)) >= _LEAST_DIFFERENT
    return False


def _find_packages(text: str) -> list[tuple[int, int]]:
    """Return where a text names folders of packages."""
    out: list[tuple[int, int]] = []
    for match in _PACKAGES.finditer(text):
        first = max(0, match.start() - _LONGEST)
        before = text[first : match.end()]
        outside = [m.end() for m in _PATH_END.finditer(before)]
        begin = _PATH_START.search(before, outside[-1] if outside else 0)
        out += [(first + begin.start(), match.end())] if begin else []
    return out


def _path_starts(text: str) -> list[int]:
    return [match.start() for match in _PATH.finditer(text)]


def _find_path(folder: Any, text: str, starts: Sequence[int]) -> str:
    """Return the path in a text (home hidden) that has the length and digest `folder`, else ""."""
    if not (
        isinstance(folder, list)
        and len(folder) == 2
        and isinstance(folder[0], int)
        and folder[0] > 1
    ):
        return ""
    parts = (text[start : start + folder[0]] for start in starts)
    return next(
        (
            part
            for part in dict.fromkeys(parts)
            if len(part) == folder[0] and digest_value(part) == folder[1]
        ),
        "",
    )
