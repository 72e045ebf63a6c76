"""The commands in a shell command line, as far as its text shows them.

Why: a policy that denies `rm *` also means the `rm` in `ls; rm x`. No text shows everything a shell
will do (variables, aliases, programs that run programs); a rule that must be watertight denies
`shell`.

Rules
- Rather too many commands are found than too few: text in quotes or after a `#` is split too.
- White space at the ends is dropped; runs of it become one space.
"""

from __future__ import annotations

import re

OPERATORS = re.compile(r"[;&|<>`$(){}\n\r\\]")
_BETWEEN = re.compile(r"&&|\|\||[;&|\n\r]")
_NESTED = re.compile(r"\$?\(|[)`]")
_SPACE = re.compile(r"[ \t]+")
_BEFORE = re.compile(
    r"\A(?:(?:[!{]|then|do|else|elif|if|while|until|time)(?=\s)\s+|[A-Za-z_]\w*=\S*\s+)+"
)
_QUOTES = re.compile(r"[\"'\\]")


def squeezed(text: str) -> str:
    """Return `text` stripped and with single spaces inside; line ends stay."""
    return _SPACE.sub(" ", text).strip()


def commands(line: str) -> list[str]:
    """Return the distinct texts between `; & && | ||` and line ends, at least one."""
    found = dict.fromkeys(squeezed(part) for part in _BETWEEN.split(line))
    return [part for part in found if part] or [squeezed(line)]


def spellings(command: str) -> set[str]:
    """Return a command, the commands it substitutes, and each without prefix words and quotes."""
    inner = [command, *(squeezed(part) for part in _NESTED.split(command))]
    bare = [_BEFORE.sub("", text) for text in inner]
    return {*inner, *bare, *(_QUOTES.sub("", text) for text in bare)} - {""}


def joined(line: str) -> set[str]:
    """Return the spellings of the commands in a line with continuations (backslash), else none."""
    whole = line.replace("\\\n", "")
    return (
        {text for command in commands(whole) for text in spellings(command)}
        if whole != line
        else set()
    )
