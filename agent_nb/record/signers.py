"""Whose signatures count: the user's list of signers, and a file named on the command line.

    alice namespaces="record@jupyter-agent-nb" ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA… alice@work

Why OpenSSH's `allowed_signers` format: a team that signs its commits already has a file of it, and
`ssh-keygen -Y verify` reads that file.

Rule: a list in a notebook's folder counts only if the user names it on a command line. A line that
cannot be parsed is an error, because it would be unclear whether it counts.
"""

from __future__ import annotations

import base64
import os
import re
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path

import msgspec

from ..errors import UsageError
from ..host import hold_lock, shorten_path, write_private
from .ssh_signature import ED25519, fingerprint_key, parse_public_key

NAMESPACE = "record@jupyter-agent-nb"
FILE = "allowed_signers"
# a name that `Signer.add` accepts, a word of a line, an option, and the kind of a key
_NAME = re.compile(r"[\w.@+-]+")
_WORD = re.compile(r'(?:[^\s"]|"[^"]*")+')
_OPTION = re.compile(r'(?P<name>[a-z-]+)(?:="(?P<value>[^"]*)")?(?:,|$)')
_DATE = re.compile(r'\bvalid-(?:after|before)="\d+Z?"')
_KIND = re.compile(r"(?:sk-)?(?:ssh|ecdsa)-[\w.@-]+")
# number of digits of a date -> its format
_DATES = {8: "%Y%m%d", 12: "%Y%m%d%H%M", 14: "%Y%m%d%H%M%S"}


class Signer(msgspec.Struct, frozen=True):
    """One line of a list: names (comma-separated) and a public key as OpenSSH encodes it.

    `problem` says why the line does not count, "" if it counts. `key` may be b"" then.
    """

    name: str
    key: bytes = b""
    problem: str = ""

    def __str__(self) -> str:
        key = fingerprint_key(self.key) if self.key else "–"
        problem = f"  does not count: {self.problem}" if self.problem else ""
        return f"{self.name}  {key}{problem}"

    def is_called(self, name: str) -> bool:
        """Return whether `name` is one of its names, or the fingerprint of its key."""
        is_key = self.key != b"" and fingerprint_key(self.key) == name
        return is_key or name in self.name.split(",")

    @classmethod
    def load_all(cls, named: str = "") -> list[Signer]:
        """Return the user's signers and those of the file `named` on the command line.

        Raises UsageError.
        """
        of_user = read_signers(signers_file())
        file = Path(os.path.expanduser(named))
        return [*of_user, *(read_signers(file, required=True) if named else [])]

    @classmethod
    def add(cls, name: str, key_text: str) -> Signer:
        """Add a signer, unless it is there, to the user's list and return it. Raises UsageError.

        `key_text` is the path of a public key file, its line, or a line of an allowed_signers file;
        names and options in such a line are not copied, but for its dates.
        """
        if not _NAME.fullmatch(name):
            raise UsageError(
                f"{name!r} is not a name for a signer: write letters, digits and any of . @ + - _ without spaces."
            )
        line = _read_key_line(key_text)
        # a line that begins with the kind of key is from a `.pub` file and has no names
        line = f"{name} {line}" if _KIND.match(line) else line
        signer = _parse_line(line, "this key")
        assert signer is not None  # the line is neither blank nor a comment
        if signer.problem:
            raise UsageError(f"{name} cannot be added: {signer.problem}.")
        key = base64.b64encode(signer.key).decode()
        dates = "".join(f",{date}" for date in _DATE.findall(line))
        advice = f"Remove it first: jupyter agent-nb trust remove {name}"
        with hold_lock(signers_file()):
            known = [s for s in read_signers(signers_file()) if name in s.name.split(",")]
            if any(known_signer.key != signer.key for known_signer in known):
                raise UsageError(f"There is another key of {name}. {advice}")
            if known and all(known_signer.problem for known_signer in known):
                raise UsageError(
                    f"{name} is listed, but does not count: {known[0].problem}. {advice}"
                )
            if not known:
                new_line = f'{name} namespaces="{NAMESPACE}"{dates} {ED25519} {key}'
                _write_list([*(_read_lines(signers_file()) or []), new_line])
        return cls(name, signer.key)

    @classmethod
    def remove(cls, name: str) -> list[Signer]:
        """Remove the lines of signers with this name or fingerprint, and return these signers.

        A line goes as a whole, with all its names. Raises UsageError if none match.
        """
        remaining, removed = list[str](), list[Signer]()
        with hold_lock(signers_file()):
            for line in _read_lines(signers_file()) or []:
                signer = _parse_line(line, shorten_path(signers_file()))
                if signer is not None and signer.is_called(name):
                    removed.append(signer)
                else:
                    remaining.append(line)
            if removed:
                _write_list(remaining)
                return removed
        names = ", ".join(signer.name for signer in read_signers(signers_file()))
        raise UsageError(
            f"The list has no signer {name}. {f'It has: {names}.' if names else 'It is empty.'}"
        )


def signers_file() -> Path:
    """Return the file with the user's signers; it may not exist.

    Raises UsageError if its folder is not an absolute path.
    """
    import platformdirs

    file = Path(platformdirs.user_config_dir("agent_nb", appauthor=False)) / FILE
    if not file.is_absolute():  # a relative path would mean another file in every folder
        raise UsageError(
            f"The folder of your configuration is a relative path ({file.parent}); set XDG_CONFIG_HOME to an absolute one."
        )
    return file


def read_signers(file: Path, *, required: bool = False) -> list[Signer]:
    """Return the signers of a file.

    `required`: the file must exist and contain a signer who counts; else a missing file is an empty
    list. Raises UsageError, also if the file cannot be read or parsed.
    """
    lines = _read_lines(file)
    if lines is None and required:
        raise UsageError(f"File not found: {file}. It should list signers.")
    parsed = (
        _parse_line(line, f"{shorten_path(file)}, line {number}")
        for number, line in enumerate(lines or [], 1)
    )
    signers = [signer for signer in parsed if signer is not None]
    if required and all(signer.problem for signer in signers):
        why = "; ".join(f"{signer.name}: {signer.problem}" for signer in signers)
        raise UsageError(f"No signer in {file} counts{f' ({why})' if why else ': it names none'}.")
    return signers


def _read_lines(file: Path) -> list[str] | None:
    """Return the lines of a file, None if it is missing. Raises UsageError if it cannot be read."""
    try:
        text = file.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as fault:
        raise UsageError(f"The signers in {shorten_path(file)} cannot be read: {fault}.") from None
    # not `splitlines`: OpenSSH ends a line at "\n" alone, so a comment may hold a form feed
    return text.removesuffix("\n").split("\n") if text else []


def _read_key_line(key_text: str) -> str:
    """Return the line of the one key in `key_text`, or in the file it names. Raises UsageError."""
    lines = [line for line in _read_key(key_text).split("\n") if not _is_blank(line)]
    if len(lines) != 1:
        raise UsageError(f"{key_text} has {len(lines) or 'no'} lines; name one key.")
    return lines[0].strip()


def _read_key(key_text: str) -> str:
    """Return the text of a key, which is `key_text` or in the file it names. Raises UsageError."""
    file = Path(os.path.expanduser(key_text))
    with suppress(OSError, ValueError):  # a long line is not a path
        if file.is_file():
            text = file.read_text(encoding="utf-8", errors="replace")
            if "PRIVATE KEY" in text:
                raise UsageError(
                    f"{key_text} is a private key: keep it to yourself, and name the public one ({key_text}.pub)."
                )
            return text
    if not any(_KIND.fullmatch(word) for word in key_text.split()):
        raise UsageError(
            f"{key_text} is neither a file nor a key. A key is a line like: {ED25519} AAAAC3Nza… name"
        )
    return key_text


def _parse_line(line: str, where: str) -> Signer | None:
    """Return the signer of a line, None for a blank one or a comment. Raises UsageError."""
    if _is_blank(line):
        return None
    # with their quotes; none if a quote is not closed
    words: list[str] = [] if line.count('"') % 2 else _WORD.findall(line)
    # the kind of the key is the second word, or the third after options
    kind_index = next((n for n, word in enumerate(words[1:3], 1) if _KIND.fullmatch(word)), 0)
    if not kind_index or len(words) < kind_index + 2:
        raise UsageError(
            f"{where}: this is not a line of an allowed_signers file: NAME [OPTIONS] {ED25519} KEY."
        )
    kind, key = words[kind_index : kind_index + 2]
    name, name_problem = _list_names(words[0].strip('"'))
    if kind != ED25519:
        problem = f"{kind} keys do not count, only {ED25519}; make one with: ssh-keygen -t ed25519"
        return Signer(name, problem=problem)
    try:
        problem = _describe_problem(",".join(words[1:kind_index])) or name_problem
        return Signer(name, parse_public_key(key), problem)
    except UsageError as fault:
        raise UsageError(f"{where}: {fault}") from None


def _is_blank(line: str) -> bool:
    """Return whether a line is empty or a comment."""
    return not line.strip() or line.lstrip().startswith("#")


def _list_names(patterns: str) -> tuple[str, str]:
    """Return the names that an OpenSSH pattern list includes, and its problem ("": none)."""
    listed = patterns.split(",")
    excluded = [pattern[1:] for pattern in listed if pattern.startswith("!")]
    names = [
        name
        for name in listed
        if not name.startswith("!") and not any(fnmatchcase(name, e) for e in excluded)
    ]
    return (",".join(names), "") if names else (patterns, f"{patterns} excludes, and names nobody")


def _describe_problem(options: str) -> str:
    """Return why a line with these options does not count, "" if it does. Raises UsageError."""
    values: dict[str, str] = {}
    position = 0
    while position < len(options):
        option = _OPTION.match(options, position)
        if option is None:
            raise UsageError(f"the options {options[:100]!r} cannot be understood.")
        values[option["name"]] = option["value"] or ""
        position = option.end()
    if unknown := values.keys() - {"cert-authority", "namespaces", "valid-after", "valid-before"}:
        raise UsageError(f"the option {min(unknown)} is not supported.")
    now = time.time()
    if "cert-authority" in values:
        return "it is a certificate authority, and certificates are not supported; name the keys"
    if "namespaces" in values and not _includes_namespace(values["namespaces"]):
        return f"it is for other namespaces ({values['namespaces']}), not for {NAMESPACE}"
    if "valid-after" in values and now < _parse_date(values["valid-after"]):
        return f"it is not valid before {values['valid-after']}"
    if "valid-before" in values and now >= _parse_date(values["valid-before"]):
        return f"it was valid until {values['valid-before']}"
    return ""


def _includes_namespace(patterns: str) -> bool:
    """Return whether an OpenSSH pattern list includes our namespace."""
    listed = patterns.split(",")
    refused = any(p.startswith("!") and fnmatchcase(NAMESPACE, p[1:]) for p in listed)
    return not refused and any(
        fnmatchcase(NAMESPACE, p) for p in listed if not p.startswith(("!", "["))
    )


def _parse_date(text: str) -> float:
    """Return a date of an allowed_signers file in epoch seconds, local unless it ends with Z.

    Raises UsageError.
    """
    digits = text.removesuffix("Z")
    try:
        moment = datetime.strptime(digits, _DATES[len(digits)])  # noqa: DTZ007  (the zone follows)
        return (moment.replace(tzinfo=UTC) if text.endswith("Z") else moment).timestamp()
    except (KeyError, ValueError, OverflowError):  # `timestamp` raises the last two
        raise UsageError(f"{text!r} is not a date like 20270131 or 202701311200Z.") from None


def _write_list(lines: Sequence[str]) -> None:
    """Write the user's list. Raises UsageError."""
    target = signers_file()
    try:
        write_private(target, "".join(f"{line}\n" for line in lines).encode())
    except OSError as fault:
        raise UsageError(
            f"{shorten_path(target)} cannot be written: {fault.strerror or fault}."
        ) from None
