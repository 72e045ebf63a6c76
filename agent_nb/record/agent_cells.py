"""What makes a cell an agent cell: its first line, its body, and the hash of both.

Why here: records in files are matched to cells by reading their source, without a kernel. Pure.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any

AGENT_CELL = re.compile(r"(?:[^\S\n]*\n)*%%agent(?=\s|$)([^\n]*)\n?")


def agent_cell(source: str) -> tuple[str, str] | None:
    """Return the option line and the body of an agent cell's source, or None for another cell."""
    found = AGENT_CELL.match(source)
    return None if found is None else (found[1].strip(), source[found.end() :])


def source_of(cell: Mapping[str, Any]) -> str:
    """Return the source of a cell's JSON, which may be a text or a list of lines."""
    source = cell.get("source", "")
    return "".join(map(str, source)) if isinstance(source, list) else str(source)


_TESTED = re.compile(r"(?:^|(?<=\s))--(?:compare|expect)(?:=|\s+)\S+(?:\s+|$)")


def content_hash(line: str, body: str) -> str:
    """Return the hash of a cell's inputs; spaces at the ends of lines and of the text do not count,
    nor how `test` looks at the run.
    """
    line = _TESTED.sub("", line)
    lines = [part.rstrip() for part in f"{line.strip()}\n{body.strip()}".splitlines()]
    return hashlib.sha256("\n".join(lines).encode("utf-8", "surrogatepass")).hexdigest()
