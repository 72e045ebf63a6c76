"""Built-in tools `list`, `read` and `write`: the files of the notebook's folder.

Rules
- Only what `paths.locate` lets through; hidden files and secrets are counted, not named.
- What is shown is bounded and says how to go on; what is no text is refused with what it is. `read`
  looks at the first `_SCANNED` characters of a file, however long its lines are, and stops when it
  is told to.
- `write` replaces a file in one step, so that a stopped call leaves the old or the new file and
  nothing between.
"""

from __future__ import annotations

import codecs
import difflib
import io
import mimetypes
import os
import secrets
import stat
from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import Field

from ..errors import Cancelled, ToolError, did_you_mean
from ..wire.surrogates import encodable
from . import read_files
from .base import ToolContext
from .decorator import as_tool, tool
from .paths import Place, check_new, is_private, locate, opened, parent

_ENTRIES = 200
_CHARACTERS = 16_000
_LINE = 2_000
_SCANNED = 64_000_000  # characters
_SNIFF = 8_192
_LARGEST_DIFF = 1_000_000  # bytes of a file that is compared
_BOMS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}


@tool(name="list", icon="folder")
def list_(path: str = ".", *, context: ToolContext) -> str:
    """List the files in a folder, with sizes.

    Args:
        path: The folder, relative to the notebook's folder.
    """
    place = locate(context.folder, path)
    descriptor = _open(place, folder=True)
    try:
        with os.scandir(descriptor if os.scandir in os.supports_fd else place.path) as entries:
            found = sorted(entries, key=lambda e: (e.name.casefold(), e.name))
        lines = [_entry(e, context.folder, path) for e in found if not is_private(e.name)]
    finally:
        os.close(descriptor)
    notes = [f"… and {len(lines) - _ENTRIES} more"] if len(lines) > _ENTRIES else []
    if hidden := len(found) - len(lines):
        notes.append(f"({hidden} hidden)")
    return "\n".join([*lines[:_ENTRIES], *notes]) or "(empty)"


@tool(icon="file")
def read(
    file: str,
    offset: Annotated[int, Field(ge=0)] = 0,
    limit: Annotated[int, Field(ge=1)] = 400,
    *,
    context: ToolContext,
) -> str:
    """Read a text file.

    Args:
        file: The file's name, relative to the notebook's folder.
        offset: Lines to skip.
        limit: Lines to read.
    """
    place = locate(context.folder, file)
    with os.fdopen(_open(place), "rb") as raw:
        read_files.note(context.state, place, raw)
        text = io.TextIOWrapper(raw, encoding=_encoding(raw, place), errors="replace")
        return _excerpt(_Lines(text, context), offset, limit)


def _preview(args: dict[str, Any], context: ToolContext) -> str:
    place = locate(context.folder, args["file"])
    check_new(place)
    old, name = _old_text(place), args["file"]
    if old is None:
        return f"{name}: replaces a file that is not text or too large to compare"
    new = args["content"].splitlines(keepends=True)
    return "".join(_diff(old.splitlines(keepends=True), new, name)) or f"{name}: no change"


@tool(effect="outside", icon="edit", preview=_preview)
def write(file: str, content: str, *, context: ToolContext) -> str:
    """Write a text file, replacing what was in it.

    Args:
        file: The file's name, relative to the notebook's folder.
        content: The whole new text of the file.
    """
    place = locate(context.folder, file)
    data = encodable(content).encode()
    try:
        existed = _replace(place, data)
    except OSError as error:
        raise ToolError(f"{file!r} cannot be written: {error.strerror}.") from None
    size = _size(len(data)) if len(data) >= 1000 else _count(len(data), "byte")
    return f"{'Replaced' if existed else 'Wrote'} {file}: {_count(len(content.splitlines()), 'line')}, {size}."


tools = tuple(as_tool(function) for function in (list_, read, write))


def _open(place: Place, folder: bool = False) -> int:
    """Return a descriptor of the file or folder at `place`. Raises ToolError that says what is
    there instead.
    """
    try:
        return opened(place, folder)
    except FileNotFoundError:
        raise ToolError(_missing(place)) from None
    except IsADirectoryError:
        raise ToolError(f"{place.name!r} is a folder. Use list to see what is in it.") from None
    except OSError as error:
        if folder and os.path.isfile(place.path):
            raise ToolError(f"{place.name!r} is a file. Use read to see it.") from None
        raise ToolError(f"{place.name!r} cannot be read: {error.strerror}.") from None


def _missing(place: Place) -> str:
    """Return what to say of a file that is not there: the names that are near."""
    folder = os.path.dirname(place.path)
    try:
        names = [name for name in os.listdir(folder) if not is_private(name)]
    except OSError:
        return f"There is no {place.name!r}, and no such folder."
    last = place.parts[-1].casefold() if place.parts else ""
    folded = {name.casefold(): name for name in names}
    hint = did_you_mean(last, folded, 3, cutoff=0.5, written=lambda name: _shown(folded[name]))
    return f"There is no file {place.name!r}.{hint or ' Use list to see what is there.'}"


def _entry(entry: os.DirEntry[str], folder: str, path: str) -> str:
    if entry.is_symlink():
        return f"{_shown(entry.name)}{_link(os.path.join(path, entry.name), folder)}"
    if entry.is_dir(follow_symlinks=False):
        return f"{_shown(entry.name)}/"
    return f"{_shown(entry.name)}  {_size(entry.stat(follow_symlinks=False).st_size)}"


def _link(name: str, folder: str) -> str:
    try:
        target = locate(folder, name).path
    except ToolError:
        return "  (a link that tools may not follow)"
    if os.path.isdir(target):
        return "/"
    return f"  {_size(os.path.getsize(target))}" if os.path.isfile(target) else "  (a broken link)"


def _shown(name: str) -> str:
    """Return a file name without what could act as markup or a control sequence of a terminal."""
    return encodable("".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in name))


def _size(count: int) -> str:
    if count < 1000:
        return f"{count} B"
    size, units = float(count), iter(("kB", "MB", "GB", "TB"))
    unit = ""
    while size >= 1000 and (after := next(units, "")):
        size, unit = size / 1000, after
    return f"{size:.1f} {unit}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _encoding(raw: Any, place: Place) -> str:
    """Return the encoding of an open file, from its first bytes. Raises ToolError if it
    is no text.
    """
    head = raw.peek(_SNIFF)[:_SNIFF]
    bom = next((encoding for mark, encoding in _BOMS.items() if head.startswith(mark)), "")
    if not bom and (
        b"\0" in head or head.decode("utf-8", "replace").count("\ufffd") > len(head) // 10 + 1
    ):
        kind = mimetypes.guess_type(place.parts[-1])[0] or "binary"
        size = _size(os.fstat(raw.fileno()).st_size)
        raise ToolError(f"{place.name!r} is not text ({kind}, {size}) and cannot be read.")
    return bom or "utf-8"


class _Lines:
    """The lines of a file, over-long ones cut with a mark, in bounded memory and time. `over`: the
    file goes on behind what is read.
    """

    def __init__(self, text: io.TextIOWrapper, context: ToolContext) -> None:
        self.over = False
        self._text = text
        self._context = context
        self._left = _SCANNED

    def __iter__(self) -> Iterator[str]:
        while line := self._piece():
            dropped = 0
            while not line.endswith("\n") and len(line) == _LINE and (more := self._piece()):
                dropped += len(more)
                if more.endswith("\n"):
                    break
            least = "at least " if self.over else ""
            yield (
                f"{line} [… {least}{dropped:,} more characters in this line]\n"
                if dropped > 1
                else line
            )

    def _piece(self) -> str:
        """Return a line, or as much of it as is read at once; "" at the end. Raises Cancelled once
        the call is to stop.
        """
        if self._context.cancelled:
            raise Cancelled
        self.over = self._left <= 0
        piece = "" if self.over else self._text.readline(_LINE)
        self._left -= len(piece)
        return piece


def _excerpt(lines: _Lines, offset: int, limit: int) -> str:
    shown: list[str] = []
    room = _CHARACTERS
    more = False
    for number, line in enumerate(lines):
        if number < offset:
            continue
        room -= len(line)
        more = len(shown) == limit or room < 0
        if more:
            break
        shown.append(line)
    if not shown and lines.over:
        raise ToolError(
            f"Line {offset + 1} is behind the first {_SCANNED:,} characters of the file; no more of it is read."
        )
    if not shown:
        return f"(the file has no line {offset + 1})" if offset else "(the file is empty)"
    end = offset + len(shown)
    mark = f"[lines {offset + 1}-{end} of a longer file; read on with offset={end}]" if more else ""
    mark = mark or (
        f"[only the first {_SCANNED:,} characters of the file are read]" if lines.over else ""
    )
    body = "".join(shown)
    return f"{body}{'' if body.endswith(chr(10)) or not mark else chr(10)}{mark}"


def _old_text(place: Place) -> str | None:
    """Return the present text of a file ("" if there is none), None if it cannot be compared."""
    try:
        descriptor = opened(place)
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise ToolError(f"{place.name!r} cannot be written: {error.strerror}.") from None
    with os.fdopen(descriptor, "rb") as raw:
        data = raw.read(_LARGEST_DIFF + 1)
    try:
        return data.decode() if len(data) <= _LARGEST_DIFF else None
    except UnicodeDecodeError:
        return None


def _diff(old: list[str], new: list[str], name: str) -> Iterator[str]:
    for line in difflib.unified_diff(old, new, name if old else "(new file)", name):
        yield line if line.endswith("\n") else f"{line}\n"


def _replace(place: Place, data: bytes) -> bool:
    """Put `data` in the place of a file in one step; return whether there was one."""
    with parent(place, create=True) as (folder, name):
        mode = _mode(folder, name, place)
        temporary = f"{name}.{secrets.token_hex(6)}.tmp"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        try:
            with os.fdopen(os.open(temporary, flags, 0o666, dir_fd=folder), "wb") as out:
                out.write(data)
                if mode is not None and hasattr(os, "fchmod"):
                    os.fchmod(out.fileno(), mode)
            os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            _forget(temporary, folder)
            raise
    return mode is not None


def _mode(folder: int | None, name: str, place: Place) -> int | None:
    """Return the permissions of the file to be replaced, None if there is none. Raises ToolError if
    it is no file.
    """
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(found):
        raise ToolError(f"{place.name!r} is not a file and cannot be written.")
    return stat.S_IMODE(found)


def _forget(name: str, folder: int | None) -> None:
    try:
        os.unlink(name, dir_fd=folder)
    except OSError:
        return
