"""Characters that a reader does not see: controls, halves of characters, and those that hide,
reverse or erase others.

Why here: what is shown to a person must be what runs, so the view makes them visible, the command
line escapes them and tools refuse them.
"""

from __future__ import annotations

import json
import re
import unicodedata

_UNSEEN = frozenset({"Cc", "Cf", "Co", "Cs", "Cn"})  # categories of Unicode
HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ud800-\udfff\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)


def strip_hidden(text: str) -> str:
    """Return `text` without characters that people cannot see, line ends and tabs left in."""
    return "".join(c for c in text if c in "\n\t" or unicodedata.category(c) not in _UNSEEN)


def escape_hidden(text: str) -> str:
    """Return text for a terminal, hidden characters as `\\x1b` and the like."""
    if text.isascii() and text.isprintable():
        return text
    return HIDDEN.sub(lambda match: ascii(match[0])[1:-1], text.replace("\r\n", "\n"))


def escape_line(text: str) -> str:
    """Return text for one line of a terminal: line ends are escaped too."""
    return escape_hidden(text.replace("\r\n", "\n")).replace("\n", "\\n")


def escape_json(text: str) -> str:
    """Return JSON text for a terminal: the same value, hidden characters as `\\u009b`.

    Valid JSON holds them in its strings only, line ends aside.
    """
    return HIDDEN.sub(lambda match: _json_escape(match[0]), text)


def _json_escape(character: str) -> str:
    return (
        character if character == "\r" else json.dumps(character)[1:-1].replace("\x7f", "\\u007f")
    )


def name_character(match: re.Match[str]) -> str:
    """Return the code point of a hidden character, as U+202E."""
    return f"U+{ord(match.group()):04X}"
