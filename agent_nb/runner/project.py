"""Reads what `test` lets pass in a project, from its `pyproject.toml`.

    [tool.agent_nb]
    # a test may ask these; else it refuses hosts of models, and with a tape all other machines
    allowed_hosts = ["data.example.org"]

    [[tool.agent_nb.normalize]]
    pattern = 'build [0-9a-f]{7}'   # a regular expression; matches in results are not compared
    replace = "build …"             # the replacement ("…" by default; \\1 is the first group)

Why not in the notebook: reviewers decide what a test ignores, and look here.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import msgspec

from ..agent import Rule
from ..errors import UsageError

FILE = "pyproject.toml"
_is_host = re.compile(r"[\w.:-]+", re.ASCII).fullmatch


def read_rules(notebook: Path) -> tuple[Rule, ...]:
    """Return the rules of a notebook's project, () without one. Raises UsageError."""
    file, entries = _read_setting(notebook, "normalize")
    if not isinstance(entries, list):
        raise UsageError(f"{file}: normalize is a list of tables: [[tool.agent_nb.normalize]].")
    return tuple(
        _read_rule(entry, f"{file}: [[tool.agent_nb.normalize]] number {n}")
        for n, entry in enumerate(entries, 1)
    )


def read_hosts(notebook: Path) -> tuple[str, ...]:
    """Return the hosts (lower case) that a test may ask beside this machine. Raises UsageError."""
    file, entries = _read_setting(notebook, "allowed_hosts")
    if not isinstance(entries, list) or not all(
        isinstance(e, str) and _is_host(e) for e in entries
    ):
        raise UsageError(
            f"{file}: allowed_hosts is a list of names or addresses without a port, such as"
            ' ["data.example.org"].'
        )
    return tuple(entry.lower().rstrip(".") for entry in entries)


def _read_setting(notebook: Path, name: str) -> tuple[Path, Any]:
    """Return the file of a notebook's project, and the value of `name` in its `[tool.agent_nb]`.

    The value is [] without a file or an entry. Raises UsageError for a file that cannot be read.
    """
    folders = notebook.resolve().parents
    file = next((f for folder in folders if (f := folder / FILE).is_file()), None)
    if file is None:
        return Path(FILE), []
    try:
        value: Any = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as fault:
        raise UsageError(f"{file} cannot be read: {fault}") from None
    for key in ("tool", "agent_nb", name):
        value = value.get(key, []) if isinstance(value, dict) else []
    return file, value


def _read_rule(entry: Any, where: str) -> Rule:
    """Return the rule of an entry. Raises UsageError, which names the entry as `where`."""
    try:
        rule = msgspec.convert(entry, Rule, strict=True)
        # raises for a wrong pattern; `sub` checks the replacement even without a match
        re.compile(rule.pattern).sub(rule.replace, "")
        return rule
    # beside `re.error`: an unknown name of a group, a huge number, a pattern nested too deeply
    except (msgspec.ValidationError, re.error, IndexError, OverflowError, RecursionError) as fault:
        raise UsageError(
            f"{where}: {fault}. It has a pattern, a regular expression, and may have a replace."
        ) from None
