"""The policy of a run: rules that decide which calls may run (for their file: `policy_file`).

    default: ask                     # for tools with effects that no rule names: allow, ask or deny
    rules:                           # the first rule that matches decides
      - allow: [read, list]          # one or more tools by name; globs (* ? [abc])
      - deny: write
        args: {file: "*.ipynb"}      # every named argument must match one of its globs
        reason: notebooks are written by people
      - allow: shell
        args: {command: ["git status", "git diff*"]}
      - ask: "*"

Rules
- In doubt a restricting rule matches and an allowing rule does not. Restricting rules also match
  other spellings (another case; `-` for `_` in a tool's name, unless it is a glob; `./x`) and what
  a command starts (`sudo -u bob rm x` is `rm x` too).
- An allowing glob must match a value and, if the value has `..`, its normalised path too. The glob
  spans shell operators only if it spells them out.
- Each part of a shell command (`command_line`) is decided by the first rule that matches it or the
  whole; the strictest decision counts.
"""

from __future__ import annotations

import posixpath
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any, ClassVar, Literal

import msgspec

from ..host import Offer
from ..wire import dumps
from .base import Tool
from .command_line import OPERATORS, CommandLine, squeeze_spaces
from .decorator import clean_name

Verdict = Literal["allow", "ask", "deny"]
VERDICTS: tuple[Verdict, ...] = ("allow", "ask", "deny")
# the same verdicts, the strictest first
STRICT: tuple[Verdict, ...] = ("deny", "ask", "allow")
_GLOB = frozenset("*?[")


class Rule(msgspec.Struct, frozen=True):
    """One rule: a verdict for calls whose tool matches `tools` and whose arguments match `args`.

    `args`: name of an argument -> globs for its value. `where`: its place in the policy's file.
    """

    verdict: Verdict
    tools: tuple[str, ...]
    args: dict[str, tuple[str, ...]] = {}
    reason: str = ""
    where: str = ""

    def concerns(self, tool: Tool, args: Mapping[str, Any], command: str = "") -> bool:
        """Return whether the rule matches a call; for its `command` see `matches_line`."""
        if not any(self.matches_name(tool.name, name) for name in self.tools):
            return False
        match = _matches_exactly if self.verdict == "allow" else _matches_spelling
        return all(
            key in args and match(globs, [v if isinstance(v := args[key], str) else dumps(v)])
            for key, globs in self.args.items()
            if key != command
        )

    def matches_name(self, tool: str, name: str) -> bool:
        """Return whether `name`, one of the rule's tools, matches the tool named `tool`."""
        if is_glob(name):
            return fnmatchcase(tool, name) or (
                self.verdict != "allow" and fnmatchcase(fold_name(tool), fold_name(name))
            )
        if self.verdict == "allow":
            return tool == clean_name(name)
        return fold_name(tool) == fold_name(clean_name(name))

    def matches_line(self, command: str, line: CommandLine) -> bool:
        """Return whether the globs for the argument `command` match the whole command line."""
        globs = self.args.get(command)
        if globs is None:
            return True
        if self.verdict != "allow":
            return _matches_spelling(globs, line.whole_spellings)
        return _matches_command(globs, line.text)

    def select_parts(self, command: str, line: CommandLine, parts: Iterable[str]) -> list[str]:
        """Return those `parts` of a command line that the globs for `command` match."""
        globs = self.args.get(command)
        if globs is None:
            return list(parts)
        if self.verdict == "allow":
            return [part for part in parts if _matches_command(globs, part)]
        return [part for part in parts if _matches_spelling(globs, line.part_spellings(part))]


class Policy(msgspec.Struct, frozen=True):
    """Rules, and the default for tools with effects.

    `name`: how the user chose the policy. `offer`: what its file would allow and the user has not
    allowed yet. `remarks`: notes for the user.
    """

    #: the words of `--approve` that stand for a policy without rules, and its default
    MODES: ClassVar[dict[str, Verdict]] = {"ask": "ask", "auto": "allow", "deny": "deny"}

    default: Verdict = "ask"
    rules: tuple[Rule, ...] = ()
    name: str = "--approve ask"
    offer: Offer | None = None
    remarks: tuple[str, ...] = ()

    def judge(self, tool: Tool, args: Mapping[str, Any]) -> tuple[Verdict, str]:
        """Return the verdict on a call and its reason.

        The reason is the rule's own and its place, or the policy's name for the default; "" if a
        tool without effects runs because no rule matches.
        """
        properties = tool.spec.parameters.get("properties", {})
        defaults = {
            name: prop["default"]
            for name, prop in properties.items()
            if isinstance(prop, dict) and "default" in prop
        }
        verdict, reason = self._find_strictest(tool, {**defaults, **args})
        if verdict == "allow" and self.offer is not None and not tool.harmless:
            return "ask", f"{reason} would allow it, but {self.offer.refusal}"
        return verdict, reason

    def _find_strictest(self, tool: Tool, args: Mapping[str, Any]) -> tuple[Verdict, str]:
        """Return the strictest decision on the parts of a call; each takes its first match."""
        command, line = "", CommandLine("")
        text = args.get(tool.command) if tool.command else None
        if isinstance(text, str):
            command, line = tool.command, CommandLine(text)
        undecided = line.parts
        decisions: list[tuple[Verdict, str]] = []
        for rule in self.rules:
            if not undecided or not rule.concerns(tool, args, command):
                continue
            is_match = rule.matches_line(command, line)
            # an allowing rule, or one without a glob for the command, decides all parts; a
            # restricting glob only the parts that it matches: later rules may be stricter
            decides_all = is_match and (rule.verdict == "allow" or command not in rule.args)
            decided = set(undecided if decides_all else rule.select_parts(command, line, undecided))
            if is_match or decided:
                decisions.append((rule.verdict, "; ".join(filter(None, [rule.reason, rule.where]))))
            undecided = [part for part in undecided if part not in decided]
        if undecided:
            decisions.append(("allow", "") if tool.harmless else (self.default, self.name))
        return min(decisions, key=lambda decision: STRICT.index(decision[0]))


def is_glob(name: str) -> bool:
    """Return whether a text of a rule is a glob."""
    return not _GLOB.isdisjoint(name)


def fold_name(name: str) -> str:
    """Return a name in the form that ignores case and treats `-` as `_`."""
    return name.casefold().replace("-", "_")


def _matches_spelling(globs: tuple[str, ...], values: Iterable[str]) -> bool:
    """Return whether a glob of a restricting rule matches any spelling of one of the values."""
    forms = set(values)
    forms |= set(map(_normalize_path, forms))
    forms |= set(map(_fold_text, forms))
    patterns = {*globs, *map(squeeze_spaces, globs)}
    patterns |= set(map(_fold_text, patterns))
    return any(fnmatchcase(form, pattern) for form in forms for pattern in patterns)


def _matches_exactly(globs: tuple[str, ...], values: Iterable[str]) -> bool:
    """Return whether one glob of an allowing rule matches the values, also as normalised paths.

    Both forms must match: `data/../.ssh/key` fits the glob `data/*`, but leads out of `data`.
    """
    forms = set(values)
    forms |= {_normalize_path(value) for value in forms if ".." in value}
    return any(all(fnmatchcase(s, g) for s in forms) for g in globs)


def _matches_command(globs: tuple[str, ...], command: str) -> bool:
    """Return whether a glob of an allowing rule matches a command, word for word."""
    return any(
        _matches_exactly((squeeze_spaces(g),), [squeeze_spaces(command)])
        and not _has_more_operators(g, command)
        for g in globs
    )


def _has_more_operators(glob: str, command: str) -> bool:
    """Return whether `command` has shell operators that the glob does not spell out."""
    # counted, because `*` matches operators too: that of `cd a; *` would match `x; rm y`
    return not Counter(OPERATORS.findall(command)) <= Counter(OPERATORS.findall(glob))


def _normalize_path(value: str) -> str:
    return posixpath.normpath(value.replace("\\", "/")) if value and "\n" not in value else value


def _fold_text(value: str) -> str:
    return unicodedata.normalize("NFKC", value).casefold()
