"""Rules that decide which calls may run: a YAML file, or one of the words `ask`, `auto`, `deny`.

    default: ask                     # for tools with effects that no rule names: allow, ask or deny
    rules:                           # the first rule that fits decides
      - allow: [read, list]          # a tool, or several; globs (* ? [abc])
      - deny: write
        args: {file: "*.ipynb"}      # all named arguments must fit one of their globs
        reason: notebooks are written by people
      - allow: shell
        args: {command: ["git status", "git diff*"]}
      - ask: "*"

Rules
- Tools without effects run unless a rule says otherwise; `default` is about the others.
- When in doubt a rule that restricts fits and one that allows does not: restricting globs also match other spellings of a value
  (`./x`, `a/../x`, another case), allowing ones must match the value as it is and as a normalised path, and the globs of an
  allowing rule never reach across shell operators in a shell command.
- An argument that was left out counts with the default of the tool's schema; a value that is no text counts as its JSON.
- Reading is strict: an unknown key, a doubled key or a wrong word is a UsageError that names file and line.
"""

from __future__ import annotations

import posixpath
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any, Literal

import msgspec

from ..errors import UsageError
from .base import Tool
from .values import encoded

Verdict = Literal["allow", "ask", "deny"]
VERDICTS: tuple[Verdict, ...] = ("allow", "ask", "deny")
MODES: dict[str, Verdict] = {"ask": "ask", "auto": "allow", "deny": "deny"}
_LARGEST = 1 << 20  # bytes of a policy file
_OPERATORS = re.compile(r"[;&|<>`$(){}\n\r\\]")


class Rule(msgspec.Struct, frozen=True):
    """One rule: its verdict for calls whose tool fits `tools` and whose arguments fit `args`; `where` is file and line."""

    verdict: Verdict
    tools: tuple[str, ...]
    args: dict[str, tuple[str, ...]] = {}
    reason: str = ""
    where: str = ""

    def fits(self, tool: Tool, args: Mapping[str, Any]) -> bool:
        """Return whether this rule decides a call of `tool` with the JSON values `args`."""
        if not any(fnmatchcase(tool.name, glob) for glob in self.tools):
            return False
        match = _allows if self.verdict == "allow" else _restricts
        return all(name in args and match(globs, _text(args[name]), name == tool.command) for name, globs in self.args.items())


class Policy(msgspec.Struct, frozen=True):
    """Rules, and the default for tools with effects. `name` is how the user chose it."""

    default: Verdict = "ask"
    rules: tuple[Rule, ...] = ()
    name: str = "--approve ask"

    def judge(self, tool: Tool, args: Mapping[str, Any]) -> tuple[Verdict, str]:
        """Return the verdict on a call and why ("": nothing concerned it)."""
        properties = tool.spec.parameters.get("properties", {})
        defaults = {name: prop["default"] for name, prop in properties.items() if isinstance(prop, dict) and "default" in prop}
        for rule in self.rules:
            if rule.fits(tool, {**defaults, **args}):
                return rule.verdict, "; ".join(filter(None, [rule.reason, rule.where]))
        if tool.effect == "none":
            return "allow", ""
        return self.default, self.name


def load(mode: str, folder: str = ".") -> Policy:
    """Return the policy that `mode` names: ask, auto, deny, or the path of a YAML file, relative to `folder`.

    Raises UsageError when there is no such file or it is no policy.
    """
    if mode in MODES:
        return Policy(MODES[mode], name=f"--approve {mode}")
    path = Path(folder, mode).expanduser()
    if path.suffix.lower() not in (".yaml", ".yml"):
        raise UsageError(f"--approve {mode}: choose ask, auto or deny, or give the path of a policy file that ends in .yaml.")
    try:
        if path.stat().st_size > _LARGEST:
            raise UsageError(f"The policy file {mode} is larger than 1 MB.")
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise UsageError(f"The policy file {mode} cannot be read: {reason}.") from None
    return parse(text, mode)


def parse(text: str, name: str = "policy.yaml") -> Policy:
    """Return the policy written in `text`. Raises UsageError with file and line for what is wrong."""
    import yaml

    try:
        root = yaml.compose(text, Loader=yaml.BaseLoader)  # every scalar is text: `deny: no` names a tool
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or "it is not YAML"
        raise UsageError(f"{name}, line {mark.line + 1 if mark else 1}: {problem}.") from None
    return _policy(root, name) if root is not None else Policy(name=name)


def _policy(root: Any, name: str) -> Policy:
    fault = partial(_fault, name)
    top = _mapping(root, ("default", "rules"), fault)
    default: Verdict = "ask"
    if "default" in top:
        default = _verdict(top["default"], fault)
    rules = top.get("rules")
    if rules is not None and rules.id != "sequence" and rules.value:
        raise fault(rules, "`rules` must be a list of rules, each beginning with `- `")
    return Policy(default, tuple(_rule(node, name, fault) for node in (rules.value if rules is not None else ())), f"default of {name}")


def _rule(node: Any, name: str, fault: Callable[[Any, str], UsageError]) -> Rule:
    given = _mapping(node, (*VERDICTS, "args", "reason"), fault)
    verdicts = [v for v in VERDICTS if v in given]
    if len(verdicts) != 1:
        raise fault(node, "a rule needs exactly one of allow, ask and deny, followed by a tool's name or glob")
    args = _mapping(given["args"], (), fault) if "args" in given else {}
    return Rule(
        verdicts[0],
        _texts(given[verdicts[0]], fault),
        {key: _texts(value, fault) for key, value in args.items()},
        _texts(given["reason"], fault)[0] if "reason" in given else "",
        f"{name}, line {node.start_mark.line + 1}",
    )


def _mapping(node: Any, known: tuple[str, ...], fault: Callable[[Any, str], UsageError]) -> dict[str, Any]:
    """Return key -> node. An empty `known` allows every key."""
    if node.id != "mapping":
        raise fault(node, f"expected {'keys (' + ', '.join(known) + ')' if known else 'arguments with their globs'}")
    found: dict[str, Any] = {}
    for key, value in node.value:
        if key.id != "scalar" or (known and key.value not in known):
            raise fault(key, f"unknown key {key.value!r}; known here: {', '.join(known)}")
        if key.value in found:
            raise fault(key, f"the key {key.value!r} stands twice")
        found[key.value] = value
    return found


def _texts(node: Any, fault: Callable[[Any, str], UsageError]) -> tuple[str, ...]:
    nodes = node.value if node.id == "sequence" else [node]
    if not nodes or any(n.id != "scalar" or not n.value for n in nodes):
        raise fault(node, "expected a text or a list of texts")
    return tuple(n.value for n in nodes)


def _verdict(node: Any, fault: Callable[[Any, str], UsageError]) -> Verdict:
    for verdict in VERDICTS:
        if node.value == verdict:
            return verdict
    raise fault(node, f"{node.value!r} is no decision; write allow, ask or deny")


def _fault(name: str, node: Any, problem: str) -> UsageError:
    return UsageError(f"{name}, line {node.start_mark.line + 1}: {problem}.")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else encoded(value)


def _restricts(globs: tuple[str, ...], value: str, _command: bool) -> bool:
    spellings = {value, _normal(value), _folded(value), _folded(_normal(value))}
    return any(fnmatchcase(s, g) or fnmatchcase(s, _folded(g)) for s in spellings for g in globs)


def _allows(globs: tuple[str, ...], value: str, command: bool) -> bool:
    spellings = {value, _normal(value)} if ".." in value else {value}
    return any(all(fnmatchcase(s, g) for s in spellings) and not (command and _reaches(g, value)) for g in globs)


def _reaches(glob: str, command: str) -> bool:
    """Return whether `command` holds shell operators that the glob does not spell out."""
    return not Counter(_OPERATORS.findall(command)) <= Counter(_OPERATORS.findall(glob))


def _normal(value: str) -> str:
    return posixpath.normpath(value.replace("\\", "/")) if value and "\n" not in value else value


def _folded(value: str) -> str:
    return unicodedata.normalize("NFKC", value).casefold()
