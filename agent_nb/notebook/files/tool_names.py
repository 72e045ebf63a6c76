"""The names that a notebook's cells give to functions and use as tools, read from their text.

Why: a policy may speak of a tool that a later cell makes; a name that stands nowhere in the
notebook is a mistake in the policy.

Rules
- Nothing is executed. What a cell writes into a file or hands to another program (`%%writefile`,
  `%%bash`) is not read.
- Too many names do no harm but to hide a mistake: whatever is defined, assigned or imported counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from ...record.agent_cells import agent_cell

_FOREIGN = re.compile(r"\s*%%(?!time\b|timeit\b|capture\b|prun\b)")
_MADE = re.compile(
    r"^[ \t]*(?:async[ \t]+)?def[ \t]+(\w+)"  # a function
    r"|^[ \t]*(\w+)[ \t]*(?::[^=\n]+)?=[^=]"  # a variable
    r"|\bname[ \t]*=[ \t]*[\"']([\w .-]+)[\"']",  # @tool(name=…), as_tool(name=…)
    re.MULTILINE,
)
_IMPORT = re.compile(r"^[ \t]*(?:from[ \t]+[\w.]+[ \t]+)?import[ \t]+(.+)$", re.MULTILINE)
_TOOLS = re.compile(r"(?:-t|--tools)[ =]+(?:\"([^\"]+)\"|'([^']+)'|(\S+))")
_WORD = re.compile(r"[\w-]+")


def tool_names(sources: Iterable[str]) -> set[str]:
    """Return the names that the cells with these sources make or use."""
    return {name for source in sources for name in _names(source)}


def _names(source: str) -> Iterable[str]:
    ours = agent_cell(source)
    if ours is not None:
        return [
            name for found in _TOOLS.findall(ours[0]) for name in _WORD.findall(" ".join(found))
        ]
    if _FOREIGN.match(source):
        return []
    made = [name for found in _MADE.findall(source) for name in found if name]
    return [*made, *(name for line in _IMPORT.findall(source) for name in _WORD.findall(line))]
