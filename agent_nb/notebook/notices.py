"""Plain text in a cell's output beside the cards: warnings, error lines, arguments, tables.

Why beside the cards: some messages come before a run exists, or must be read in a terminal.

Rule: this text is saved with the notebook, so it holds no secret and no unprintable character.
`shorten_text` and `format_table` leave that to their callers.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Mapping
from itertools import zip_longest
from typing import Any

from ..events import content_text
from ..models import collect_secrets
from ..wire import cut_end, escape_unprintable, redact_text

LONGEST = 2000  # characters of an argument or preview
CLIPPED = "more characters]"  # the end of an argument that was cut


def print_warning(message: str) -> None:
    """Write a message to stderr, with the name of this package."""
    sys.stderr.write(f"agent_nb: {make_printable(message)}\n")


def make_printable(text: str, hidden: Mapping[str, str] | None = None) -> str:
    """Return `text` redacted, with every unprintable character but line ends and tabs escaped.

    `hidden`: the secrets to redact, by name (None: those that this process knows now).
    """
    return escape_unprintable(redact_text(text, collect_secrets(hidden)))


def printable_value(value: Any) -> str:
    """Return an argument of a call as printable text, cut; lines after the first are indented."""
    return shorten_text(make_printable(content_text(value))).replace("\n", "\n    ")


def shorten_text(text: str) -> str:
    """Return a text cut to `LONGEST` characters, with a note of how many are left out."""
    return cut_end(text, LONGEST, f" [… {{}} {CLIPPED}")


def format_date(seconds: float) -> str:
    """Return epoch seconds as local time like `22 Nov 2026 14:05`, `-` for 0."""
    return time.strftime("%d %b %Y %H:%M", time.localtime(seconds)) if seconds else "-"


def format_table(rows: Iterable[Iterable[Any]]) -> str:
    """Return rows as lines of aligned columns."""
    cells = [[str(value) for value in row] for row in rows]
    widths = [max(map(len, column)) for column in zip_longest(*cells, fillvalue="")]
    return "\n".join(
        "  ".join(f"{value:<{width}}" for value, width in zip(row, widths, strict=False)).rstrip()
        for row in cells
    )
