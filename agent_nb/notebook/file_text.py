"""Files as text for a model: decoded, without secrets, cut, and fenced.

Why one file: a file of `--attach` and one that an `@name` mentions are sent alike. A text is
redacted before it is cut.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable
from pathlib import PurePath

from ..wire import Redactor, cut_end

Clean = Callable[[str], str]  # removes secrets from a text
TABLE_ENDINGS = (".csv", ".tsv", ".tab")  # tables that are text
TABLE_LINES = 5  # lines of such a table that are sent, its header included
# first bytes of a file -> its encoding
_BOMS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f-\x9f]")
_LONGEST_LINE = 2_000  # characters of a line of a table that are sent
_PLAIN_ENDINGS = ("txt", "text", "log", "out")  # endings that name no language


def decode_text(data: bytes) -> str | None:
    """Return the text of a file, None if it is not text.

    A text has 1 % control characters at most, counted in its first 8192 characters.
    """
    bom = next((name for mark, name in _BOMS.items() if data.startswith(mark)), "")
    for encoding in (bom,) if bom else ("utf-8", "cp1252", "latin-1"):
        try:
            text = data.decode(encoding)
        except UnicodeDecodeError:
            continue
        if "\n" not in text:  # Excel for Mac may end lines with a carriage return alone
            text = text.replace("\r", "\n")
        sample = text[:8192]
        return text if len(_CONTROLS.findall(sample)) * 100 <= len(sample) else None
    return None


def fence(text: str, language: str = "") -> str:
    """Return a text in a fence that it cannot close."""
    ticks = max((len(run) for run in re.findall(r"`{3,}", text)), default=2) + 1
    return f"{'`' * ticks}{language}\n{text}\n{'`' * ticks}"


def describe_text(name: str, text: str, clean: Clean, most: int) -> str:
    """Return a text file for a model: its name, its size in lines, and its text.

    The text has at most `most` characters. A table in text form ignores `most`: its first
    `TABLE_LINES` lines are sent.
    """
    lines = text.count("\n") + (not text.endswith("\n") and bool(text))
    head = f"File {format_name(name, clean)}, {lines:,} line{'' if lines == 1 else 's'}"
    ending = PurePath(name).suffix.lower().lstrip(".")
    if name.lower().endswith(TABLE_ENDINGS):
        first = text.split("\n", TABLE_LINES)[:TABLE_LINES]
        cleaned = (_clean_start(line, _LONGEST_LINE, clean).rstrip("\r") for line in first)
        shown = "\n".join(cut_end(line, _LONGEST_LINE) for line in cleaned)
        head += f", the first {len(first)}" if lines > len(first) else ""
    else:
        start = _clean_start(text, most, clean)
        left_out = max(0, len(text) - most)
        shown = f"{start[:most]}\n[… {left_out:,} characters left out …]" if left_out else start
    language = ending if ending.isalnum() and ending not in _PLAIN_ENDINGS else ""
    return f"{head}:\n{fence(shown.strip(chr(10)), language)}"


def _clean_start(text: str, most: int, clean: Clean) -> str:
    """Return the first `most` characters of a text without secrets, or more.

    Fewer if it is full of secrets: no text moves up from behind the part that is cleaned.
    """
    start = text[: 2 * (most + Redactor.LONGEST_KEY)]
    if len(start) == len(text):
        return clean(text)
    # a key that the cut has split is not found: it stands at the end, which is dropped
    return clean(start)[: -Redactor.LONGEST_KEY]


def format_name(name: str, clean: Clean) -> str:
    """Return the name of a file on one line, without secrets."""
    return cut_end("".join(c if c.isprintable() else "�" for c in clean(name)), 200)
