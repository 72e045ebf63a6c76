"""The normal form of texts that are compared: equal for runs that differ only in writing.

Why here: drift of a replay and the difference of two runs must agree on what "different" means.

Rules
- Ignored: overwritten lines and progress bars (`wire.console`), addresses (0x7f…), durations and
  clock times with fractions, the folders of absolute paths, cell numbers (In[3]), colour codes,
  white space at line ends. Everything else counts, plain numbers too.
- JSON values are compared as canonical text, so that 1 and 1.0 are the same.
"""

from __future__ import annotations

import re
from typing import Any

from ..wire import Console, encode_canonical

#: (pattern, what stands for a match): colour codes, addresses, folders of absolute paths, files and
#: numbers of cells, clock times and durations, white space at line ends
_RULES: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]"), ""),
    (re.compile(r"\b0x[0-9a-fA-F]+\b"), "0x…"),
    (re.compile(r"(?<![\w./\\])(?:[A-Za-z]:)?(?:[\\/](?!\s)[\w.+@~-]+)+(?=[\\/])[\\/]"), "…/"),
    (re.compile(r"<ipython-input-\d+-\w+>"), "<ipython-input>"),
    (re.compile(r"\b(In|Out) ?\[\d+\]"), r"\1[…]"),
    (re.compile(r"\b\d+:\d{2}:\d{2}[.,]\d+\b"), "…:…"),
    (re.compile(r"\b\d+(?:\.\d+)?(?:e[+-]?\d+)? ?(?:ns|µs|μs|us|ms)\b"), "… s"),
    (re.compile(r"\b\d+\.\d+(?:e[+-]?\d+)? ?(?:s|sec|secs|seconds?|min|minutes?)\b"), "… s"),
    (re.compile(r"(?<![ \t])[ \t]++(?=\n|\Z)"), ""),
)


def normalize_text(text: str) -> str:
    """Return the normal form of a text."""
    text = Console.render_screen(text) if "\r" in text else text
    for pattern, plain in _RULES:
        text = pattern.sub(plain, text)
    return text.strip()


def normalize_value(value: Any) -> str:
    """Return the normal form of a result's content, a text or a JSON value."""
    if isinstance(value, str):
        return normalize_text(value)
    try:
        return normalize_text(encode_canonical(value))
    except (ValueError, RecursionError):
        return normalize_text(str(value))
