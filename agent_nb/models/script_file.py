"""Finds, reads and checks the file of a script: the answers of the scripted model, as YAML or JSON.

A mistake in a script should fail when the model is chosen, not in a later turn.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from ..errors import UsageError
from .script_turn import Case, Turn, read_turn

_ENDINGS = ("", ".yaml", ".yml", ".json")  # tried after the name that the user gives
_KEYS = frozenset({"turns", "cases", "delay", "dialect"})


class Script(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a script file."""

    turns: tuple[Turn, ...] = ()  # the answers, in order
    cases: tuple[Case, ...] = ()  # other turns for prompts that hold a certain text
    delay: float = 0.0  # seconds
    dialect: str = "xml"  # the name of the dialect in which the turns are written


def read_script(name: str, folder: str | Path | None = None) -> Script:
    """Return the script in the file `name`, looked for in the current folder, then in `folder`.

    Raises UsageError if the file does not exist or is not a script.
    """
    path = _find_file(name, [Path(), *([Path(folder)] if folder else [])])
    try:
        return _check_script(path, *_parse(path))
    except RecursionError:
        raise UsageError(f"{path} is nested too deeply.") from None


def _check_script(path: Path, script: Any, lines: dict[int, str]) -> Script:
    """Return the script that a file holds; `lines`: turn number -> its line, as ` (line 3)`."""
    if isinstance(script, list):
        script = {"turns": script}
    if not isinstance(script, dict) or not (script.keys() & {"turns", "cases"}):
        raise UsageError(f"{path}: a script is a list of turns, or an object with a list `turns`.")
    if unknown := script.keys() - _KEYS:
        raise UsageError(
            f"{path}: unknown key {sorted(map(str, unknown))[0]!r}. A script has `turns`, `cases`, `delay` and `dialect`."
        )
    delay, dialect = script.get("delay", 0.0), script.get("dialect", "xml")
    if type(delay) not in (int, float) or not isinstance(dialect, str):
        raise UsageError(f"{path}: `delay` is a number of seconds and `dialect` a name.")
    cases = script.get("cases", [])
    if not isinstance(cases, list):
        raise UsageError(f"{path}: `cases` is a list of objects with `when` and `turns`.")
    return Script(
        turns=_read_turns(script.get("turns", []), str(path), lines),
        cases=tuple(_read_case(case, f"{path}: case {n}") for n, case in enumerate(cases, 1)),
        delay=float(delay),
        dialect=dialect,
    )


def _read_turns(turns: Any, where: str, lines: dict[int, str]) -> tuple[Turn, ...]:
    """Return the checked turns; errors begin with `where` and the turn's number and line."""
    if not isinstance(turns, list):
        raise UsageError(f"{where}: a script is a list of turns, or an object with a list `turns`.")
    return tuple(
        read_turn(turn, f"{where}: turn {n}{lines.get(n, '')}") for n, turn in enumerate(turns, 1)
    )


def _read_case(case: Any, where: str) -> Case:
    """Return the checked case; errors begin with `where`."""
    if (
        not isinstance(case, dict)
        or case.keys() != {"when", "turns"}
        or not isinstance(case["when"], str)
        or not case["when"]
    ):
        raise UsageError(
            f"{where}: a case has `when`, a text that the prompt holds, and a list `turns`."
        )
    return Case(when=case["when"], turns=_read_turns(case["turns"], where, {}))


def _find_file(name: str, folders: Sequence[Path]) -> Path:
    """Return the first file with this name, perhaps with an ending. Raises UsageError."""
    # `os.path` raises nothing for an unknown user (`~ann`) or a name that is too long
    name_in_home = os.path.expanduser(name)
    for folder in folders:
        for ending in _ENDINGS:
            path = f"{folder / name_in_home}{ending}"
            if os.path.isfile(path):
                return Path(path)
    names = dict.fromkeys(str(folder.resolve().name or folder) for folder in folders)
    raise UsageError(
        f"There is no script {name!r} in {' or '.join(names)}. A script is a YAML or JSON file with a list `turns`."
    )


def _parse(path: Path) -> tuple[Any, dict[int, str]]:
    """Return the content of a script file and, for YAML, the line of each turn."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read as text: {error}.") from None
    if path.suffix != ".json":
        return _parse_yaml(path, text)
    try:
        return json.loads(text), {}
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise UsageError(f"{path}, {where}: {error.msg}.") from None
    except ValueError as error:  # a number with thousands of digits
        raise UsageError(f"{path}: {error}.") from None


def _parse_yaml(path: Path, text: str) -> tuple[Any, dict[int, str]]:
    """Return the content of a YAML script, and the line of each turn as text."""
    import yaml  # here, since most runs read no script

    try:
        # parsed twice: only the nodes have lines, only `safe_load` gives the values
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        script = yaml.safe_load(text)
    # PyYAML raises the last three for values that only look like a date or a number: 2024-02-30
    except (yaml.YAMLError, ValueError, LookupError, AttributeError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise UsageError(f"{path}{where}: {getattr(error, 'problem', None) or error}.") from None
    if isinstance(root, yaml.MappingNode):
        root = next((value for key, value in root.value if key.value == "turns"), None)
    items = root.value if isinstance(root, yaml.SequenceNode) else []
    return script, {n: f" (line {item.start_mark.line + 1})" for n, item in enumerate(items, 1)}
