"""Hostile text made harmless: characters that hide, reverse or erase others become visible.

Why: a tool name or an argument that reverses the reading direction can show another command than
the one that will run. Each drawer applies `show_hidden` to names and arguments, `show_output` to
outputs and code, and `show_prose` to running text, which needs the direction marks of other
scripts.
"""

from __future__ import annotations

import re

from ..wire import escape_hidden, strip_ansi

# the beginning of an escape sequence, at the end of a text that goes on; bounded, or a string for
# the terminal that never ends would hold back all that follows
_CUT_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|[]PX^_][^\x07\x1b\x9c]{0,4096}\x1b?|[ -/]*)\Z")
# characters that embed, isolate or override the direction of a text
_OVERRIDES = re.compile("[\u202a-\u202e\u2066-\u2069]")
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")


def show_hidden(text: str) -> str:
    """Return text without hidden characters: controls and the like are written as ⟨U+202E⟩."""
    return escape_hidden(text, "code points")


def show_output(text: str) -> str:
    """Return terminal output without escape sequences, overwritten text and hidden characters."""
    if text.isascii() and text.isprintable():
        return text
    plain = strip_ansi(text).replace("\r\n", "\n")
    if "\r" in plain:
        plain = "\n".join(_last_version(line) for line in plain.split("\n"))
    return show_hidden(plain)


def without_cut_escape(text: str) -> str:
    """Return growing output without an escape sequence that is cut off at its end."""
    return _CUT_ANSI.sub("", text)


def show_prose(text: str) -> str:
    """Return running text without direction overrides; control characters become U+FFFD."""
    return _CONTROLS.sub("\ufffd", _OVERRIDES.sub("", text.replace("\r", "")))


def _last_version(line: str) -> str:
    """Return the last version of a line that carriage returns overwrite."""
    parts = [part for part in line.split("\r") if part]
    return parts[-1] if parts else ""
