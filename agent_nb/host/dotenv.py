"""Reads the `.env` of a folder, where users expect tools to find the keys of a project.

Reading sets no variable, and does not mean that the values may be used: `trust` decides that.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from .paths import find_nearest

NAME = ".env"
_LARGEST = 1 << 20  # bytes
_COMMENT = re.compile(r"\s#")  # begins a comment after a value without quotes


def read_dotenv(folder: Path | None = None) -> tuple[Path | None, dict[str, str]]:
    """Return the path and the variables of the `.env` in `folder` or the nearest folder above.

    `folder` None: the current one. The path is None if no `.env` is found; the variables are {} if
    the file is unreadable or larger than 1 MB.
    """
    path = find_nearest(NAME, folder)
    return path, {} if path is None else _read_variables(path)


def list_values(name: str) -> Iterator[str]:
    """Yield the values of a variable in every `.env` of the current folder and of those above."""
    with suppress(OSError):  # the folder was deleted
        current = Path.cwd()
        for folder in (current, *current.parents):
            yield _read_variables(folder / NAME).get(name, "")


def _read_variables(path: Path) -> dict[str, str]:
    try:
        if not path.is_file() or path.stat().st_size > _LARGEST:  # reading a pipe may never end
            return {}
        return parse_dotenv(path.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError):
        return {}


def parse_dotenv(text: str) -> dict[str, str]:
    """Return the variables of a `.env` text.

    A line is `NAME=value # comment`, `export NAME="value"` or a comment. What follows a quoted
    value is ignored.
    """
    variables = {}
    for line in text.splitlines():
        name, equals, written = line.strip().removeprefix("export ").partition("=")
        name, value = name.strip(), written.strip()
        if not equals or not name.isidentifier():
            continue
        if value[:1] in ("'", '"') and value.count(value[0]) > 1:
            value = value[1:].split(value[0], 1)[0]
        else:  # not `value`: in `NAME= # comment` the white space before `#` begins the comment
            value = _COMMENT.split(written, maxsplit=1)[0].strip()
        variables[name] = value
    return variables
