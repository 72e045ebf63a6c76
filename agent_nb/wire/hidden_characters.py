"""Find, escape or remove characters that a reader does not see.

They are controls, lone surrogates, and those that hide, reverse or erase others.

Why: what is shown to a person must be what runs. The view makes them visible, the command line
escapes them, offered code with one is refused, and they are removed from texts of MCP servers.
"""

from __future__ import annotations

import json
import re
import unicodedata
from typing import Literal

# categories of Unicode: controls, formats, private use, surrogates, unassigned
_UNSEEN = frozenset({"Cc", "Cf", "Co", "Cs", "Cn"})
# without U+200C and U+200D, the zero-width (non-)joiners that some scripts and emoji need
HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # controls, except tab and line feed
    "\u061c\u200e\u200f\u202a-\u202e"  # marks that change the direction of text
    "\u200b\u2060-\u2069\ufeff"  # zero width, invisible operators, isolated directions
    "\ud800-\udfff\ufff9-\ufffb\U000e0000-\U000e007f]"  # lone surrogates, annotations, tags
)

# escape sequences of a terminal: colours and cursor, titles, others such as a choice of characters
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-Z\\^-~])")


def strip_hidden(text: str) -> str:
    """Return `text` without characters that people cannot see, except line ends and tabs.

    Stricter than `escape_hidden`: it removes whole categories of Unicode (`_UNSEEN`).
    """
    return "".join(c for c in text if c in "\n\t" or unicodedata.category(c) not in _UNSEEN)


def find_hidden(text: str) -> str:
    """Return the code point of the first hidden character, as U+202E; "" if the text has none."""
    match = HIDDEN.search(text.replace("\r\n", "\n"))
    return "" if match is None else _code_point(match)


def escape_hidden(text: str, form: Literal["text", "line", "json", "code points"] = "text") -> str:
    """Return `text` with hidden characters escaped; CRLF becomes LF, except in JSON.

    - "text": for a terminal, as `\\x1b` and the like; "line": the same with line ends escaped
    - "code points": as ⟨U+202E⟩
    - "json": JSON text of the same value, as `\\u009b`; valid JSON holds hidden characters in its
      strings only, line ends aside
    """
    if form == "json":
        return HIDDEN.sub(lambda match: _json_escape(match[0]), text)
    if text.isascii() and text.isprintable():
        return text
    text = text.replace("\r\n", "\n")
    if form == "code points":
        return HIDDEN.sub(lambda match: f"⟨{_code_point(match)}⟩", text)
    text = HIDDEN.sub(lambda match: ascii(match[0])[1:-1], text)
    return text.replace("\n", "\\n") if form == "line" else text


def _json_escape(character: str) -> str:
    if character == "\r":  # it may end a line of the JSON itself
        return character
    return json.dumps(character)[1:-1].replace("\x7f", "\\u007f")  # json.dumps leaves DEL as it is


def _code_point(match: re.Match[str]) -> str:
    return f"U+{ord(match[0]):04X}"


def strip_ansi(text: str) -> str:
    """Return `text` without the escape sequences of a terminal, such as those for colours."""
    return _ANSI.sub("", text)


def escape_unprintable(text: str) -> str:
    """Return `text` with every unprintable character but line ends and tabs escaped."""
    return "".join(c if c.isprintable() or c in "\n\t" else ascii(c)[1:-1] for c in text)
