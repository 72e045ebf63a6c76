"""Finds, escapes or removes characters that a reader does not see.

They are controls, lone surrogates, and those that hide, reverse or erase others. What is shown to a
person must be what runs: the view makes them visible, the command line escapes them, offered code
with one is refused, and they are removed from texts of MCP servers.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable
from typing import Literal

# categories of Unicode: controls, formats, private use, surrogates, unassigned
_UNSEEN = frozenset({"Cc", "Cf", "Co", "Cs", "Cn"})
# characters that have no shape anywhere, and lone surrogates
HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # controls, except tab and line feed
    "\xad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\uffa0"  # hyphens, joiners, fillers
    "\u061c\u200e\u200f\u2028-\u202e"  # ends of lines, marks that change the direction of text
    "\u200b\u2060-\u206f\ufeff"  # zero width, invisible operators, isolated directions
    "\ud800-\udfff\ufff0-\ufffb"  # lone surrogates, annotations
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"  # notes, tags, variants
)
_HIDDEN_ASCII = re.compile("[\x00-\x08\x0b-\x1f\x7f]")  # found in a tenth of the time
# some scripts and emoji need U+200C, U+200D and U+FE00 to U+FE0F, but a row of them hides data
_HIDDEN_OR_ROW = re.compile(
    rf"{HIDDEN.pattern}|[\u200c\ufe00-\ufe0f](?<=[\u200c\u200d\ufe00-\ufe0f].)|\u200d(?<=[\u200c\u200d].)"
)

# escape sequences of a terminal: colours and cursor, strings such as titles and pictures up to
# their end (without it they stay, or they would hide what follows), a choice of characters, others;
# tmux passes strings on with each ESC in them doubled
_ANSI = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[]PX^_k][^\x07\x1b\x9c]*+(?:\x07|\x1b\\|\x9c)"
    r"|Ptmux;(?:[^\x1b]|\x1b\x1b(?!Ptmux;))*+\x1b\\|[ -/]+[0-~]|[0-OQ-WYZ\\`-jl-~])"
)


def strip_hidden(text: str) -> str:
    """Return `text` without characters that people cannot see, except line ends and tabs.

    Stricter than `escape_hidden`: it removes whole categories of Unicode (`_UNSEEN`).
    """
    seen = (c for c in text if c in "\n\t" or unicodedata.category(c) not in _UNSEEN)
    return _HIDDEN_OR_ROW.sub("", "".join(seen))


def find_hidden(text: str) -> str:
    """Return the code point of the first hidden character, as U+202E; "" if the text has none."""
    match = _HIDDEN_OR_ROW.search(text.replace("\r\n", "\n"))
    return "" if match is None else _code_point(match)


def escape_hidden(text: str, form: Literal["text", "line", "json", "code points"] = "text") -> str:
    """Return `text` with hidden characters escaped; CRLF becomes LF, except in JSON.

    - "text": for a terminal, as `\\x1b` and the like; "line": the same with line ends escaped
    - "code points": as ⟨U+202E⟩
    - "json": JSON text of the same value, as `\\u009b`; valid JSON holds hidden characters in its
      strings only, line ends aside
    """
    if text.isascii() and text.isprintable():
        return text
    if form != "json":
        text = text.replace("\r\n", "\n")
    write, pattern = _FORMS[form]
    text = (_HIDDEN_ASCII if text.isascii() else pattern).sub(write, text)
    return text.replace("\n", "\\n") if form == "line" else text


def _escape(match: re.Match[str]) -> str:
    return ascii(match[0])[1:-1]


def _json_escape(match: re.Match[str]) -> str:
    character = match[0]
    if character == "\r":  # it may end a line of the JSON itself
        return character
    return json.dumps(character)[1:-1].replace("\x7f", "\\u007f")  # json.dumps leaves DEL as it is


def _code_point(match: re.Match[str]) -> str:
    return f"U+{ord(match[0]):04X}"


# form of `escape_hidden` -> how it writes a hidden character, and which ones; a terminal gets its
# text in pieces, which may part a row
_FORMS: dict[str, tuple[Callable[[re.Match[str]], str], re.Pattern[str]]] = {
    "text": (_escape, HIDDEN),
    "line": (_escape, HIDDEN),
    "json": (_json_escape, HIDDEN),
    "code points": (lambda match: f"⟨{_code_point(match)}⟩", _HIDDEN_OR_ROW),
}


def strip_ansi(text: str) -> str:
    """Return `text` without the escape sequences of a terminal, such as those for colours."""
    return _ANSI.sub("", text)


def escape_unprintable(text: str) -> str:
    """Return `text` with unprintable and hidden characters but line ends and tabs escaped."""
    printable = (c if c.isprintable() or c in "\n\t" else ascii(c)[1:-1] for c in text)
    return _HIDDEN_OR_ROW.sub(_escape, "".join(printable))
