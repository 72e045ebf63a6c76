"""Plain text in a cell's output beside the cards: warnings, error lines, tables.

Rule: this text is saved with the notebook, so it holds no key and no unprintable character.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import Any

from ..models.keys import secrets
from ..wire.console import escaped
from ..wire.redact import redact_text


def warn(message: str) -> None:
    """Write one line to stderr."""
    sys.stderr.write(f"agent_nb: {printable(message)}\n")


def printable(text: str, hidden: Mapping[str, str] | None = None) -> str:
    """Return `text` without keys, with every unprintable character but line ends and tabs escaped.

    `hidden`: the values to redact, by name (None: the keys known now).
    """
    return escaped(redact_text(text, secrets(hidden)))


def table(rows: Iterable[Iterable[Any]]) -> str:
    """Return rows as lines of aligned columns."""
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
