"""File names confined to one folder: relative, without links out of it, hidden files or secrets.

Why: the file tools act on names that a model wrote, perhaps under the influence of a text it read.

Rules
- Opening walks from the folder part by part and follows no link, so that nothing can be swapped in
  after the check. Where the system cannot do this (`_WALKS`), the checked path is opened.
- Messages name the file as requested, never the location of the folder.
"""

from __future__ import annotations

import errno
import io
import os
import re
import stat
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from fnmatch import fnmatchcase

import msgspec

from ..errors import ToolError

_SEPARATORS = re.compile(r"[\\/]")
# absolute names, also of Windows, and names in a home folder
_ABSOLUTE = re.compile(r"^(?:[\\/]|[A-Za-z]:|~(?:[^\\/]*[\\/]|$))")
# names of files that usually hold secrets, as globs
_RISKY_NAMES = """
    *.env *.env.* *.pem *.key *.p12 *.pfx *.jks *.keystore *.kdbx *.ppk *.htpasswd id_rsa* id_dsa*
    id_ecdsa* id_ed25519* *credentials *credentials.* secret.* secrets.* *.secret *.secrets
    service-account*.json service_account*.json token token.* *.token
"""
_SECRETS = tuple(_RISKY_NAMES.split())
MOST_NEW = 8  # folders that one write may make
DEEPEST = 32  # parts of a name
# flags that open the named file itself: `open` follows no link and waits for no writer of a pipe
_NO_FOLLOW = (
    getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_BINARY", 0)
)
#: whether this system opens files relative to an open folder
_WALKS = os.open in os.supports_dir_fd and hasattr(os, "O_DIRECTORY")


class ConfinedPath(msgspec.Struct, frozen=True):
    """A checked path: `parts` below the real path `root`, free of links; `name` as requested."""

    root: str
    parts: tuple[str, ...]
    name: str

    @property
    def path(self) -> str:
        """The path, for display and `stat`; open it with `open_existing`."""
        return os.path.join(self.root, *self.parts)


def locate_file(folder: str, name: str) -> ConfinedPath:
    """Return the path of `name` below `folder`; it need not exist.

    Raises ToolError for a forbidden name.
    """
    _check_written(name)
    root = os.path.realpath(folder)
    target = os.path.realpath(os.path.join(root, name))
    if os.path.commonpath([root, target]) != root:
        raise ToolError(
            f"{name!r} leads out of the notebook's folder. Only files in that folder can be used."
        )
    inside = os.path.relpath(target, root)
    components = () if inside == os.curdir else tuple(inside.split(os.sep))
    for component in components:
        _check_component(component, name)
    return ConfinedPath(root, components, name)


def is_private(name: str) -> bool:
    """Return True for names of hidden files or folders, and of files that usually hold secrets."""
    return any(
        p.startswith(".") or any(fnmatchcase(p, glob) for glob in _SECRETS)
        for p in _list_spellings(name)
    )


@contextmanager
def open_parent(target: ConfinedPath, create: bool = False) -> Iterator[tuple[int | None, str]]:
    """Yield the open folder of `target` and the name in it: `dir_fd` and path for `os` functions.

    They are None and the whole path where the system cannot walk (`_WALKS`). `create`: create
    missing folders. Raises OSError if a part is missing, is not a folder or became a link,
    ToolError if too many folders would be created.
    """
    if create:
        check_new(target)
    if not _WALKS:
        if create:
            os.makedirs(os.path.dirname(target.path), exist_ok=True)
        yield None, target.path
        return
    current = os.open(target.root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for folder in target.parts[:-1]:
            current = _open_below(current, folder, create)
        yield current, target.parts[-1] if target.parts else os.curdir
    finally:
        os.close(current)


def check_new(target: ConfinedPath) -> None:
    """Raise ToolError if a file at `target` needs more than `MOST_NEW` new folders."""
    above = (os.path.join(target.root, *target.parts[:n]) for n in range(1, len(target.parts)))
    missing = sum(not os.path.lexists(path) for path in above)
    if missing > MOST_NEW:
        raise ToolError(
            f"{target.name!r} would need {missing} new folders; at most {MOST_NEW} are made at once. Use a shorter path."
        )


def open_existing(target: ConfinedPath, folder: bool = False) -> int:
    """Open the regular file (or the folder) at `target` for reading; return its descriptor.

    Raises IsADirectoryError or NotADirectoryError for the wrong kind, ToolError for a device or
    pipe, else OSError.
    """
    with open_parent(target) as (above, name):
        descriptor = os.open(name, os.O_RDONLY | _NO_FOLLOW, dir_fd=above)
    try:
        _check_kind(os.fstat(descriptor).st_mode, folder, target.name)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def open_confined(folder: str, name: str) -> io.BufferedReader:
    """Open the regular file `name` below `folder`. Raises as `locate_file` and `open_existing`."""
    return os.fdopen(open_existing(locate_file(folder, name)), "rb")


def _check_kind(mode: int, folder: bool, name: str) -> None:
    if stat.S_ISDIR(mode) and not folder:
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if stat.S_ISREG(mode) and folder:
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise ToolError(f"{name!r} is neither a file nor a folder.")


def _open_below(current: int, name: str, create: bool) -> int:
    """Open the folder `name` in the open folder `current`; close `current`, return the new one."""
    if create and not os.access(name, os.F_OK, dir_fd=current):
        with suppress(FileExistsError):  # another call has just made it
            os.mkdir(name, dir_fd=current)
    deeper = os.open(name, os.O_RDONLY | os.O_DIRECTORY | _NO_FOLLOW, dir_fd=current)
    os.close(current)
    return deeper


def _check_written(name: str) -> None:
    """Raise ToolError for a name that is forbidden as it is written."""
    if "\0" in name or not name.strip():
        raise ToolError("The name is empty or not a file name.")
    if not name.isascii() and any("\ud800" <= c <= "\udfff" for c in name):
        raise ToolError(
            f"{name!r} holds half of a character (a lone surrogate), which no file name can have."
        )
    if len(_SEPARATORS.split(name)) > DEEPEST:
        shown = repr(name) if len(name) <= 100 else f"{name[:100]!r}…"
        raise ToolError(f"{shown} goes more than {DEEPEST} folders deep. Use a shorter path.")
    for form in (name, unicodedata.normalize("NFKC", name)):
        if _ABSOLUTE.match(form):
            raise ToolError(
                f"{name!r} is an absolute path. Give a name relative to the notebook's folder."
            )
        for component in _SEPARATORS.split(form):
            if component.strip(" .") == "" and component not in ("", "."):
                raise ToolError(
                    f"{name!r} contains {component!r}. Only files in the notebook's folder can be used."
                )
            if component not in ("", "."):
                _check_component(component, name)


def _check_component(component: str, name: str) -> None:
    if is_private(component):
        raise ToolError(f"{name!r} is hidden or may hold secrets, and is not open to tools.")


def _list_spellings(name: str) -> set[str]:
    """Return the spellings of a name that file systems may take for the same file."""
    normal = unicodedata.normalize("NFKC", name)
    # zero-width and direction marks
    visible = "".join(c for c in normal if unicodedata.category(c) != "Cf")
    return {form.casefold().strip() for form in (name, normal, visible, visible.rstrip(". "))}
