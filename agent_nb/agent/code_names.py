"""The variables that pieces of Python code read before they assign them, in the order of the text.

Why: a replay is right as long as what the recorded code read looks the same. What that code made
itself says nothing: on a second Run All it is there already.

Rules
- Names count in the order in which Python evaluates them, and code of several calls as one text:
  what an earlier call assigned is not read by a later one.
- An assignment below `if`, `for` or `try` counts as made. The body of a function counts where the
  code ends: it may use what is assigned below it. Annotations do not count.
- Lines of IPython (`%`, `!`, `?`) and code that cannot be parsed, or is longer than `LONGEST`, read
  every name in them.
- Nothing is run. Names made at run time (`eval`, `globals()`) are not found.
"""

from __future__ import annotations

import ast
import re
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

_NAME = re.compile(r"[^\W\d]\w*")
_SPACE = r"[^\S\n]*"
_IPYTHON_LINE = re.compile(rf"^{_SPACE}[%!?].*$|^.*\?{_SPACE}$", re.M)
_IPYTHON_ASSIGNMENT = re.compile(rf"^{_SPACE}([^\W\d]\w*){_SPACE}={_SPACE}[%!].*$", re.M)
LONGEST = 200_000  # characters of code that is parsed
_Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


class CodeNames:
    """Names of pieces of code that run one after another: `read` before they were `assigned`."""

    def __init__(self) -> None:
        self.read: dict[str, None] = {}
        self.assigned: set[str] = set()
        self._scopes: list[set[str]] = []  # names of the scopes that are being read, outer first

    def assigns(self, *names: str) -> None:
        """Note names that are assigned, in the innermost scope."""
        (self._scopes[-1] if self._scopes else self.assigned).update(names)

    @contextmanager
    def scope(self, local: Iterable[str]) -> Iterator[None]:
        """Read a scope with the `local` names; what it assigns ends with it."""
        self._scopes.append(set(local))
        try:
            yield
        finally:
            self._scopes.pop()

    def _is_assigned(self, name: str) -> bool:
        return name in self.assigned or any(name in scope for scope in self._scopes)

    def uses(self, names: Iterable[str]) -> None:
        """Note names that are read here, or by a function of the notebook or a tool."""
        self.read |= dict.fromkeys(n for n in names if not self._is_assigned(n))

    def code(self, text: str) -> None:
        """Add a piece of code."""
        if len(text) > LONGEST:
            self.uses(_NAME.findall(text))
            return
        plain = _IPYTHON_LINE.sub(
            self._read_line, _IPYTHON_ASSIGNMENT.sub(self._read_assignment, text)
        )
        try:
            tree = ast.parse(plain)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            self.uses(_NAME.findall(plain))
            return
        reader = _Reader(self)
        try:
            reader.visit(tree)
            reader.close()
        except RecursionError:
            self.uses(_NAME.findall(plain))

    def _read_line(self, line: re.Match[str]) -> str:
        self.uses(_NAME.findall(line[0]))
        return ""

    def _read_assignment(self, assignment: re.Match[str]) -> str:
        self.uses(_NAME.findall(assignment[0].partition("=")[2]))
        return f"{assignment[1]} = 0"


class _Reader(ast.NodeVisitor):
    """Walks one tree in the order of evaluation."""

    def __init__(self, names: CodeNames) -> None:
        self._names = names
        self._functions: deque[_Function] = deque()  # whose bodies are visited at the end

    def close(self) -> None:
        """Visit the bodies of the functions, now that all assignments are known."""
        while self._functions:
            function = self._functions.popleft()
            body = function.body if isinstance(function.body, list) else [function.body]
            arguments = {a.arg for a in ast.walk(function.args) if isinstance(a, ast.arg)}
            local = arguments | (set(_find_assigned(body)) - _declared_global(body))
            self._visit_scope(local, body)
            self._names.assigns(*_declared_global(body))

    def visit_Name(self, node: ast.Name) -> None:
        """Note a name that is read, assigned or deleted."""
        if not isinstance(node.ctx, ast.Store):
            self._names.uses([node.id])
        if not isinstance(node.ctx, ast.Load):
            self._names.assigns(node.id)

    def visit_Assign(self, node: ast.Assign) -> None:
        """Visit the value before the targets."""
        self._visit_all(node.value, *node.targets)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        """Visit the value before the target; without one nothing is assigned."""
        self._visit_all(*([node.value, node.target] if node.value else []))

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        """Note that the target is read too."""
        if isinstance(node.target, ast.Name):
            self._names.uses([node.target.id])
        self._visit_all(node.value, node.target)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        """Visit the value before the target."""
        self._visit_all(node.value, node.target)

    def visit_For(self, node: ast.For | ast.AsyncFor) -> None:
        """Visit what is iterated before the target."""
        self._visit_all(node.iter, node.target, *node.body, *node.orelse)

    visit_AsyncFor = visit_For  # noqa: N815

    def visit_Import(self, node: ast.Import | ast.ImportFrom) -> None:
        """Note the imported names."""
        self._names.assigns(*(a.asname or a.name.partition(".")[0] for a in node.names))

    visit_ImportFrom = visit_Import  # noqa: N815

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        """Note the name of the exception."""
        self._visit_all(*([node.type] if node.type else []))
        self._names.assigns(*([node.name] if node.name else []))
        self._visit_all(*node.body)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        """Visit decorators and defaults now, the body at the end."""
        self._visit_all(*node.decorator_list, *_defaults(node.args))
        self._names.assigns(node.name)
        self._functions.append(node)

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815

    def visit_Lambda(self, node: ast.Lambda) -> None:
        """Visit the defaults now, the body at the end."""
        self._visit_all(*_defaults(node.args))
        self._functions.append(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        """Visit the body in a scope of its own."""
        self._visit_all(*node.decorator_list, *node.bases, *node.keywords)
        self._visit_scope((), node.body)
        self._names.assigns(node.name)

    def visit_ListComp(self, node: Any) -> None:
        """Visit a comprehension, whose targets are its own."""
        first, *_ = node.generators
        self.visit(first.iter)
        local = set(_find_assigned([g.target for g in node.generators]))
        rest = [g.iter for g in node.generators[1:]]
        tests = [test for g in node.generators for test in g.ifs]
        results = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        self._visit_scope(local, [*rest, *tests, *results])
        # := in a comprehension assigns outside it
        self._names.assigns(*(n.target.id for n in ast.walk(node) if isinstance(n, ast.NamedExpr)))

    visit_SetComp = visit_DictComp = visit_GeneratorExp = visit_ListComp  # noqa: N815

    def visit_MatchAs(self, node: ast.MatchAs | ast.MatchStar | ast.MatchMapping) -> None:
        """Note the name of a pattern."""
        self.generic_visit(node)
        name = node.rest if isinstance(node, ast.MatchMapping) else node.name
        self._names.assigns(*([name] if name else []))

    visit_MatchStar = visit_MatchMapping = visit_MatchAs  # noqa: N815

    def _visit_all(self, *nodes: ast.AST) -> None:
        for node in nodes:
            self.visit(node)

    def _visit_scope(self, local: Iterable[str], nodes: Iterable[ast.AST]) -> None:
        """Visit nodes whose names `local` are local; their assignments end with them."""
        with self._names.scope(local):
            self._visit_all(*nodes)


def _defaults(arguments: ast.arguments) -> list[ast.expr]:
    return [*arguments.defaults, *filter(None, arguments.kw_defaults)]


def _find_assigned(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Yield the names that nodes assign in any way, inner functions included."""
    for node in (inner for outer in nodes for inner in ast.walk(outer)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from (a.asname or a.name.partition(".")[0] for a in node.names)
        elif isinstance(node, ast.ExceptHandler) and node.name:
            yield node.name


def _declared_global(nodes: Iterable[ast.AST]) -> set[str]:
    inner_nodes = (inner for outer in nodes for inner in ast.walk(outer))
    return {name for node in inner_nodes if isinstance(node, ast.Global) for name in node.names}
