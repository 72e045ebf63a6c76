"""Find the commands in a shell command line, as far as its text shows them.

Why: a policy that denies `rm *` also means the `rm` in `ls; rm x` and in `sudo rm x` (`wrappers`).
No text shows everything that a shell will do: a watertight policy denies the tool `shell`. In doubt
a text counts as a command, which is safe: only restricting rules see those that a command starts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property

from .wrappers import QUOTES, WRAPPERS, cut_windows, may_wrap, programs_behind

# most characters that a search for started commands reads: `READ_ALWAYS` + `READ_TIMES` × those of
# the texts that it begins with
READ_ALWAYS, READ_TIMES = 20_000, 2

OPERATORS = re.compile(r"[;&|<>`$(){}\n\r\\]")
_BETWEEN = re.compile(r"&&|\|\||[;&|\n\r]")  # separates commands
_NESTED = re.compile(r"\$?\(|[)`]")  # encloses a nested command
_SPACE = re.compile(r"[ \t]+")
# words that may precede a program
_BEFORE = re.compile(
    r"\A(?:(?:[!{]|then|do|else|elif|if|while|until|time)(?=\s)\s+|[A-Za-z_]\w*=\S*\s+)+"
)
# one command, with the operators in its quotes
_COMMAND = re.compile(r"""(?:'[^']*'|"(?:\\.|[^"\\])*"|\\.|[^;&|\n'"\\])+""", re.DOTALL)
_WRAPPER = re.compile(rf"\b(?:{'|'.join(WRAPPERS)})\b", re.IGNORECASE)


def squeeze_spaces(text: str) -> str:
    """Return `text` stripped and with single spaces inside; line ends stay."""
    return _SPACE.sub(" ", text).strip()


def split_commands(line: str) -> list[str]:
    """Return the distinct texts between `; & && | ||` and line ends, at least one."""
    texts = dict.fromkeys(squeeze_spaces(text) for text in _BETWEEN.split(line))
    return [text for text in texts if text] or [squeeze_spaces(line)]


class CommandLine:
    """A command line, and the spellings of it that restricting rules compare."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.parts = split_commands(text)
        self._spellings: dict[str, set[str]] = {}

    @cached_property
    def whole_spellings(self) -> set[str]:
        """The spellings of the whole line, and commands that a split at operators would miss."""
        text = self.text
        return {text, squeeze_spaces(text), *_list_joined(text), *_find_in_quotes(text)}

    def part_spellings(self, part: str) -> set[str]:
        """Return the spellings of one of the `parts`."""
        if part not in self._spellings:
            self._spellings[part] = list_spellings(part)
        return self._spellings[part]


def list_spellings(command: str) -> set[str]:
    """Return a command, those nested in it and those it starts, all without prefix words, too.

    Of `if sudo rm x` also `sudo rm x` and `rm x`.
    """
    forms = _list_forms(command)
    return forms | _find_started(forms)


def _list_forms(command: str) -> set[str]:
    """Return a command and those nested in it, each also without prefix words and quotes."""
    nested = [command, *(squeeze_spaces(text) for text in _NESTED.split(command))]
    bare = [_BEFORE.sub("", text) for text in nested]
    return {*nested, *bare, *(QUOTES.sub("", text) for text in bare)} - {""}


def _find_started(texts: Iterable[str]) -> set[str]:
    """Return the commands that `texts` start through other programs and shells.

    Once more characters than the limit allows are read, each word of a text counts as a program.
    """
    started: set[str] = set()
    seen: set[str] = set()
    waiting = list(texts)
    characters_left = READ_ALWAYS + READ_TIMES * sum(map(len, waiting))
    while waiting:
        text = waiting.pop()
        if text in seen or not may_wrap(text):
            continue
        seen.add(text)
        characters_left -= len(text)
        if characters_left < 0:
            started.update(map(" ".join, cut_windows(QUOTES.sub("", text).split())))
            continue
        programs, scripts = programs_behind(text)
        started.update(map(" ".join, programs))
        for script in scripts:
            forms = {form for command in split_commands(script) for form in _list_forms(command)}
            started |= forms
            waiting += forms
    return started


def _list_joined(line: str) -> set[str]:
    """Return the spellings of the commands in a line with continuations (backslash) joined."""
    joined = line.replace("\\\n", "")
    commands = split_commands(joined) if joined != line else []
    return {text for command in commands for text in list_spellings(command)}


def _find_in_quotes(line: str) -> set[str]:
    """Return the commands that a command with an operator in quotes starts: `sh -c "a; b"`."""
    if not (QUOTES.search(line) and _WRAPPER.search(line)):
        return set()
    return _find_started(text for text in _COMMAND.findall(line) if _BETWEEN.search(text))
