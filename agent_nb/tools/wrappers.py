"""Programs that run the program which their arguments name: `sudo -u bob rm x` runs `rm x`.

Why: a policy that denies `rm *` means `rm`, however it is started. This is a help and no wall: what
a variable, an alias, a script file or another language starts is not seen.

Rules
- A program counts by its base name, in any letter case: `/bin/rm x` is `rm x`.
- The table knows which options of a wrapper take a value, as getopt reads them; any other option
  stands alone. `--` ends the options. `NAME=value` and redirections before a program are skipped.
- Texts that a shell runs (`bash -c TEXT`, `eval`) are returned as scripts, to be read in turn.
- A program that gets further arguments from elsewhere (`xargs`) has `{}` in their place.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence

import msgspec

LEVELS = 40  # programs behind one command; beyond that, each word counts as a program
_WINDOW = 20  # words of a program that begins at any word

# an assignment before a program; a redirection, with its target if no space stands between
_assigned = re.compile(r"[A-Za-z_]\w*(?:\[[^]]*\])?\+?=").match
_redirected = re.compile(r"(?:\d*|\{\w+\})(?:>>|>\||[<>]&|<>|&>|<<<|<|>)(.*)", re.DOTALL).match
_KEYWORDS = frozenset(("!", "{", "then", "do", "else", "elif", "if", "while", "until", "coproc"))
_QUOTES = re.compile(r"[\"'\\]")
_dollar_quotes = re.compile(r"\$(?=[\"'])")
_field_separator = re.compile(r"\$(?:IFS\b|\{IFS\})")


class Wrapper(msgspec.Struct, frozen=True):
    """How a wrapper reads its arguments.

    `short`, `long`: its options with a value, as letters and names. `skipped`: how many arguments
    stand before the program. `listing`: letters of options with which nothing runs. `scripts`:
    options whose value is a script. `after`: options after which a program stands, up to `;` or
    `+`. `joined`: its arguments are one script. `more`: its program gets further arguments.
    `file`: its first argument is a file.
    """

    short: str = ""
    long: tuple[str, ...] = ()
    skipped: int = 0
    listing: str = ""
    scripts: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    joined: bool = False
    more: bool = False
    file: bool = False


# options whose value is a script: `bash -c TEXT`, `su --command TEXT`
_COMMAND = ("c", "command", "session-command")
_SUDO = "user group host prompt chdir chroot close-from command-timeout other-user role type login-class auth-type"
# wrappers that read their arguments alike, by their names
_SHARED: dict[str, Wrapper] = {
    "sh bash dash zsh ksh mksh ash fish rbash csh tcsh": Wrapper(scripts=_COMMAND, file=True),
    "builtin nohup setsid busybox toybox caffeinate chronic fakeroot unbuffer linux32 linux64": Wrapper(),
    "su runuser": Wrapper("gGsuwCT", ("group", "shell", "user"), scripts=_COMMAND),
    "find gfind": Wrapper(after=("-exec", "-execdir", "-ok", "-okdir")),
    "fd fdfind": Wrapper(after=("-x", "-X", "--exec", "--exec-batch"), more=True),
    "strace ltrace": Wrapper("abeEIoOpPsSuUX", ("attach", "output", "user", "env", "trace")),
    "function gosu su-exec taskset": Wrapper(skipped=1),
    "eval trap": Wrapper(joined=True),
}
WRAPPERS: dict[str, Wrapper] = {
    **{name: wrapper for names, wrapper in _SHARED.items() for name in names.split()},
    "command": Wrapper(listing="vV"),
    "exec": Wrapper("a"),
    "watch": Wrapper("nq", ("interval", "equexit"), joined=True),
    "parallel": Wrapper("ILNajnS", ("jobs", "max-args", "arg-file", "sshlogin"), joined=True),
    "xargs": Wrapper("EILPadnsJRS", ("arg-file", "delimiter", "max-args", "max-procs"), more=True),
    "env": Wrapper("uCPSa", ("unset", "chdir", "argv0"), scripts=("S", "split-string")),
    "sudo": Wrapper("CDRTUacghprtu", tuple(_SUDO.split())),
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
    "script": Wrapper("EIOTBm", scripts=_COMMAND, file=True),
}


def may_wrap(command: str) -> bool:
    """Return whether a command may start a program that is not its first word."""
    first = _QUOTES.sub("", command[:200]).split(None, 1)[:1]
    return bool(first) and (
        any(sign in first[0] for sign in "/<>$=") or first[0].lower() in WRAPPERS.keys() | _KEYWORDS
    )


def programs_behind(command: str) -> tuple[list[list[str]], list[str]]:
    """Return the programs that one simple command starts, and the scripts that it runs.

    Each program is its base name and its arguments; that of the command itself is the first.
    """
    programs: list[list[str]] = []
    scripts: list[str] = []
    waiting = [_split_words(command)]
    while waiting:
        tokens = _skip_prefix(waiting.pop(), scripts)
        if not tokens:
            continue
        if len(programs) >= LEVELS:
            programs += cut_windows(tokens)
            break
        name = tokens[0].rpartition("/")[2] or tokens[0]
        programs.append([name, *tokens[1:]])
        if (wrapper := WRAPPERS.get(name.lower())) is not None:
            scripts += _scripts(wrapper, tokens[1:])
            waiting += _programs_of(wrapper, tokens[1:])
    return programs, scripts


def cut_windows(tokens: Sequence[str]) -> Iterator[list[str]]:
    """Yield what follows each word, that word included, cut to some words."""
    return (list(tokens[n : n + _WINDOW]) for n in range(len(tokens)))


def _split_words(command: str) -> list[str]:
    """Return the words of a command as a shell reads them; an open quote is closed at the end."""
    text = _field_separator.sub(" ", _dollar_quotes.sub("", command))
    for ending in ("", "'", '"', "\\"):
        try:
            return shlex.split(text + ending)
        except ValueError:
            continue
    return _QUOTES.sub("", text).split()


def _skip_prefix(tokens: list[str], scripts: list[str]) -> list[str]:
    """Return `tokens` from the program on; the text of here-strings is added to `scripts`."""
    scripts += [
        word.partition("<<<")[2] or " ".join(tokens[n + 1 : n + 2])
        for n, word in enumerate(tokens)
        if "<<<" in word
    ]
    at = 0
    while at < len(tokens):
        word = tokens[at]
        if redirected := _redirected(word):
            at += 1 if redirected[1] else 2
        elif word.lower() in _KEYWORDS or _assigned(word):
            at += 1
        else:
            break
    return tokens[at:]


def _programs_of(wrapper: Wrapper, tokens: Sequence[str]) -> Iterator[list[str]]:
    """Yield the programs, with their arguments, that a wrapper starts itself."""
    if wrapper.after:
        starts = [n + 1 for n, word in enumerate(tokens) if word in wrapper.after]
    else:
        at = _past_options(wrapper, tokens)
        starts = [] if at is None or wrapper.joined or wrapper.file else [at + wrapper.skipped]
    for start in starts:
        ends = (";", "+", *wrapper.after) if wrapper.after else ()
        stop = next((n for n in range(start, len(tokens)) if tokens[n] in ends), len(tokens))
        program = list(tokens[start:stop])
        if program:
            yield [*program, "{}"] if wrapper.more else program


def _past_options(wrapper: Wrapper, tokens: Sequence[str]) -> int | None:
    """Return where the arguments of a wrapper begin, None if it starts nothing."""
    at = 0
    while at < len(tokens):
        word = tokens[at]
        if word == "--":
            return at + 1
        if len(word) > 1 and word[0] == "-":
            if not word.startswith("--") and any(letter in word for letter in wrapper.listing):
                return None
            at += 2 if _takes_next(wrapper, word) else 1
        elif _assigned(word):
            at += 1
        else:
            break
    return at


def _takes_next(wrapper: Wrapper, option: str) -> bool:
    """Return whether the value of an option is the next word."""
    if option.startswith("--"):
        return "=" not in option and any(name.startswith(option[2:]) for name in wrapper.long)
    for n, letter in enumerate(option[1:], 2):
        if letter in wrapper.short:
            return n == len(option)
    return False


def _scripts(wrapper: Wrapper, tokens: Sequence[str]) -> Iterator[str]:
    """Yield the texts that a wrapper gives to a shell, with what the shell may add to them."""
    if wrapper.joined:
        yield " ".join(tokens[_past_options(wrapper, tokens) or 0 :])
    for n, word in enumerate(tokens) if wrapper.scripts else ():
        name, equals, value = word.lstrip("-").partition("=")
        if word.startswith("--"):
            if not any(each.startswith(name) for each in wrapper.scripts):
                continue
        elif word[:1] != "-" or wrapper.scripts[0] not in word:
            continue
        else:
            equals, value = "", word.partition(wrapper.scripts[0])[2]
        if value:
            yield value
        if not equals:
            after = [each for each in tokens[n + 1 :] if each[:1] not in ("-", "+")]
            yield from (after[0], " ".join(after[2:])) if after else ()
        return  # the first counts
