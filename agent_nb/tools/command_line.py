"""The commands in a shell command line, as far as its text shows them.

Why: a policy that denies `rm *` means the `rm` in `ls; rm x` too. No text tells all that a shell
will do (variables, aliases, programs that run programs); a rule that must not be got around denies
`shell`.

Rules
- Too many commands are found rather than too few: what stands in quotes or after a `#` is parted
  too.
- White space at the ends is dropped, runs of it are one space.
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
    """Return `text` without white space at its ends and with single spaces inside; line
    ends stay.
    """
    return _SPACE.sub(" ", text).strip()


def commands(line: str) -> list[str]:
    """Return what stands between the operators `; & && | ||` and line ends, each once; at least one
    text.
    """
    found = dict.fromkeys(squeezed(part) for part in _BETWEEN.split(line))
    return [part for part in found if part] or [squeezed(line)]


def spellings(command: str) -> set[str]:
    """Return a command and what of it is a command of its own: what it substitutes, without words
    before it, without quotes.
    """
    inner = [command, *(squeezed(part) for part in _NESTED.split(command))]
    bare = [_BEFORE.sub("", text) for text in inner]
    return {*inner, *bare, *(_QUOTES.sub("", text) for text in bare)} - {""}


def joined(line: str) -> set[str]:
    """Return the spellings of the commands of a line that goes on after a backslash at its end;
    none for another line.
    """
    whole = line.replace("\\\n", "")
    return (
        {text for command in commands(whole) for text in spellings(command)}
        if whole != line
        else set()
    )
