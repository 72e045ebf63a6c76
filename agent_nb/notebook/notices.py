"""Lines that people read beside the cards: warnings, and what a cell fails with.

Rule: what is said here is saved with the notebook: it holds no key and no character that hides.
"""

from __future__ import annotations

import sys

from ..models.keys import secrets
from ..redact import redact_text


def warn(message: str) -> None:
    """Write a line to stderr."""
    sys.stderr.write(f"agent_nb: {printable(message)}\n")


def printable(text: str) -> str:
    """Return `text` without keys; everything in it that is not printable, line ends and tabs aside, is written as an escape."""
    return "".join(c if c.isprintable() or c in "\n\t" else ascii(c)[1:-1] for c in redact_text(text, secrets()))
