"""Hostile text made harmless: characters that hide, reverse or erase others become visible.

Why: a tool name or an argument that reverses the reading direction can show another command than
the one that will run.

Rules
- Applied to every text shown unchanged (names, arguments, outputs, code). Prose keeps the direction
  marks that other scripts need, but not the overrides.
- Terminal escape sequences are removed; a carriage return shows the line as it left it.
"""

from __future__ import annotations

import re

from ..wire import escape_hidden

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_OVERRIDES = re.compile("[\u202a-\u202e\u2066-\u2069]")
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")


def show_hidden(text: str) -> str:
    """Return text without hidden characters: controls and the like are written as ⟨U+202E⟩."""
    return escape_hidden(text, "code points")


def show_output(text: str) -> str:
    """Return terminal output as lines.

    Escape sequences are removed, overwritten lines are as they were left, the rest is as in
    `show_hidden`.
    """
    if text.isascii() and text.isprintable():
        return text
    plain = _ANSI.sub("", text).replace("\r\n", "\n")
    if "\r" in plain:
        plain = "\n".join(_overwritten(line) for line in plain.split("\n"))
    return show_hidden(plain)


def show_prose(text: str) -> str:
    """Return running text without direction overrides and control characters."""
    return _CONTROLS.sub("\ufffd", _OVERRIDES.sub("", text.replace("\r", "")))


def _overwritten(line: str) -> str:
    parts = [part for part in line.split("\r") if part]
    return parts[-1] if parts else ""
