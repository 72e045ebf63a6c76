"""Rules that decide which calls may run: a YAML file, or one of the words `ask`, `auto`, `deny`.

    default: ask                     # for tools with effects that no rule names: allow, ask or deny
    rules:                           # the first rule that fits decides
      - allow: [read, list]          # a tool, or several, by their names; globs (* ? [abc])
      - deny: write
        args: {file: "*.ipynb"}      # all named arguments must fit one of their globs
        reason: notebooks are written by people
      - allow: shell
        args: {command: ["git status", "git diff*"]}
      - ask: "*"

Rules
- Tools without effects run unless a rule says otherwise; `default` is about the others.
- When in doubt a rule that restricts fits and one that allows does not: restricting globs also
  match other spellings of a name or value (`./x`, `a/../x`, another case, `-` for `_`), allowing
  ones must match the value as it is and as a normalised path.
- A shell command is judged by its parts (`command_line`): each is decided by the first rule that
  fits it or the whole, and the strictest decision counts. An allowing glob reaches across operators
  only if it spells them out.
- A file in the notebook's folder, or one named by a relative path, may restrict. What it allows
  counts when the user has allowed the file (`folder.trust`); until then it is as if it said nothing
  of these calls.
- An argument that was left out counts with the default of the tool's schema; a value that is no
  text counts as its JSON.
- Reading is strict: an unknown key, a doubled key or a wrong word is a UsageError that names file
  and line.
"""

from __future__ import annotations

import posixpath
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any, Literal

import msgspec

from ..errors import UsageError
from ..host.trust import Offer, allowed, found_in
from ..wire.json_text import dumps
from .base import Tool
from .command_line import OPERATORS, commands, joined, spellings, squeezed
from .decorator import clean_name

Verdict = Literal["allow", "ask", "deny"]
VERDICTS: tuple[Verdict, ...] = ("allow", "ask", "deny")
STRICT: tuple[Verdict, ...] = ("deny", "ask", "allow")
MODES: dict[str, Verdict] = {"ask": "ask", "auto": "allow", "deny": "deny"}
_LARGEST = 1 << 20  # bytes of a policy file
_GLOB = frozenset("*?[")


class Rule(msgspec.Struct, frozen=True):
    """One rule: its verdict for calls whose tool fits `tools` and whose arguments fit `args`;
    `where` is file and line.
    """

    verdict: Verdict
    tools: tuple[str, ...]
    args: dict[str, tuple[str, ...]] = {}
    reason: str = ""
    where: str = ""

    def concerns(self, tool: Tool, args: Mapping[str, Any], command: str = "") -> bool:
        """Return whether `tools` and the `args` other than `command` fit a call with the JSON
        values `args`.
        """
        if not any(self.names(tool.name, name) for name in self.tools):
            return False
        match = _allows if self.verdict == "allow" else _restricts
        return all(
            key in args and match(globs, [_text(args[key])])
            for key, globs in self.args.items()
            if key != command
        )

    def names(self, tool: str, name: str) -> bool:
        """Return whether the text `name` of this rule means the tool called `tool`."""
        if is_glob(name):
            return fnmatchcase(tool, name) or (
                self.verdict != "allow" and fnmatchcase(tool.casefold(), name.casefold())
            )
        return (
            tool == clean_name(name)
            if self.verdict == "allow"
            else alike(tool) == alike(clean_name(name))
        )

    def matches(self, command: str, line: str) -> bool:
        """Return whether the globs for the argument `command` fit all of the command line."""
        globs = self.args.get(command)
        if globs is None:
            return True
        if self.verdict != "allow":
            return _restricts(globs, [line, squeezed(line), *joined(line)])
        return any(
            _allows((squeezed(g),), [squeezed(line)]) and not _reaches(g, line) for g in globs
        )

    def fitting(self, command: str, parts: Iterable[str]) -> list[str]:
        """Return the parts of a command line that the globs for the argument `command` fit."""
        if self.verdict == "allow":
            return [part for part in parts if self.matches(command, part)]
        return [part for part in parts if _restricts(self.args[command], spellings(part))]


class Policy(msgspec.Struct, frozen=True):
    """Rules, and the default for tools with effects. `name` is how the user chose it.

    `offer`: what it would allow, where the user has not allowed that it does. `remarks`: what the
    user should know about it.
    """

    default: Verdict = "ask"
    rules: tuple[Rule, ...] = ()
    name: str = "--approve ask"
    offer: Offer | None = None
    remarks: tuple[str, ...] = ()

    def judge(self, tool: Tool, args: Mapping[str, Any]) -> tuple[Verdict, str]:
        """Return the verdict on a call and why ("": nothing concerned it)."""
        properties = tool.spec.parameters.get("properties", {})
        defaults = {
            name: prop["default"]
            for name, prop in properties.items()
            if isinstance(prop, dict) and "default" in prop
        }
        verdict, reason = self._strictest(tool, {**defaults, **args})
        if verdict == "allow" and self.offer is not None and tool.effect != "none":
            return "ask", f"{reason} would allow it, but {self.offer.refusal}"
        return verdict, reason

    def _strictest(self, tool: Tool, args: Mapping[str, Any]) -> tuple[Verdict, str]:
        """Let each part of the call be decided by the first rule that fits it, and return the
        strictest decision.
        """
        line = args.get(tool.command) if tool.command else None
        command, line = (tool.command, line) if isinstance(line, str) else ("", "")
        undecided = commands(line)
        found: list[tuple[Verdict, str]] = []
        for rule in self.rules:
            if not undecided or not rule.concerns(tool, args, command):
                continue
            whole = rule.matches(command, line)
            # else its parts may be judged more strictly
            free = whole and (rule.verdict == "allow" or command not in rule.args)
            decided = set(undecided if free else rule.fitting(command, undecided))
            if whole or decided:
                found.append((rule.verdict, "; ".join(filter(None, [rule.reason, rule.where]))))
            undecided = [part for part in undecided if part not in decided]
        if undecided:
            found.append(("allow", "") if tool.effect == "none" else (self.default, self.name))
        return min(found, key=lambda decision: STRICT.index(decision[0]))


def load(mode: str, folder: str = ".") -> Policy:
    """Return the policy that `mode` names: ask, auto, deny, or the path of a YAML file, relative to
    `folder`.

    Raises UsageError when there is no such file or it is no policy.
    """
    if mode in MODES:
        return Policy(MODES[mode], name=f"--approve {mode}")
    path = Path(folder, Path(mode).expanduser())
    if path.suffix.lower() not in (".yaml", ".yml"):
        raise UsageError(
            f"--approve {mode}: choose ask, auto or deny, or give the path of a policy file that ends in .yaml."
        )
    content = _read(path, mode)
    policy = _parsed(content, mode)
    if (
        not found_in(path, folder, given=mode)
        or (offer := offered(policy, path, content)) is None
        or allowed(offer)
    ):
        return policy
    return msgspec.structs.replace(policy, offer=offer, remarks=(offer.refusal,))


def read(path: Path) -> Offer | None:
    """Return what the policy file at `path` would allow, None: nothing. Raises UsageError when it
    is no policy.
    """
    content = _read(path, path.name)
    return offered(_parsed(content, path.name), path, content)


def offered(policy: Policy, path: Path, content: bytes) -> Offer | None:
    """Return what a policy would allow, as an offer of its file; None where it only restricts."""
    found = [_said(rule) for rule in policy.rules if rule.verdict == "allow"]
    found += ["everything that no rule names"] if policy.default == "allow" else []
    return Offer.of("policy", path, f"allows {', '.join(found)}", content) if found else None


def _said(rule: Rule) -> str:
    args = "; ".join(f"{name}: {', '.join(globs)}" for name, globs in rule.args.items())
    return f"{', '.join(rule.tools)}{f' ({args})' if args else ''}"


def _read(path: Path, name: str) -> bytes:
    try:
        if path.stat().st_size > _LARGEST:
            raise UsageError(f"The policy file {name} is larger than 1 MB.")
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"The policy file {name} cannot be read: {error.strerror}.") from None


def _parsed(content: bytes, name: str) -> Policy:
    try:
        return parse(content.decode("utf-8"), name)
    except UnicodeDecodeError:
        raise UsageError(f"The policy file {name} cannot be read: it is not UTF-8 text.") from None


def parse(text: str, name: str = "policy.yaml") -> Policy:
    """Return the policy written in `text`. Raises UsageError with file and line for
    what is wrong.
    """
    import yaml

    try:
        # every scalar is text: `deny: no` names a tool
        root = yaml.compose(text, Loader=yaml.BaseLoader)
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
    return Policy(
        default,
        tuple(_rule(node, name, fault) for node in (rules.value if rules is not None else ())),
        f"default of {name}",
    )


def _rule(node: Any, name: str, fault: Callable[[Any, str], UsageError]) -> Rule:
    given = _mapping(node, (*VERDICTS, "args", "reason"), fault)
    verdicts = [v for v in VERDICTS if v in given]
    if len(verdicts) != 1:
        raise fault(
            node,
            "a rule needs exactly one of allow, ask and deny, followed by a tool's name or glob",
        )
    args = _mapping(given["args"], (), fault) if "args" in given else {}
    return Rule(
        verdicts[0],
        _texts(given[verdicts[0]], fault),
        {key: _texts(value, fault) for key, value in args.items()},
        _texts(given["reason"], fault)[0] if "reason" in given else "",
        f"{name}, line {node.start_mark.line + 1}",
    )


def _mapping(
    node: Any, known: tuple[str, ...], fault: Callable[[Any, str], UsageError]
) -> dict[str, Any]:
    """Return key -> node. An empty `known` allows every key."""
    if node.id != "mapping":
        raise fault(
            node,
            f"expected {'keys (' + ', '.join(known) + ')' if known else 'arguments with their globs'}",
        )
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
    raise fault(node, f"{node.value!r} is not a decision; write allow, ask or deny")


def _fault(name: str, node: Any, problem: str) -> UsageError:
    return UsageError(f"{name}, line {node.start_mark.line + 1}: {problem}.")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else dumps(value)


def is_glob(name: str) -> bool:
    """Return whether a text of a rule stands for several names."""
    return not _GLOB.isdisjoint(name)


def alike(name: str) -> str:
    """Return what two spellings of one name have in common: case, `-` and `_` do not count."""
    return name.casefold().replace("-", "_")


def _restricts(globs: tuple[str, ...], values: Iterable[str]) -> bool:
    found = {
        s
        for value in values
        for s in (value, _normal(value), _folded(value), _folded(_normal(value)))
    }
    wanted = {form for g in globs for form in (g, _folded(g), squeezed(g), _folded(squeezed(g)))}
    return any(fnmatchcase(s, g) for s in found for g in wanted)


def _allows(globs: tuple[str, ...], values: Iterable[str]) -> bool:
    found = {
        s for value in values for s in ((value, _normal(value)) if ".." in value else (value,))
    }
    return any(all(fnmatchcase(s, g) for s in found) for g in globs)


def _reaches(glob: str, command: str) -> bool:
    """Return whether `command` holds shell operators that the glob does not spell out."""
    return not Counter(OPERATORS.findall(command)) <= Counter(OPERATORS.findall(glob))


def _normal(value: str) -> str:
    return posixpath.normpath(value.replace("\\", "/")) if value and "\n" not in value else value


def _folded(value: str) -> str:
    return unicodedata.normalize("NFKC", value).casefold()
