"""Lines that people read beside the cards: warnings, and what a cell fails with.

Rule: what is said here is saved with the notebook: it holds no key and no character that hides.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    pass

from collections.abc import Mapping

from ..models.keys import secrets
from ..wire.redact import redact_text


def warn(message: str) -> None:
    """Write a line to stderr."""
    sys.stderr.write(f"agent_nb: {printable(message)}\n")


def printable(text: str, hidden: Mapping[str, str] | None = None) -> str:
    """Return `text` without keys (`hidden`, None: those known now); what in it is not printable,
    line ends and tabs aside, is escaped.
    """
    clean = redact_text(text, secrets(hidden))
    return "".join(c if c.isprintable() or c in "\n\t" else ascii(c)[1:-1] for c in clean)


def table(rows: Iterable[Iterable[Any]]) -> str:
    """Return rows as lines with aligned columns."""
    cells = [[str(value) for value in row] for row in rows]
    widths = (
        [max(len(row[i]) for row in cells) for i in range(max(map(len, cells), default=0))]
        if cells
        else []
    )
    return "\n".join(
        "  ".join(f"{value:<{width}}" for value, width in zip(row, widths, strict=False)).rstrip()
        for row in cells
    )
