"""Check that the rules of a policy name existing tools and arguments.

Why: a rule that denies a misspelled name silently denies nothing. So an unknown name in an `ask` or
`deny` rule is an error with a suggestion; in an `allow` rule, which then allows nothing, only a
remark. Nothing is checked while the run has references to MCP servers without a list of tools.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any

import msgspec

from ..errors import AgentError, UsageError, did_you_mean
from .base import Tool
from .decorator import as_tool, clean_name
from .policy import Policy, Rule, fold_name, is_glob
from .policy_file import load_policy
from .toolset import Toolset, find_tool_values


def load_checked_policy(
    mode: str,
    folder: str,
    tools: Toolset,
    namespace: Mapping[str, Any] | None = None,
    mentioned: Callable[[], Collection[str]] = tuple,
) -> Policy:
    """Return the policy of a mode or file (`load_policy`), its rules checked (`check_rules`).

    Raises UsageError if the file is faulty, or a rule restricts nothing.
    """
    return check_rules(load_policy(mode, folder), tools, namespace, mentioned)


def check_rules(
    policy: Policy,
    tools: Toolset,
    namespace: Mapping[str, Any] | None = None,
    mentioned: Callable[[], Collection[str]] = tuple,
) -> Policy:
    """Check a policy's rules; return it with remarks on rules that allow nothing.

    `tools`: those of the run. `namespace`: functions that may be tools. `mentioned` returns names
    of tools that the notebook makes or uses. Raises UsageError for a rule that restricts nothing.
    """
    if tools.late:
        return policy
    known = _Known(tools, namespace or {}, mentioned)
    remarks: list[str] = []
    for rule in policy.rules:
        for problem in _find_problems(rule, known):
            if rule.verdict != "allow":
                raise UsageError(f"{rule.where}: {problem}")
            remarks.append(f"{rule.where}: {problem}")
    return msgspec.structs.replace(policy, remarks=(*policy.remarks, *remarks))


class _Known:
    """The tools that a rule may name; each source is read only when it is needed."""

    def __init__(
        self, tools: Toolset, namespace: Mapping[str, Any], mentioned: Callable[[], Collection[str]]
    ) -> None:
        self._run = {tool.name: tool for tool in tools}
        self._namespace = namespace
        self._mentioned = mentioned

    @cached_property
    def installed(self) -> dict[str, Tool]:
        """The built-in and installed tools."""
        return Toolset.installed()

    @cached_property
    def notebook_tools(self) -> dict[str, Any]:
        """The values of the namespace that can be tools."""
        return find_tool_values(self._namespace)

    @cached_property
    def mentioned(self) -> frozenset[str]:
        """The names of tools that the code of the notebook makes or uses."""
        return frozenset(map(clean_name, self._mentioned()))

    def list_sources(self) -> Iterator[Collection[str]]:
        """Yield the names of each source, the costly ones last."""
        yield self._run
        yield self.notebook_tools
        yield self.installed
        yield self.mentioned

    def find_name(self, rule: Rule, name: str) -> str | None:
        """Return the name of the tool that a name in a rule means, or None."""
        tools = (tool for names in self.list_sources() for tool in names)
        return next((tool for tool in tools if rule.matches_name(tool, name)), None)

    def load_tool(self, name: str) -> Tool | None:
        """Return the tool of this name, None if its schema is unknown."""
        tool = self._run.get(name) or self.installed.get(name)
        if tool is None and name in self.notebook_tools:
            try:
                return as_tool(self.notebook_tools[name], name)
            except AgentError:  # it cannot be a tool
                return None
        return tool

    def find_matching(self, glob: str) -> list[str]:
        """Return the names that a glob matches."""
        return [
            tool
            for names in self.list_sources()
            for tool in names
            if fnmatchcase(fold_name(tool), fold_name(glob))
        ]


def _find_problems(rule: Rule, known: _Known) -> Iterator[str]:
    """Yield what is wrong with the names of tools and arguments in a rule."""
    for name in rule.tools:
        if is_glob(name):
            names = known.find_matching(name) if rule.args else []
            yield from _find_argument_problems(rule, list(map(known.load_tool, names)), name)
        elif (tool := known.find_name(rule, name)) is None:
            offered = {n for group in known.list_sources() for n in group}
            hint = did_you_mean(fold_name(clean_name(name)), offered, written=repr)
            verb = "allows" if rule.verdict == "allow" else "restricts"
            yield f"there is no tool {name!r}, so this rule {verb} nothing.{hint} (A glob such as '{name}*' may stand for tools to come.)"
        else:
            yield from _find_argument_problems(rule, [known.load_tool(tool)], name)


def _find_argument_problems(rule: Rule, tools: list[Tool | None], name: str) -> Iterator[str]:
    """Yield a problem for each argument that none of the tools matching `name` has."""
    known = [_list_argument_names(tool) for tool in tools]
    # no problem if one tool has all arguments of the rule, or may have any
    if not known or None in known or any(rule.args.keys() <= set(each or ()) for each in known):
        return
    # if each argument exists somewhere, the fault is that no tool has all of them
    names = sorted({name for each in known for name in each or ()})
    for argument in [a for a in rule.args if a not in names] or [" and ".join(rule.args)]:
        hint = did_you_mean(argument, names, written=repr)
        yield f"{name} has no argument {argument!r}, so this rule never fits a call of it.{hint} Arguments: {', '.join(names) or 'none'}."


def _list_argument_names(tool: Tool | None) -> Collection[str] | None:
    """Return the names of a tool's arguments, None if it may have others."""
    schema = tool.spec.parameters if tool is not None else {}
    properties = schema.get("properties")
    if not isinstance(properties, dict) or schema.get("additionalProperties", False):
        return None
    return tuple(properties)
