"""Finds the variables that pieces of Python code read before they assign them.

A recorded answer holds as long as the variables that its code read look the same (`context_check`).
Variables that this code assigned itself do not count: on a second Run All they exist already.

Rules
- No code is run. Names that code reads or assigns by `eval`, `globals()` or `import *` are unknown.
- In doubt a name counts as read: in lines of IPython (`%`, `!`, `?`), and in code that is too long
  or cannot be parsed. An assignment below `if`, `for` or `try` counts as executed, though.
"""

from __future__ import annotations

import ast
import re
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from ..tools import parse_quietly

_NAME = re.compile(r"[^\W\d]\w*")
_SPACE = r"[^\S\n]*"  # white space, but no line break
_IPYTHON_LINE = re.compile(rf"^{_SPACE}[%!?].*$|^.*\?{_SPACE}$", re.M)
# an assignment of a command's output, such as `files = !ls`
_IPYTHON_ASSIGNMENT = re.compile(rf"^{_SPACE}([^\W\d]\w*){_SPACE}={_SPACE}[%!].*$", re.M)
LONGEST_CODE = 200_000  # characters of code that is parsed
_Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


class _Scope(NamedTuple):
    """The names that a function, class or comprehension has assigned so far."""

    names: set[str]
    is_class: bool = False


class CodeNames:
    """The names in pieces of code that run one after another.

    `read`: the names that were read before they were assigned, in order (a dict as an ordered set).
    `assigned`: the names that were assigned at the top level.
    """

    def __init__(self) -> None:
        self.read: dict[str, None] = {}
        self.assigned: set[str] = set()
        self._scopes: tuple[_Scope, ...] = ()  # around the code that is visited, outermost first

    def add_assigned(self, *names: str | None) -> None:
        """Add names that are assigned in the innermost scope; None: no name."""
        innermost = self._scopes[-1].names if self._scopes else self.assigned
        innermost.update(filter(None, names))

    @property
    def enclosing(self) -> tuple[_Scope, ...]:
        """The scopes whose names a function defined here can see: all but those of classes."""
        return tuple(scope for scope in self._scopes if not scope.is_class)

    @contextmanager
    def enter_scope(
        self, scope: _Scope, around: tuple[_Scope, ...] | None = None
    ) -> Iterator[None]:
        """Within this context, look names up in `scope` and in the scopes `around` it.

        `around` None: the scopes around the code that is visited now.
        """
        outer = self._scopes
        self._scopes = (*(outer if around is None else around), scope)
        try:
            yield
        finally:
            self._scopes = outer

    def add_read(self, names: Iterable[str]) -> None:
        """Add names that are read; those that are assigned already do not count."""
        self.read |= dict.fromkeys(n for n in names if not self._is_assigned(n))

    def add_code(self, text: str) -> None:
        """Add the names of a piece of code, which runs after the pieces added before.

        Its lines of IPython are read before its other lines.
        """
        if len(text) > LONGEST_CODE:
            self.add_read(_NAME.findall(text))
            return
        python = _IPYTHON_ASSIGNMENT.sub(self._replace_ipython_assignment, text)
        python = _IPYTHON_LINE.sub(self._replace_ipython_line, python)
        try:
            tree = parse_quietly(python)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            self.add_read(_NAME.findall(python))
            return
        visitor = _NameVisitor(self)
        try:
            visitor.visit(tree)
            visitor.visit_bodies()
        except RecursionError:
            self.add_read(_NAME.findall(python))

    def _is_assigned(self, name: str) -> bool:
        return name in self.assigned or any(name in scope.names for scope in self._scopes)

    def _replace_ipython_line(self, line: re.Match[str]) -> str:
        """Note the names of a line of IPython; return "", for it has no counterpart in Python."""
        self.add_read(_NAME.findall(line[0]))
        return ""

    def _replace_ipython_assignment(self, assignment: re.Match[str]) -> str:
        """Note the names of a command; return Python code with the same assignment."""
        self.add_read(_NAME.findall(assignment[0].partition("=")[2]))
        return f"{assignment[1]} = 0"


class _NameVisitor(ast.NodeVisitor):
    """Visits one tree in the order of evaluation.

    `ast` lists the children of a node in the order of the text; the nodes that are evaluated in
    another order have a method here. Call `visit`, then `visit_bodies`.
    """

    def __init__(self, names: CodeNames) -> None:
        self._names = names
        # functions whose bodies are still to be visited, and the scopes around them
        self._functions: deque[tuple[_Function, tuple[_Scope, ...]]] = deque()

    def visit_bodies(self) -> None:
        """Visit the bodies of the functions, now that all assignments are known.

        Functions inside them are added to the queue meanwhile.
        """
        while self._functions:
            function, around = self._functions.popleft()
            body = function.body if isinstance(function.body, list) else [function.body]
            arguments = {a.arg for a in ast.walk(function.args) if isinstance(a, ast.arg)}
            # a name that a function assigns anywhere is local in all of it
            declared_global = _declared_global(body)
            local = arguments | (set(_find_assigned(body)) - declared_global)
            with self._names.enter_scope(_Scope(local), around):
                self._visit_all(*body)
            # all scopes are left here, so these names are assigned at the top level
            self._names.add_assigned(*declared_global)

    def visit_Name(self, node: ast.Name) -> None:
        """Note a name that is read, assigned or deleted.

        `del` reads the name, and counts as an assignment: later reads do not mean the old variable.
        """
        if not isinstance(node.ctx, ast.Store):
            self._names.add_read([node.id])
        if not isinstance(node.ctx, ast.Load):
            self._names.add_assigned(node.id)

    def visit_Assign(self, node: ast.Assign) -> None:
        """Visit the value before the targets."""
        self._visit_all(node.value, *node.targets)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        """Visit the value before the target; without a value nothing is assigned."""
        if node.value is not None:
            self._visit_all(node.value, node.target)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        """Note that the target is read too."""
        if isinstance(node.target, ast.Name):
            self._names.add_read([node.target.id])
        self._visit_all(node.value, node.target)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        """Visit the value before the target."""
        self._visit_all(node.value, node.target)

    def visit_For(self, node: ast.For | ast.AsyncFor) -> None:
        """Visit the iterable before the target."""
        self._visit_all(node.iter, node.target, *node.body, *node.orelse)

    visit_AsyncFor = visit_For  # noqa: N815

    def visit_Import(self, node: ast.Import | ast.ImportFrom) -> None:
        """Note the imported names."""
        self._names.add_assigned(*_imported_names(node))

    visit_ImportFrom = visit_Import  # noqa: N815

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        """Note the name of the exception."""
        self._visit_all(node.type)
        self._names.add_assigned(node.name)
        self._visit_all(*node.body)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        """Visit decorators and defaults now, the body at the end."""
        self._visit_all(*node.decorator_list, *_list_defaults(node.args))
        self._names.add_assigned(node.name)
        self._functions.append((node, self._names.enclosing))

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815

    def visit_Lambda(self, node: ast.Lambda) -> None:
        """Visit the defaults now, the body at the end."""
        self._visit_all(*_list_defaults(node.args))
        self._functions.append((node, self._names.enclosing))

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        """Visit the body in a new scope."""
        self._visit_all(*node.decorator_list, *node.bases, *node.keywords)
        with self._names.enter_scope(_Scope(set(), is_class=True)):
            self._visit_all(*node.body)
        self._names.add_assigned(node.name)

    def visit_ListComp(self, node: Any) -> None:
        """Visit a comprehension, whose targets are its own."""
        first, *_ = node.generators
        self.visit(first.iter)  # evaluated outside the comprehension
        local = set(_find_assigned([g.target for g in node.generators]))
        later_iterables = [g.iter for g in node.generators[1:]]
        tests = [test for g in node.generators for test in g.ifs]
        results = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        with self._names.enter_scope(_Scope(local)):
            self._visit_all(*later_iterables, *tests, *results)
        # := in a comprehension assigns outside it
        self._names.add_assigned(
            *(n.target.id for n in ast.walk(node) if isinstance(n, ast.NamedExpr))
        )

    visit_SetComp = visit_DictComp = visit_GeneratorExp = visit_ListComp  # noqa: N815

    def visit_MatchAs(self, node: ast.MatchAs | ast.MatchStar | ast.MatchMapping) -> None:
        """Note the name that a pattern of `match` assigns."""
        self.generic_visit(node)
        name = node.rest if isinstance(node, ast.MatchMapping) else node.name
        self._names.add_assigned(name)

    visit_MatchStar = visit_MatchMapping = visit_MatchAs  # noqa: N815

    def _visit_all(self, *nodes: ast.AST | None) -> None:
        for node in filter(None, nodes):
            self.visit(node)


def _list_defaults(arguments: ast.arguments) -> list[ast.expr]:
    return [*arguments.defaults, *filter(None, arguments.kw_defaults)]


def _walk_scope(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Yield nodes and those inside them, without the scopes of functions, classes, comprehensions.

    Some parts of a function, class or comprehension belong to the scope around it: defaults,
    decorators and bases, and the targets of `:=`.
    """
    unvisited = deque(nodes)
    while unvisited:
        node = unvisited.popleft()
        yield node
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            unvisited.extend((*node.decorator_list, *_list_defaults(node.args)))
        elif isinstance(node, ast.Lambda):
            unvisited.extend(_list_defaults(node.args))
        elif isinstance(node, ast.ClassDef):
            unvisited.extend((*node.decorator_list, *node.bases, *node.keywords))
        elif isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
            unvisited.extend(n.target for n in ast.walk(node) if isinstance(n, ast.NamedExpr))
        else:
            unvisited.extend(ast.iter_child_nodes(node))


def _find_assigned(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Yield the names that nodes assign in their own scope."""
    for node in _walk_scope(nodes):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from _imported_names(node)
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            yield node.name
        elif isinstance(node, ast.MatchMapping) and node.rest:
            yield node.rest


def _imported_names(node: ast.Import | ast.ImportFrom) -> list[str]:
    """Return the names that an import assigns; those of `import *` are unknown."""
    return [a.asname or a.name.partition(".")[0] for a in node.names if a.name != "*"]


def _declared_global(nodes: Iterable[ast.AST]) -> set[str]:
    """Return the names in `global` statements of the scope of these nodes."""
    return {
        name for node in _walk_scope(nodes) if isinstance(node, ast.Global) for name in node.names
    }
