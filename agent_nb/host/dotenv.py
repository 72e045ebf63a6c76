"""Read the `.env` of a folder, in which the keys of providers often stand.

Why: other tools find the keys of a project in this file, and users expect the same here.

Rules
- A file that is unreadable or larger than 1 MB is ignored.
- Reading sets no variable; `trust` decides whether the values may be used.
"""

from __future__ import annotations

import re
from pathlib import Path

from .nearest import find_nearest

NAME = ".env"
_LARGEST = 1 << 20  # bytes
_COMMENT = re.compile(r"\s#")  # begins a comment after a value without quotes


def read_dotenv(folder: Path | None = None) -> tuple[Path | None, dict[str, str]]:
    """Return the path and the variables of the `.env` in `folder` or the nearest folder above.

    `folder` None: the current one. The path is None if no `.env` is found; the variables are {} if
    the file is ignored.
    """
    path = find_nearest(NAME, folder)
    try:
        if path is None or path.stat().st_size > _LARGEST:
            return path, {}
        return path, parse_dotenv(path.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError):
        return path, {}


def parse_dotenv(text: str) -> dict[str, str]:
    """Return the variables of a `.env` text.

    A line is `NAME=value` or `export NAME="value"`. A line that begins with `#` is a comment. So is
    what follows a quoted value; after another value, a comment is white space and `#`.
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
