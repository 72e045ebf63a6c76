"""The names in the text of a notebook's cells that may be tools.

Why: a policy may name a tool that a later cell defines; a name that occurs in no cell is a mistake
in the policy. A review (`review`) asks whether a cell redefines a built-in tool.

Rules
- Nothing is executed. Cells for files or other programs (`%%writefile`, `%%bash`) are not read.
- Names of functions, imports and `name="…"` count, and variables that begin a line. Those of
  classes, of `a, b = …` and of further lines of an import are not seen. A name that is not a tool
  does no harm: it only hides a mistake in a policy.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from ...record import agent_cell

# a cell magic whose body is not run as Python in the kernel
_OTHER_LANGUAGE = re.compile(r"\s*%%(?!time\b|timeit\b|capture\b|prun\b)")
_DEFINED = re.compile(
    r"^[ \t]*(?:async[ \t]+)?def[ \t]+(\w+)"  # a function
    r"|^[ \t]*(\w+)[ \t]*(?::[^=\n]+)?=[^=]"  # a variable
    r"|\bname[ \t]*=[ \t]*[\"']([\w .-]+)[\"']",  # @tool(name=…), as_tool(name=…)
    re.MULTILINE,
)
_IMPORT = re.compile(r"^[ \t]*(?:from[ \t]+[\w.]+[ \t]+)?import[ \t]+(.+)$", re.MULTILINE)
_TOOLS = re.compile(r"(?:-t|--tools)[ =]+(?:\"([^\"]+)\"|'([^']+)'|(\S+))")
_WORD = re.compile(r"[\w-]+")


def tool_names(sources: Iterable[str]) -> set[str]:
    """Return the names that cells with these sources define, or name as tools of an agent cell."""
    return {name for source in sources for name in _find_names(source)}


def _find_names(source: str) -> Iterable[str]:
    """Return the names that one cell defines or imports, or the tools of an agent cell."""
    # the first part of an agent cell is its line, which holds the options
    parts = agent_cell(source)
    if parts is not None:
        options = _TOOLS.findall(parts[0])
        return [name for values in options for name in _WORD.findall(" ".join(values))]
    if _OTHER_LANGUAGE.match(source):
        return []
    names = [name for groups in _DEFINED.findall(source) for name in groups if name]
    return [*names, *(name for line in _IMPORT.findall(source) for name in _WORD.findall(line))]
