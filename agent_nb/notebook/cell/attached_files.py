"""The files of `--attach` other than pictures: tables become frames, texts go to the model.

Why: users point a prompt at a file without writing the code that reads it.

Rules
- A name means a variable, else a file. The ending makes a file a table or a picture; its first
  bytes may show a picture, too. Any other file must be text.
- A variable of the user is never replaced. A name that `--attach` gave to a frame is bound again,
  with a warning if it holds another value by then.
"""

from __future__ import annotations

import builtins
import keyword
import os
import re
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from ...agent import Mention
from ...errors import UsageError
from ...models import collect_secrets
from ...wire import media_type, redact_text
from ..file_text import decode_text, describe_text, format_name
from ..notices import print_warning
from .mentioned import References, digest_data
from .table_files import ENDINGS, LARGEST_FILE, choose_library, read_tables

PICTURES = (".png", ".jpg", ".jpeg", ".gif", ".webp")
LARGEST_TEXT = 10_000_000  # bytes
LONGEST_SENT = 60_000  # characters of a text that the model reads
_HEAD_SIZE = 32  # bytes that show the format of a picture
_RESERVED = {"In", "Out", "exit", "quit", "get_ipython", "display"}  # names of IPython
_NOT_IN_NAME = re.compile(r"\W+")


class Attached(msgspec.Struct, frozen=True):
    """What `--attach` names: `pictures` (files or variables, read elsewhere), and other files."""

    pictures: tuple[str, ...] = ()
    files: tuple[AttachedFile, ...] = ()

    @classmethod
    def split(cls, names: Sequence[str], namespace: Mapping[str, Any]) -> Attached:
        """Sort the names of `--attach`. Raises UsageError for a file that cannot be read."""
        pictures, files = [], []
        for name in names:
            file = None if name in namespace else _find_file(name)
            if file is None:
                pictures.append(name)
            else:
                files.append(file)
        return cls(tuple(pictures), tuple(files))

    @property
    def mentions(self) -> list[Mention]:
        """The files as the record names them. Their word is "", as no `@name` mentions them."""
        return [Mention("", "file", file.name, digest_data(file.data)) for file in self.files]

    def load(self, shell: Any) -> References:
        """Put the tables into the user's namespace; return what the model reads about the files.

        Raises UsageError for a file that cannot be read as a table or text, and for a taken name.
        """
        clean = partial(redact_text, secrets=collect_secrets())
        mentions, texts = list(self.mentions), []
        sources: dict[str, str] = {}  # name of a frame -> the file that it comes from
        for file in self.files:
            if file.is_table:
                names = _load_table(file, shell, sources)
                mentions += [Mention("", "variable", name) for name in names]
                listed = ", ".join(f"`{name}`" for name in names)
                texts.append(f"File {format_name(file.name, clean)}: read into {listed}.")
            else:
                texts.append(file.describe(clean))
        return References(tuple(mentions), tuple(texts))


class AttachedFile(msgspec.Struct, frozen=True):
    """A file of `--attach`: its path as written, and its bytes."""

    name: str
    data: bytes
    variable: str = ""  # the name for its frame; "": derived from the name of the file

    @property
    def is_table(self) -> bool:
        """Whether the file is a table, which becomes one frame or several."""
        return self.name.lower().endswith(ENDINGS)

    def describe(self, clean: Callable[[str], str]) -> str:
        """Return the file's text for a model. Raises UsageError if the file is not text."""
        text = decode_text(self.data)
        if text is None:
            raise UsageError(
                f"{self.name} is neither a picture (PNG, JPEG, GIF, WebP) nor a table ({', '.join(ENDINGS)}) nor text."
            )
        return describe_text(self.name, text, clean, LONGEST_SENT)


def _find_file(name: str) -> AttachedFile | None:
    """Return the file of a name, None for a picture or an unknown name. Raises UsageError."""
    variable, path = "", Path(os.path.expanduser(name))
    before, equals, after = name.partition("=")
    if equals and before.isidentifier() and not os.path.exists(path):  # NAME=FILE
        variable, name, path = before, after, Path(os.path.expanduser(after))
    is_picture = name.lower().endswith(PICTURES)
    if not variable and (is_picture or (not path.suffix and not os.path.exists(path))):
        return None  # a picture; a name without a file fails where pictures are read
    is_table = name.lower().endswith(ENDINGS)
    if variable and not is_table:
        raise UsageError(
            f"--attach {variable}={name}: only a table ({', '.join(ENDINGS)}) becomes a variable."
        )
    data = _read_file(name, path, is_table=is_table)
    return None if data is None else AttachedFile(name, data, variable)


def _read_file(name: str, path: Path, *, is_table: bool) -> bytes | None:
    """Return the bytes of a file, None if it begins like a picture, unless it is a table.

    Raises UsageError if it cannot be read or is too large.
    """
    limit = LARGEST_FILE if is_table else LARGEST_TEXT
    if path.is_fifo() or path.is_char_device():  # reading it may never end
        raise UsageError(f"{name} is a pipe or a device: write what it gives to a file first.")
    try:
        with path.open("rb") as raw:
            head = raw.read(_HEAD_SIZE)
            if media_type(head) and not is_table:
                return None
            data = head + raw.read(limit + 1 - len(head))
    except OSError as fault:
        raise UsageError(f"The file {name} cannot be read: {fault.strerror}.") from None
    if len(data) > limit:
        raise UsageError(
            f"{name} is larger than {limit // 1_000_000} MB: read it in a cell, as far as you need it."
        )
    return data


def _load_table(file: AttachedFile, shell: Any, sources: dict[str, str]) -> list[str]:
    """Read a table into the namespace of a shell; return the names of its frames.

    The names are added to `sources`: name -> file. Raises UsageError if the table cannot be read,
    or if a name belongs to a variable of the user or to another file of the cell.
    """
    namespace: dict[str, Any] = shell.user_ns
    frames = read_tables(file.name, file.data, choose_library(namespace))
    by_name = dict(zip(_name_frames(file, list(frames)), frames.values(), strict=True))
    loaded = _by_shell.setdefault(shell, {})
    for name in by_name:
        replaced = ""
        if name in namespace and name not in loaded:
            replaced = f"your variable {name}"
        elif sources.setdefault(name, file.name) != file.name:
            replaced = f"{sources[name]} in {name}"
        if replaced:
            raise UsageError(
                f"--attach {file.name} would replace {replaced}. Give the frame another name: --attach NAME={file.name}"
            )
    for name, frame in by_name.items():
        bound = namespace.get(name)
        if bound is not None and id(bound) != loaded.get(name):  # the user has rebound the name
            print_warning(f"{name} is {file.name} again; it held another value.")
        namespace[name] = frame
        loaded[name] = id(frame)
    return list(by_name)


def _name_frames(file: AttachedFile, sheets: Sequence[str]) -> Iterator[str]:
    """Yield a name for each sheet: the file's, joined with the sheet's if there are several."""
    name = Path(file.name).name
    stem = file.variable or name[: -len(next(e for e in ENDINGS if name.lower().endswith(e)))]
    used_names: set[str] = set()
    for sheet in sheets:
        chosen = make_identifier(stem if len(sheets) == 1 else f"{stem}_{sheet}")
        while chosen in used_names:
            chosen += "_"
        used_names.add(chosen)
        yield chosen


def make_identifier(text: str) -> str:
    """Return `text` as a variable name that is not a keyword, builtin or name of IPython."""
    name = _NOT_IN_NAME.sub("_", text).strip("_")
    if not name.isidentifier():
        name = f"table_{name}".rstrip("_")
    is_reserved = keyword.iskeyword(name) or hasattr(builtins, name) or name in _RESERVED
    return f"{name}_table" if is_reserved else name


# shell -> the frames that `--attach` loaded into it: variable name -> `id` of the frame
_by_shell: weakref.WeakKeyDictionary[Any, dict[str, int]] = weakref.WeakKeyDictionary()
