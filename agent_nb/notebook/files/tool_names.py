"""The names in the text of a notebook's cells that may be tools.

Why: a policy may name a tool that a later cell defines, while a name that occurs in no cell is a
mistake in the policy. And a cell may define a function by the name of a harmless built-in tool,
whose calls a signer then has to see (`review`).

Rules
- Nothing is executed. Cells of IPython's magics for files and other programs (`%%writefile`,
  `%%bash`) are not read. A magic of another package may run its cell in the kernel: that is read.
- All names that a cell binds count, and each `name="…"`: a name too many hides a mistake in a
  policy, or shows a signer a call that does nothing; a name too few would hide a call.
- A cell that cannot be parsed as Python is searched for definitions, assignments and imports.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from ...record import agent_cell

# IPython's cell magics whose body does not run as Python in the kernel
_OTHER_LANGUAGE = re.compile(
    r"\s*%%(?:!|bash|cmd|file|html|HTML|javascript|js|latex|markdown|perl|pypy|python[23]?|ruby"
    r"|script|sh|svg|SVG|sx|system|writefile)(?!\S)"
)
_CELL_MAGIC = re.compile(r"\s*%%.*\n?")
_DEFINED = re.compile(
    r"^[ \t]*(?:async[ \t]+def|def|class)[ \t]+(\w+)"
    r"|^[ \t]*(\w+)[ \t]*(?::[^=\n]+)?=[^=]",  # a variable
    re.MULTILINE,
)
_NAMED = re.compile(r"\bname[ \t]*=[ \t]*[\"']([\w .-]+)[\"']")  # @tool(name=…), as_tool(name=…)
_IMPORT = re.compile(r"^[ \t]*(?:from[ \t]+[\w.]+[ \t]+)?import[ \t]+(.+)$", re.MULTILINE)
_TOOLS = re.compile(r"(?:-t|--tools)[ =]+(?:\"([^\"]+)\"|'([^']+)'|(\S+))")
_WORD = re.compile(r"[\w-]+")


def tool_names(sources: Iterable[str]) -> set[str]:
    """Return the names that cells with these sources bind, or name as tools of an agent cell."""
    return {name for source in sources for name in _find_names(source)}


def _find_names(source: str) -> Iterable[str]:
    # the first part of an agent cell is its line, which holds the options
    parts = agent_cell(source)
    if parts is not None:
        options = _TOOLS.findall(parts[0])
        return [name for values in options for name in _WORD.findall(" ".join(values))]
    if _OTHER_LANGUAGE.match(source):
        return []
    tree = _parse(source)
    if tree is not None:
        return [*_list_bound(tree), *_NAMED.findall(source)]
    names = [name for groups in _DEFINED.findall(source) for name in groups if name]
    imported = [name for line in _IMPORT.findall(source) for name in _WORD.findall(line)]
    return [*names, *imported, *_NAMED.findall(source)]


def _parse(source: str) -> ast.Module | None:
    """Return the syntax tree of a cell without the line of its magic; None if it has none."""
    code = _CELL_MAGIC.sub("", source, count=1) if _CELL_MAGIC.match(source) else source
    for transform in (str, _transform_lines):
        try:
            return ast.parse(transform(code))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
    return None


def _transform_lines(code: str) -> str:
    """Return code with its lines of IPython as Python. Raises SyntaxError."""
    from IPython.core.inputtransformer2 import TransformerManager  # most cells do not need it

    return str(TransformerManager().transform_cell(code))


def _list_bound(tree: ast.AST) -> Iterator[str]:
    """Yield the names that a tree binds, at any depth: a function may bind a global name."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.name
            case ast.Name(id=name, ctx=ast.Store()):
                yield name
            case ast.alias():
                yield node.asname or node.name.partition(".")[0]
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)):
                yield name
            case ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
                yield name
