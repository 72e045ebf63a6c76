"""The names in the text of a notebook's cells that may be tools.

Why: a policy may name a tool that a later cell defines, while a name that occurs in no cell is a
mistake in the policy. And a cell may define a function by the name of a harmless built-in tool,
whose calls a signer then has to see (`review`).

Rule: a name too many hides a mistake, or shows a signer a call that does nothing; a name too few
would hide a call. So all names that a cell binds count, and in text that is not parsed as Python
(`%time`, syntax errors, cells that IPython would take too long to read) all words. Only cells of
IPython's magics for files and other programs (`%%writefile`, `%%bash`) are not read.
"""

from __future__ import annotations

import ast
import re
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import cast

from ...record import agent_cell
from ...tools import parse_quietly

# IPython's cell magics whose body does not run as Python in the kernel
_OTHER_LANGUAGE = re.compile(
    r"\s*%%(?:!|bash|cmd|file|html|HTML|javascript|js|latex|markdown|perl|pypy|python[23]?|ruby"
    r"|script|sh|svg|SVG|sx|system|writefile)(?!\S)"
)
_CELL_MAGIC = re.compile(r"\s*%%.*\n?")
_NAMED = re.compile(r"\bname[ \t]*=[ \t]*[\"']([\w .-]+)[\"']")  # @tool(name=…), as_tool(name=…)
_TOOLS = re.compile(r"(?:-t|--tools)[ =]+(?:\"([^\"]+)\"|'([^']+)'|(\S+))")
_TOOL = re.compile(r"[\w-]+")
_WORD = re.compile(r"\w+")
# a line, perhaps after a prompt, that IPython may transform: it reads the whole cell again for each
_MAGIC_LINE = re.compile(r"[!%?]|(?:^|>>>|\.\.\.:?|\]:)\s*[/,;]")
# a line magic that sets texts, such as names of tools, and binds no name
_SETTING = re.compile(r"config [\w.]+ *=(?:[ \[\],]|\"[^\"\\{$]*\"|'[^'\\{$]*')*")
MOST_READ = 500_000  # characters that IPython reads for one notebook


def find_tool_names(sources: Iterable[str]) -> set[str]:
    """Return the names that cells with these sources bind, or name as tools of an agent cell."""
    parser = _Parser()
    names = (name for source in sources for name in _find_names(source, parser))
    return {unicodedata.normalize("NFKC", name) for name in names}  # as Python reads a name


def _find_names(source: str, parser: _Parser) -> Iterable[str]:
    """Return the names of one cell: f of `def f(): ...`, f and g of `%%agent -t f,g`."""
    if (parts := agent_cell(source)) is not None:
        line, _ = parts
        options = _TOOLS.findall(line)
        return [name for values in options for name in _TOOL.findall(" ".join(values))]
    if _OTHER_LANGUAGE.match(source):
        return []
    line = magic[0] if (magic := _CELL_MAGIC.match(source)) else ""
    tree = parser.parse(source[len(line) :])
    names = _WORD.findall(source) if tree is None else [*_WORD.findall(line), *_list_bound(tree)]
    return [*names, *_NAMED.findall(source)]


class _Parser:
    """Parses the cells of one notebook, with IPython's help as long as that may go on."""

    def __init__(self) -> None:
        self._left = MOST_READ

    def parse(self, code: str) -> ast.Module | None:
        """Return the syntax tree of the code of a cell; None if it has none, or is not read."""
        # RuntimeError: IPython transforms 500 lines of its own at most
        unreadable = suppress(SyntaxError, ValueError, RuntimeError, MemoryError)
        with unreadable:
            return cast("ast.Module", parse_quietly(code))
        magic_lines = sum(_MAGIC_LINE.search(line) is not None for line in code.splitlines())
        if len(code) * (magic_lines + 1) > self._left:
            return None
        self._left -= len(code) * (magic_lines + 1)
        with unreadable:
            from IPython.core.inputtransformer2 import TransformerManager  # only few cells need it

            return cast("ast.Module", parse_quietly(str(TransformerManager().transform_cell(code))))
        return None


def _list_bound(tree: ast.AST) -> Iterator[str]:
    """Yield the names that a tree binds, at any depth: a function may bind a global name."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.name
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield name
            case ast.alias():
                yield node.asname or node.name.partition(".")[0]
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)):
                yield name
            case ast.Call(ast.Attribute(attr="run_line_magic" | "run_cell_magic"), args):
                text = " ".join(str(arg.value) for arg in args if isinstance(arg, ast.Constant))
                yield from _WORD.findall("" if _SETTING.fullmatch(text) else text)
            case ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
                yield name
