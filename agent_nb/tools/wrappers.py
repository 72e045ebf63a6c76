"""Wrappers: programs that run the program in their arguments, as `sudo -u bob rm x` runs `rm x`.

Why: a policy that denies `rm *` means `rm`, however it is started. This module finds a model's
mistakes; it does not stop an attacker, who may use a variable, a script file or another language.

Rule: in doubt a word counts as a program, which is safe: the result only restricts what may run. So
only options that the table lists take a value.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence

import msgspec

MOST_PROGRAMS = 40  # behind one command; of a longer chain each word counts as a program
_LONGEST_WINDOW = 20  # words of a program in `cut_windows`

# `NAME=value` before a program
_match_assignment = re.compile(r"[A-Za-z_]\w*(?:\[[^]]*\])?\+?=").match
# a redirection; group 1 is its target, empty if the target is the next word
_match_redirection = re.compile(
    r"(?:\d*|\{\w+\})(?:>>|>\||[<>]&|<>|&>|<<<|<|>)(.*)", re.DOTALL
).match
# words of a shell that may stand before a program
_KEYWORDS = frozenset(("!", "{", "then", "do", "else", "elif", "if", "while", "until", "coproc"))
QUOTES = re.compile(r"[\"'\\]")
# `$'…'` and `$"…"`, which shlex reads with the `$`; and `$IFS`, which a shell turns into a space
_DOLLAR_QUOTES = re.compile(r"\$(?=[\"'])")
_FIELD_SEPARATOR = re.compile(r"\$(?:IFS\b|\{IFS\})")


class Wrapper(msgspec.Struct, frozen=True):
    """How a wrapper reads its arguments.

    Letters and names of options are without their hyphens, except in `after`.
    """

    short: str = ""  # the letters of options that take a value
    long: tuple[str, ...] = ()  # the long names of options that take a value
    flags: tuple[str, ...] = ()  # those that take none and begin as one of `long` does
    skipped: int = 0  # arguments before the program, such as the seconds of `timeout`
    listing: str = ""  # the letters of options with which no program runs, as in `command -v rm`
    scripts: tuple[str, ...] = ()  # options whose value is a script: one letter, then long names
    after: tuple[str, ...] = ()  # options before a program that ends at `;` or `+`, as in `find`
    joined: bool = False  # its arguments, with spaces between, are one script
    more: bool = False  # its program gets further arguments from elsewhere
    file: bool = False  # a shell: its first argument is a file, and its options are letters


# options whose value is a script: `bash -c TEXT`, `su --command TEXT`
_COMMAND = ("c", "command", "session-command")
# long options of `sudo` that take a value
_SUDO = "user group host prompt chdir chroot close-from command-timeout other-user role type login-class auth-type"
# names of wrappers, separated by spaces -> how all of them read their arguments
_SHARED: dict[str, Wrapper] = {
    "sh bash dash ksh mksh ash fish rbash csh tcsh": Wrapper("oO", scripts=_COMMAND, file=True),
    "zsh": Wrapper("o", scripts=_COMMAND, file=True),
    "builtin nohup setsid busybox toybox caffeinate chronic fakeroot unbuffer linux32 linux64": Wrapper(),
    "su runuser": Wrapper("gGsuwCT", ("group", "shell", "user"), scripts=_COMMAND),
    "find gfind": Wrapper(after=("-exec", "-execdir", "-ok", "-okdir")),
    "fd fdfind": Wrapper(after=("-x", "-X", "--exec", "--exec-batch"), more=True),
    "strace ltrace": Wrapper("abeEIoOpPsSuUX", ("attach", "output", "user", "env", "trace")),
    "function gosu su-exec taskset": Wrapper(skipped=1),
    "eval trap": Wrapper(joined=True),
}
# name of a program that starts others -> how it reads its arguments
WRAPPERS: dict[str, Wrapper] = {
    **{name: wrapper for names, wrapper in _SHARED.items() for name in names.split()},
    "command": Wrapper(listing="vV"),
    "exec": Wrapper("a"),
    "watch": Wrapper("nq", ("interval", "equexit"), joined=True),
    "parallel": Wrapper("ILNajnS", ("jobs", "max-args", "arg-file", "sshlogin"), joined=True),
    "xargs": Wrapper("EILPadnsJRS", ("arg-file", "delimiter", "max-args", "max-procs"), more=True),
    "env": Wrapper("uCPSa", ("unset", "chdir", "argv0"), scripts=("S", "split-string")),
    "sudo": Wrapper("CDRTUacghprtu", tuple(_SUDO.split()), flags=("login",)),
    "doas": Wrapper("aCu"),
    "pkexec": Wrapper(long=("user",)),
    "nice": Wrapper("n", ("adjustment",)),
    "ionice": Wrapper("cnpPu", ("class", "classdata", "pid", "pgid", "uid")),
    "chrt": Wrapper("TPDp", ("sched-runtime", "sched-period", "sched-deadline"), skipped=1),
    "timeout": Wrapper("ks", ("kill-after", "signal"), skipped=1),
    "stdbuf": Wrapper("ioe", ("input", "output", "error")),
    "time": Wrapper("fo", ("format", "output")),
    "chroot": Wrapper(long=("userspec", "groups"), skipped=1),
    "unshare": Wrapper("GRSw", ("root", "wd", "setuid", "setgid", "propagation")),
    "nsenter": Wrapper("GSt", ("target", "setuid", "setgid")),
    "flock": Wrapper("wE", ("timeout", "conflict-exit-code"), skipped=1, scripts=_COMMAND),
    # of BSD, `script FILE PROGRAM`, and of util-linux
    "script": Wrapper("EIOTBm", skipped=1, scripts=_COMMAND),
}


def may_wrap(command: str) -> bool:
    """Return whether a command may start a program that is not its first word.

    A quick check that spares most commands the work of `programs_behind`.
    """
    first = QUOTES.sub("", command[:200]).split(None, 1)[:1]
    return bool(first) and (
        any(sign in first[0] for sign in "/<>$=") or first[0].lower() in WRAPPERS.keys() | _KEYWORDS
    )


def programs_behind(command: str) -> tuple[list[list[str]], list[str]]:
    """Return the programs that one simple command starts, and the scripts that it runs.

    A program is a list of its base name and its arguments. The first is the command's own: `sudo rm
    x` starts `["sudo", "rm", "x"]`, then `["rm", "x"]`.
    """
    programs: list[list[str]] = []
    scripts: list[str] = []
    unread = [_split_words(command)]
    while unread:
        with_prefix = unread.pop()
        scripts += _find_here_strings(with_prefix)
        tokens = _skip_prefix(with_prefix)
        if not tokens:
            continue
        if len(programs) >= MOST_PROGRAMS:  # what is left is not looked into, so no more is found
            programs += cut_windows(tokens)
            continue
        name = tokens[0].rpartition("/")[2] or tokens[0]
        programs.append([name, *tokens[1:]])
        if (wrapper := WRAPPERS.get(name.lower())) is not None:
            scripts += _find_scripts(wrapper, tokens[1:])
            unread += _find_programs(wrapper, tokens[1:])
    return programs, scripts


def cut_windows(tokens: Sequence[str]) -> Iterator[list[str]]:
    """Yield for each word a program that begins with it and has at most `_LONGEST_WINDOW` words."""
    return (list(tokens[n : n + _LONGEST_WINDOW]) for n in range(len(tokens)))


def _split_words(command: str) -> list[str]:
    """Return the words of a command as a shell reads them.

    An open quote is closed at the end; if that does not help, quotes are removed.
    """
    text = _FIELD_SEPARATOR.sub(" ", _DOLLAR_QUOTES.sub("", command))
    for ending in ("", "'", '"', "\\"):
        try:
            return shlex.split(text + ending)
        except ValueError:
            continue
    return QUOTES.sub("", text).split()


def _find_here_strings(tokens: Sequence[str]) -> Iterator[str]:
    """Yield each TEXT of `<<< TEXT`: the input of the program, which may be a shell."""
    for word, following in zip(tokens, [*tokens[1:], ""], strict=False):  # `tokens` may be empty
        _, sign, text = word.partition("<<<")
        if sign:
            yield text or following


def _skip_prefix(tokens: list[str]) -> list[str]:
    """Return `tokens` from the program on."""
    position = 0
    while position < len(tokens):
        word = tokens[position]
        if redirected := _match_redirection(word):
            position += 1 if redirected[1] else 2
        elif word.lower() in _KEYWORDS or _match_assignment(word):
            position += 1
        else:
            break
    return tokens[position:]


def _find_programs(wrapper: Wrapper, tokens: Sequence[str]) -> Iterator[list[str]]:
    """Yield the programs, with their arguments, that a wrapper starts itself."""
    starts: list[int] = []
    ends: tuple[str, ...] = ()
    if wrapper.after:
        starts = [n + 1 for n, word in enumerate(tokens) if word in wrapper.after]
        ends = (";", "+", *wrapper.after)
    elif not (wrapper.joined or wrapper.file):
        position = _skip_options(wrapper, tokens)
        starts = [] if position is None else [position + wrapper.skipped]
    for start in starts:
        stop = next((n for n in range(start, len(tokens)) if tokens[n] in ends), len(tokens))
        program = list(tokens[start:stop])
        if program:
            yield [*program, "{}"] if wrapper.more else program


def _skip_options(wrapper: Wrapper, tokens: Sequence[str]) -> int | None:
    """Return the position of the first argument after the options, None if no program runs."""
    position = 0
    while position < len(tokens):
        word = tokens[position]
        if word == "--":
            return position + 1
        if len(word) > 1 and word[0] == "-":
            if not word.startswith("--") and any(letter in word for letter in wrapper.listing):
                return None
            position += 2 if _takes_next(wrapper, word) else 1
        elif _match_assignment(word):
            position += 1
        else:
            break
    return position


def _takes_next(wrapper: Wrapper, option: str) -> bool:
    """Return whether the value of an option is the next word.

    It is in `-u bob` and `--user bob`; in `-ubob` and `--user=bob` the option holds its value.
    """
    if option.startswith("--"):
        # getopt takes abbreviations: `--us` is `--user`
        is_one = any(name.startswith(option[2:]) for name in wrapper.long)
        return is_one and "=" not in option and option[2:] not in wrapper.flags
    # letters in one word, `-nu`: the first that takes a value has the rest of the word, if any
    for n, letter in enumerate(option[1:], 2):
        if letter in wrapper.short:
            return n == len(option)
    return False


def _find_scripts(wrapper: Wrapper, tokens: Sequence[str]) -> Iterator[str]:
    """Yield the scripts that a wrapper runs: the value of a script option, or all its arguments.

    For `-c TEXT NAME ARGS…`, ARGS are yielded too, as one script: TEXT may run them as `"$@"`.
    """
    if wrapper.joined:
        yield " ".join(tokens[_skip_options(wrapper, tokens) or 0 :])
    if not wrapper.scripts:
        return
    for n, word in enumerate(tokens):
        if word.startswith("--"):
            name, equals, value = word.lstrip("-").partition("=")
            # not a bare `--`; a name may be abbreviated
            is_option = bool(name) and any(each.startswith(name) for each in wrapper.scripts)
        else:
            # the letter may stand among others, `-lc TEXT`, or have the text behind it, `-cTEXT`
            before, letter, value = word.partition(wrapper.scripts[0])
            is_option, equals = before.startswith("-") and letter != "", ""
        if not is_option:
            continue
        if value:
            yield value
        if not equals:
            yield from _find_texts(wrapper, tokens[n:])
        return  # only the first script option counts


def _find_texts(wrapper: Wrapper, tokens: Sequence[str]) -> Iterator[str]:
    """Yield TEXT, and ARGS as one text, of `-c TEXT NAME ARGS…`; other options may stand between.

    Each `o` of a shell's short options takes a word before TEXT, as in `-ceuo pipefail TEXT`, and
    each `O` of other shells than zsh.
    """
    values = 0  # words to come that are values
    for n, word in enumerate(tokens):
        if word[:1] in ("-", "+"):
            takes_words = wrapper.file and not word.startswith("--")
            values += sum(letter in wrapper.short for letter in word) if takes_words else 0
        elif values:
            values -= 1
        else:
            words = [each for each in tokens[n:] if each[:1] not in ("-", "+")]
            yield words[0]
            yield " ".join(words[2:])
            return
