"""The source of an agent cell: how it is recognised, split and hashed.

Why hashed: a record names the text of its cell by the hash, and so follows a cell to another id.
"""

from __future__ import annotations

import hashlib
import re

# `%%agent` and its options; blank lines may come before
_FIRST_LINE = re.compile(r"(?:[^\S\n]*\n)*%%agent(?=\s|$)([^\n]*)\n?")
# options, with values, that only decide how `jupyter agent-nb test` compares the run
_TEST_OPTIONS = re.compile(r"(?:^|(?<=\s))--(?:compare|expect)(?:=|\s+)\S+(?:\s+|$)")


def agent_cell(source: str) -> tuple[str, str] | None:
    """Return the option line and the body of an agent cell's source, or None for another cell."""
    first_line = _FIRST_LINE.match(source)
    return None if first_line is None else (first_line[1].strip(), source[first_line.end() :])


def content_hash(line: str, body: str) -> str:
    """Return the SHA-256 of a cell's option line and body, in hexadecimal.

    White space at the ends of lines and around the text does not count, nor do the options that
    only decide how `jupyter agent-nb test` compares the run.
    """
    line = _TEST_OPTIONS.sub("", line)
    lines = [part.rstrip() for part in f"{line.strip()}\n{body.strip()}".splitlines()]
    return hashlib.sha256("\n".join(lines).encode("utf-8", "surrogatepass")).hexdigest()


def source_hash(source: str) -> str:
    """Return the `content_hash` of a code cell's source; only an agent cell has an option line."""
    return content_hash(*(agent_cell(source) or ("", source)))
