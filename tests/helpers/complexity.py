"""How hard a function is to read: the branches in it, those that a linter does not count included.

Why: ruff's C901 counts statements. Conditional expressions, comprehensions, `and` and `or` hide as
many ways through a function on fewer lines.

    python tests/helpers/complexity.py     the functions above `HARD` that have no comment

Rules
- One for the function, one more for each branch; functions inside it count for themselves.
- A comment is a line or the end of a line in the function; a directive for a tool is not one.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

if __package__:
    from .import_graph import all_nodes, modules
    from .paths import CHECKOUT
else:
    from import_graph import all_nodes, modules  # type: ignore[no-redef]
    from paths import CHECKOUT  # type: ignore[no-redef]

HARD = 15
_BRANCHES = (
    ast.If, ast.For, ast.AsyncFor, ast.While, ast.ExceptHandler, ast.IfExp, ast.comprehension,
    ast.Assert, ast.match_case,
)  # fmt: skip
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_DIRECTIVE = re.compile(r"#\s*(type:|noqa|fmt:|pragma)")


class Hard(NamedTuple):
    """A function that is hard to read; `commented`: it has a comment."""

    name: str
    branches: int
    commented: bool


def count_branches(function: ast.AST) -> int:
    """Return one more than the branches of a function, without functions inside it."""
    total = 1
    pending = list(ast.iter_child_nodes(function))
    while pending:
        node = pending.pop()
        if isinstance(node, _FUNCTIONS):
            continue
        if isinstance(node, ast.BoolOp):
            total += len(node.values) - 1
        elif isinstance(node, ast.comprehension):
            total += 1 + len(node.ifs)
        elif isinstance(node, _BRANCHES):
            total += 1
        pending += ast.iter_child_nodes(node)
    return total


def find_hard_functions(checkout: Path, above: int = HARD) -> Iterator[Hard]:
    """Yield the functions of the package with more than `above` branches."""
    for module, path in modules(checkout).items():
        functions = [node for node in all_nodes(path) if isinstance(node, _FUNCTIONS)]
        hard = {node: n for node in functions if (n := count_branches(node)) > above}
        comments = _comment_lines(path.read_text()) if hard else set()  # read slowly: where needed
        for node, branches in hard.items():
            lines = range(node.lineno, (node.end_lineno or node.lineno) + 1)
            yield Hard(f"{module}.{node.name}", branches, any(line in comments for line in lines))


def _comment_lines(text: str) -> set[int]:
    return {
        token.start[0]
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type == tokenize.COMMENT and not _DIRECTIVE.match(token.string)
    }


if __name__ == "__main__":
    for hard in sorted(find_hard_functions(CHECKOUT), key=lambda h: -h.branches):
        if not hard.commented:
            print(f"{hard.branches:3} {hard.name}")
