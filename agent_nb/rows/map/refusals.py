"""Refuses tools that a map cannot call, before its first request.

Nobody waits at each row to answer questions about its calls. Two rows that change the kernel at the
same time leave it in a state that a replay cannot repeat.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ...errors import UsageError
from ...tools import ADD_CELL, KERNEL_PERMISSIONS, Policy, Tool


def check_map_tools(tools: Iterable[Tool], policy: Policy, concurrency: int) -> None:
    """Raise UsageError for tools that a map of `concurrency` rows at once cannot call.

    These are tools about whose every call the `policy` asks, and, with a concurrency above 1,
    tools that work in the kernel. Tools of sub-agents count too.
    """
    all_tools = list(_with_subagent_tools(tools))
    if asking := [tool.name for tool in all_tools if _always_asks(tool, policy)]:
        raise UsageError(
            f"Nobody can be asked about the calls of a map, and {policy.name} asks about {_join_names(asking)}."
            " Allow them with approve='auto' (--approve auto), or decide by a policy file"
            " (--approve POLICY.yaml). Nothing was sent."
        )
    kernel_tools = [
        t.name for t in all_tools if t.uses_kernel or t.thread == "main" or t.name == ADD_CELL
    ]
    if kernel_tools and concurrency > 1:
        verb = "lives" if len(kernel_tools) == 1 else "live"
        raise UsageError(
            f"{_join_names(kernel_tools)} {verb} in the kernel, where only one row at a time may call tools:"
            " give concurrency=1, or leave the tools out. Nothing was sent."
        )


def _with_subagent_tools(tools: Iterable[Tool]) -> Iterator[Tool]:
    for tool in tools:
        yield tool
        if tool.agent is not None:
            yield from _with_subagent_tools(tool.agent.tools)


def _always_asks(tool: Tool, policy: Policy) -> bool:
    """Return whether a policy asks about every call of a tool, whatever its arguments.

    It does not ask about a tool that the user has allowed in this kernel (`KERNEL_PERMISSIONS`).
    """
    if policy.judge(tool, {})[0] != "ask" or KERNEL_PERMISSIONS.allows(tool):
        return False
    # a rule that names the tool may allow calls by their arguments, which are not known yet
    allowing = (rule for rule in policy.rules if rule.verdict == "allow")
    return not any(rule.matches_name(tool.name, name) for rule in allowing for name in rule.tools)


def _join_names(names: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(names))
