"""Built-in tools `list`, `read` and `write`: the files of the notebook's folder.

Why: these tools, unlike code or a shell, confine a model to this folder (`paths`), so that reading
needs no approval. Hidden files and secrets are counted only, never named or opened.

`write` replaces a file atomically: a stopped call leaves either the old or the new file.
"""

from __future__ import annotations

import difflib
import os
import secrets
import stat
from contextlib import suppress
from typing import Annotated, Any

from annotated_types import Ge

from ..errors import ToolError, did_you_mean
from ..wire import replace_surrogates
from . import file_digests
from .base import ToolContext
from .decorator import as_tool, tool
from .paths import ConfinedPath, check_new, is_private, locate_file, open_existing, open_parent
from .text_excerpt import read_excerpt
from .values import byte_size

_MOST_ENTRIES = 200  # of a folder that are listed
_LARGEST_DIFF = 1_000_000  # bytes of a file that is compared


@tool(name="list", icon="folder")
def list_(path: str = ".", *, context: ToolContext) -> str:
    """List the files in a folder, with sizes.

    Args:
        path: The folder, relative to the notebook's folder.
    """
    target = locate_file(context.folder, path)
    descriptor = _open(target, folder=True)
    try:
        with os.scandir(descriptor if os.scandir in os.supports_fd else target.path) as entries:
            ordered = sorted(entries, key=lambda e: (e.name.casefold(), e.name))
        visible = [entry for entry in ordered if not is_private(entry.name)]
        lines = [_describe_entry(entry, context.folder, path) for entry in visible]
    finally:
        os.close(descriptor)
    notes = [f"… and {len(lines) - _MOST_ENTRIES} more"] if len(lines) > _MOST_ENTRIES else []
    if hidden := len(ordered) - len(lines):
        notes.append(f"({hidden} hidden)")
    return "\n".join([*lines[:_MOST_ENTRIES], *notes]) or "(empty)"


@tool(icon="file")
def read(
    file: str,
    offset: Annotated[int, Ge(0)] = 0,
    limit: Annotated[int, Ge(1)] = 400,
    *,
    context: ToolContext,
) -> str:
    """Read a text file.

    Args:
        file: The file's name, relative to the notebook's folder.
        offset: Lines to skip.
        limit: Lines to read.
    """
    target = locate_file(context.folder, file)
    with os.fdopen(_open(target), "rb") as raw:
        file_digests.add_digest(context.state, target, raw)
        return read_excerpt(raw, target, context, offset, limit)


def _preview(args: dict[str, Any], context: ToolContext) -> str:
    """Return the diff that a call of `write` would make."""
    target = locate_file(context.folder, args["file"])
    check_new(target)
    old, name = _read_old_text(target), args["file"]
    if old is None:
        return f"{name}: replaces a file that is not text or too large to compare"
    before, after = (text.splitlines(keepends=True) for text in (old, args["content"]))
    lines = difflib.unified_diff(before, after, name if old else "(new file)", name)
    diff = (line if line.endswith("\n") else f"{line}\n" for line in lines)
    return "".join(diff) or f"{name}: no change"


@tool(effect="outside", icon="edit", preview=_preview)
def write(file: str, content: str, *, context: ToolContext) -> str:
    """Write a text file, replacing what was in it.

    Args:
        file: The file's name, relative to the notebook's folder.
        content: The whole new text of the file.
    """
    target = locate_file(context.folder, file)
    data = replace_surrogates(content).encode()
    try:
        existed = _replace(target, data)
    except OSError as error:
        raise ToolError(f"{file!r} cannot be written: {error.strerror}.") from None
    size = byte_size(len(data)) if len(data) >= 1000 else _count(len(data), "byte")
    return f"{'Replaced' if existed else 'Wrote'} {file}: {_count(len(content.splitlines()), 'line')}, {size}."


tools = tuple(as_tool(function) for function in (list_, read, write))


def _open(target: ConfinedPath, folder: bool = False) -> int:
    """Return a descriptor of the file or folder at `target`. Raises ToolError."""
    try:
        return open_existing(target, folder)
    except FileNotFoundError:
        raise ToolError(_explain_missing(target)) from None
    except IsADirectoryError:
        raise ToolError(f"{target.name!r} is a folder. Use list to see what is in it.") from None
    except OSError as error:
        if folder and os.path.isfile(target.path):
            raise ToolError(f"{target.name!r} is a file. Use read to see it.") from None
        raise ToolError(f"{target.name!r} cannot be read: {error.strerror}.") from None


def _explain_missing(target: ConfinedPath) -> str:
    """Return the message for a missing file, with similar names."""
    folder = os.path.dirname(target.path)
    try:
        names = [name for name in os.listdir(folder) if not is_private(name)]
    except OSError:
        return f"There is no {target.name!r}, and no such folder."
    last = target.parts[-1].casefold() if target.parts else ""
    folded = {name.casefold(): name for name in names}
    hint = did_you_mean(last, folded, 3, cutoff=0.5, written=lambda key: _escape(folded[key]))
    return f"There is no file {target.name!r}.{hint or ' Use list to see what is there.'}"


def _describe_entry(entry: os.DirEntry[str], folder: str, path: str) -> str:
    """Return the line for an entry of a folder: its name and its size."""
    name = _escape(entry.name)
    if entry.is_symlink():
        return f"{name}{_describe_link(os.path.join(path, entry.name), folder)}"
    if entry.is_dir(follow_symlinks=False):
        return f"{name}/"
    try:
        return f"{name}  {byte_size(entry.stat(follow_symlinks=False).st_size)}"
    except FileNotFoundError:  # it was removed after the folder had been read
        return name


def _describe_link(name: str, folder: str) -> str:
    """Return what `list` shows after the name of a link: the kind or size of its target."""
    try:
        status = os.stat(locate_file(folder, name).path)
    except ToolError:
        return "  (a link that tools may not follow)"
    except OSError:
        return "  (a broken link)"
    if stat.S_ISDIR(status.st_mode):
        return "/"
    return f"  {byte_size(status.st_size)}" if stat.S_ISREG(status.st_mode) else "  (a broken link)"


def _escape(name: str) -> str:
    """Return a file name with control characters escaped."""
    return replace_surrogates("".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in name))


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _read_old_text(target: ConfinedPath) -> str | None:
    """Return a file's text ("" if missing), None if too large or not text. Raises ToolError."""
    try:
        descriptor = open_existing(target)
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise ToolError(f"{target.name!r} cannot be written: {error.strerror}.") from None
    with os.fdopen(descriptor, "rb") as raw:
        data = raw.read(_LARGEST_DIFF + 1)
    try:
        return data.decode() if len(data) <= _LARGEST_DIFF else None
    except UnicodeDecodeError:
        return None


def _replace(target: ConfinedPath, data: bytes) -> bool:
    """Replace a file by `data` atomically; return whether it existed."""
    with open_parent(target, create=True) as (folder, name):
        mode = _read_mode(folder, name, target)
        temporary = f"{name}.{secrets.token_hex(6)}.tmp"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        try:
            with os.fdopen(os.open(temporary, flags, 0o666, dir_fd=folder), "wb") as out:
                out.write(data)
                if mode is not None and hasattr(os, "fchmod"):
                    os.fchmod(out.fileno(), mode)
            os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:  # a stopped call too must leave no temporary file
            with suppress(OSError):  # the first error is the one to report
                os.unlink(temporary, dir_fd=folder)
            raise
    return mode is not None


def _read_mode(folder: int | None, name: str, target: ConfinedPath) -> int | None:
    """Return the permissions of the file to replace, None if it is missing.

    Raises ToolError if it is not a regular file.
    """
    try:
        mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(mode):
        raise ToolError(f"{target.name!r} is not a file and cannot be written.")
    return stat.S_IMODE(mode)
