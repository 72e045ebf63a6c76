"""What makes a cell an agent cell: its first line, its body, and the hash of both.

Why here: records are matched to cells by reading their source, without a kernel. Pure.
"""

from __future__ import annotations

import hashlib
import re

_FIRST_LINE = re.compile(r"(?:[^\S\n]*\n)*%%agent(?=\s|$)([^\n]*)\n?")
# options that only say how `jupyter agent-nb test` compares the run, with their values
_TESTED = re.compile(r"(?:^|(?<=\s))--(?:compare|expect)(?:=|\s+)\S+(?:\s+|$)")


def agent_cell(source: str) -> tuple[str, str] | None:
    """Return the option line and the body of an agent cell's source, or None for another cell."""
    first_line = _FIRST_LINE.match(source)
    return None if first_line is None else (first_line[1].strip(), source[first_line.end() :])


def content_hash(line: str, body: str) -> str:
    """Return the hash of a cell's option line and body.

    White space at the ends of lines and of the text does not count, nor do the options that only
    say how `test` compares the run.
    """
    line = _TESTED.sub("", line)
    lines = [part.rstrip() for part in f"{line.strip()}\n{body.strip()}".splitlines()]
    return hashlib.sha256("\n".join(lines).encode("utf-8", "surrogatepass")).hexdigest()


def source_hash(source: str) -> str:
    """Return the `content_hash` of a code cell's source, with or without the magic."""
    return content_hash(*(agent_cell(source) or ("", source)))
