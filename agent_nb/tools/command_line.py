"""The commands in a shell command line, as far as its text shows them.

Why: a policy that denies `rm *` also means the `rm` in `ls; rm x` and in `sudo rm x` (`wrappers`).
No text shows everything a shell will do (variables, aliases, other languages); a rule that must be
watertight denies `shell`.

Rules
- What a command starts counts for rules that restrict, never for rules that allow.
- Rather too many commands are found than too few: text in quotes or after a `#` is split too.
- White space at the ends is dropped; runs of it become one space.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property

from .wrappers import WRAPPERS, cut_windows, may_wrap, programs_behind

# characters of commands inside commands that are read: so many, and so many times the whole line
READ_ALWAYS, READ_TIMES = 20_000, 2

OPERATORS = re.compile(r"[;&|<>`$(){}\n\r\\]")
# between two commands of a line; around commands inside one; before the program of one
_BETWEEN = re.compile(r"&&|\|\||[;&|\n\r]")
_NESTED = re.compile(r"\$?\(|[)`]")
_SPACE = re.compile(r"[ \t]+")
_BEFORE = re.compile(
    r"\A(?:(?:[!{]|then|do|else|elif|if|while|until|time)(?=\s)\s+|[A-Za-z_]\w*=\S*\s+)+"
)
_QUOTES = re.compile(r"[\"'\\]")
# one command, with the operators in its quotes
_COMMAND = re.compile(r"""(?:'[^']*'|"(?:\\.|[^"\\])*"|\\.|[^;&|\n'"\\])+""", re.DOTALL)
_WRAPPER = re.compile(rf"\b(?:{'|'.join(WRAPPERS)})\b", re.IGNORECASE)


def squeeze_spaces(text: str) -> str:
    """Return `text` stripped and with single spaces inside; line ends stay."""
    return _SPACE.sub(" ", text).strip()


def commands(line: str) -> list[str]:
    """Return the distinct texts between `; & && | ||` and line ends, at least one."""
    parts = dict.fromkeys(squeeze_spaces(part) for part in _BETWEEN.split(line))
    return [part for part in parts if part] or [squeeze_spaces(line)]


class CommandLine:
    """A command line, and what restricting rules compare of it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.parts = commands(text)
        self._spellings: dict[str, set[str]] = {}

    @cached_property
    def wholes(self) -> set[str]:
        """The forms of the whole line: commands that its parts do not show are among them."""
        return {self.text, squeeze_spaces(self.text), *_joined(self.text), *_in_quotes(self.text)}

    def spellings(self, part: str) -> set[str]:
        """Return the forms of a part."""
        if part not in self._spellings:
            self._spellings[part] = spellings(part)
        return self._spellings[part]


def spellings(command: str) -> set[str]:
    """Return a command, what it substitutes and what it starts, without prefix words and quotes."""
    forms = _forms(command)
    return forms | _behind(forms)


def _forms(command: str) -> set[str]:
    """Return a command and those nested in it, each also without prefix words and quotes."""
    inner = [command, *(squeeze_spaces(part) for part in _NESTED.split(command))]
    bare = [_BEFORE.sub("", text) for text in inner]
    return {*inner, *bare, *(_QUOTES.sub("", text) for text in bare)} - {""}


def _behind(texts: Iterable[str]) -> set[str]:
    """Return the commands that `texts` start through other programs and shells.

    What is nested too deeply to be read again and again is read once: each word may be a program.
    """
    out: set[str] = set()
    seen: set[str] = set()
    waiting = list(texts)
    room = READ_ALWAYS + READ_TIMES * sum(map(len, waiting))
    while waiting:
        text = waiting.pop()
        if text in seen or not may_wrap(text):
            continue
        seen.add(text)
        room -= len(text)
        if room < 0:
            out.update(map(" ".join, cut_windows(_QUOTES.sub("", text).split())))
            continue
        programs, scripts = programs_behind(text)
        out.update(map(" ".join, programs))
        for part in (part for script in scripts for part in commands(script)):
            forms = _forms(part)
            out |= forms
            waiting += forms
    return out


def _joined(line: str) -> set[str]:
    """Return the spellings of the commands in a line with continuations (backslash), else none."""
    whole = line.replace("\\\n", "")
    return (
        {text for command in commands(whole) for text in spellings(command)}
        if whole != line
        else set()
    )


def _in_quotes(line: str) -> set[str]:
    """Return what those commands start that have an operator in quotes, at which `commands` splits
    them.
    """
    if not (_QUOTES.search(line) and _WRAPPER.search(line)):
        return set()
    return _behind(text for text in _COMMAND.findall(line) if _BETWEEN.search(text))
