"""The tools of an agent cell: those of `-t`, else of `%config AgentMagics.tools`, else `DEFAULT`.

Why a default: the first question is about the user's own data, and a model without tools can only
guess at values. The rows of a map get none, nor does a model that takes no tools.

Rule: the default tools are not inputs of a run: they may change, and a record without tools stays
valid. `-t none` is an input like any other choice.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...rows import Agent
from ...tools import Toolset
from ..option_table import NO_TOOLS
from ..options import Options

DEFAULT = ("python", "add_cell")


def choose_tools(options: Options, namespace: Mapping[str, Any]) -> Toolset:
    """Return the tools that the options of a cell choose; an unchosen, empty Toolset by default.

    `namespace`: where functions are looked up. Raises UsageError for an unknown name.
    """
    # a map counts as a choice, also of no tools: its rows get no default tools
    by_prompt = bool(options.own_tools or options.map)
    if options.tools == (NO_TOOLS,):
        return Toolset(chosen=options.tools, by_prompt=by_prompt)
    if not by_prompt and not options.tools:
        return Toolset.unchosen()
    return Toolset.resolve(options.tools, namespace, by_prompt=by_prompt)


def add_default_tools(agent: Agent) -> Agent:
    """Return `agent`, with the default tools if the user chose none. Raises UsageError."""
    if not agent.tools.is_unchosen or not agent.choice.takes_tools:
        return agent
    return agent.with_tools(load_default_tools())


def load_default_tools() -> Toolset:
    """Return the default tools."""
    return Toolset.unchosen(DEFAULT)
