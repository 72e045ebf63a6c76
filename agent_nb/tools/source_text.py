"""Read the source text of a function in the form that its digest covers.

Why: comments and blank lines do not change what a function does; a new digest for them would make
its records stale. The option `compare` of a decorator (`@tool`) is left out too: it decides how
results are compared, not which results the tool returns.

Rule: blank lines and spaces at the end of a line count nowhere, not even inside strings: earlier
records have digests without them.
"""

from __future__ import annotations

import ast
import functools
import inspect
import io
import linecache
import textwrap
import tokenize
import types
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

_LEFT_OUT = "compare"  # the option of `@tool` that digests leave out


def read_source(function: types.FunctionType) -> str:
    """Return the source of a function in the form that digests cover, "" if it has no source."""
    try:
        return normalize_source(_read_text(function))
    except (OSError, TypeError, SyntaxError, tokenize.TokenError):
        return ""


def read_module_source(module: types.ModuleType) -> str:
    """Return the source of a module, "" if it has none."""
    file = getattr(module, "__file__", None)
    try:
        return Path(file).read_text(encoding="utf-8") if isinstance(file, str) else ""
    except (OSError, UnicodeDecodeError):
        return ""


def _read_text(function: types.FunctionType) -> str:
    """Return the source of a function's own code.

    `inspect.getsource` would search all loaded modules for the one of this file, which is slow.
    """
    code = function.__code__
    linecache.checkcache(code.co_filename)
    lines = linecache.getlines(code.co_filename, function.__globals__)
    return _cut_block("".join(lines[code.co_firstlineno - 1 :]))


@functools.lru_cache(maxsize=64)
def _cut_block(text: str) -> str:
    """Return the first block of a text: a function, without the lines after it."""
    return "".join(inspect.getblock(list(io.StringIO(text))))


@functools.lru_cache(maxsize=256)
def normalize_source(text: str) -> str:
    """Return a source text without comments and blank lines, in the form that digests cover."""
    text = textwrap.dedent(text)
    tree = parse_source(text)
    lines = _remove_comments(text)
    # from the last replacement up, so that the line numbers of the earlier ones stay right
    for expression, replacement in sorted(
        _find_replacements(tree), key=lambda pair: pair[0].lineno, reverse=True
    ):
        first, last = expression.lineno - 1, (expression.end_lineno or expression.lineno) - 1
        # columns of `ast` count bytes of UTF-8
        head = lines[first].encode()[: expression.col_offset].decode(errors="replace")
        tail = lines[last].encode()[expression.end_col_offset or 0 :].decode(errors="replace")
        lines[first : last + 1] = [head + replacement + tail]
    return "\n".join(line.rstrip() for line in lines if line.strip())


def parse_quietly(code: str, mode: Literal["exec", "eval"] = "exec") -> Any:
    r"""Return the syntax tree of code, without Python's warnings such as that about `'\d'`.

    They belong to the cell that runs the code; here they would stand below another one. Raises as
    `ast.parse`.
    """
    if "\\" not in code:  # other threads should not ignore warnings, too: only where needed
        return ast.parse(code, mode=mode)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(code, mode=mode)


@functools.lru_cache(maxsize=64)
def parse_source(text: str) -> ast.Module:
    """Return the syntax tree of a text, an empty module if it cannot be parsed.

    The cache shares the tree among all callers, so they must not change it.
    """
    try:
        tree: ast.Module = parse_quietly(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        tree = ast.Module(body=[], type_ignores=[])
    return tree


def _remove_comments(text: str) -> list[str]:
    """Return the lines of a text with its comments cut off."""
    # not `splitlines`: for `tokenize` and `ast`, a form feed does not end a line
    lines = text.split("\n")
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                row, column = token.start
                lines[row - 1] = lines[row - 1][:column]
    except (tokenize.TokenError, SyntaxError):  # part of a statement, such as a lambda
        pass
    return lines


def _find_replacements(tree: ast.Module) -> Iterator[tuple[ast.expr, str]]:
    """Yield expressions and the text that replaces them.

    A docstring loses its indentation, a decorator the options that digests leave out.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            first = node.body[0]
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                yield first.value, repr(inspect.cleandoc(first.value.value))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for decorator in node.decorator_list:
                if (
                    isinstance(decorator, ast.Call)
                    and _list_options(decorator) != decorator.keywords
                ):
                    yield decorator, _write_decorator(decorator)


def _list_options(call: ast.Call) -> list[ast.keyword]:
    """Return the options of a decorator that the digest covers."""
    return [k for k in call.keywords if k.arg != _LEFT_OUT]


def _write_decorator(call: ast.Call) -> str:
    """Return the text of a decorator without the options that digests leave out."""
    options = _list_options(call)
    bare = ast.Call(func=call.func, args=call.args, keywords=options)
    return ast.unparse(bare if options or call.args else call.func)


def find_attributes(text: str, name: str) -> set[str]:
    """Return the attributes of `name` that a text uses."""
    return {
        node.attr
        for node in ast.walk(parse_source(text))
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == name
    }
