"""The normal form in which outputs are compared; it hides what differs between runs by chance.

Why here: the drift of a replay and the comparison of two runs must agree on what "different" means.
Plain numbers count, and whole seconds too (`12 s`, `12:30:01`), because they may be results.
"""

from __future__ import annotations

import re
from typing import Any

from ..wire import Console, encode_canonical

# (pattern, its replacement), applied in this order
_RULES: tuple[tuple[re.Pattern[str], str], ...] = (
    # colour codes, addresses, folders of absolute paths
    (re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]"), ""),
    (re.compile(r"\b0x[0-9a-fA-F]+\b"), "0x…"),
    (re.compile(r"(?<![\w./\\])(?:[A-Za-z]:)?(?:[\\/](?!\s)[\w.+@~-]+)+(?=[\\/])[\\/]"), "…/"),
    # files and numbers of cells
    (re.compile(r"<ipython-input-\d+-\w+>"), "<ipython-input>"),
    (re.compile(r"\b(In|Out) ?\[\d+\]"), r"\1[…]"),
    # clock times, then durations
    (re.compile(r"\b\d+:\d{2}:\d{2}[.,]\d+\b"), "…:…"),
    (re.compile(r"\b\d+(?:\.\d+)?(?:e[+-]?\d+)? ?(?:ns|µs|μs|us|ms)\b"), "… s"),
    (re.compile(r"\b\d+\.\d+(?:e[+-]?\d+)? ?(?:s|sec|secs|seconds?|min|minutes?)\b"), "… s"),
    # white space at line ends; possessive `++` keeps long runs of blanks from taking quadratic time
    (re.compile(r"(?<![ \t])[ \t]++(?=\n|\Z)"), ""),
)


def normalize_text(text: str) -> str:
    """Return the normal form of a text."""
    text = Console.render_screen(text) if "\r" in text else text
    for pattern, replacement in _RULES:
        text = pattern.sub(replacement, text)
    return text.strip()


def normalize_value(value: Any) -> str:
    """Return the normal form of a result's content, a text or a JSON value; raise nothing.

    A value that is not JSON is compared by its `str`.
    """
    if isinstance(value, str):
        return normalize_text(value)
    try:
        return normalize_text(encode_canonical(value))
    except (ValueError, RecursionError):
        return normalize_text(str(value))
