"""The type that `--output TYPE` names: a name of the notebook, or an expression such as
`list[Row]`.

Why not `eval`: the text of an option must not run arbitrary code.

Rules
- Only names, subscripts, `|`, `None`, `...` and, in `Literal[…]`, constants are read; nothing is
  called but the `[]` of a class or type.
- A name means the notebook's variable, else a built-in type, else one of `_TYPING`.
- A subscript needs a class or a type: the `[]` of other objects is never called.
"""

from __future__ import annotations

import ast
import builtins
import typing
from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import UsageError
from .options import Options

LONGEST = 500  # characters of an expression that are read
_TYPING = ("Annotated", "Any", "Literal", "NamedTuple", "Optional", "TypedDict", "Union")
_HOMES = ("typing", "types", "typing_extensions")  # modules of the classes of type expressions


def wanted_type(options: Options, namespace: Mapping[str, Any]) -> Any:
    """Return the type of the answer that a cell's options name, None for plain text.

    Raises UsageError.
    """
    return output_type(options.kind, namespace) if options.kind else None


def output_type(text: str, namespace: Mapping[str, Any]) -> Any:
    """Return the type that `text` names in the notebook's namespace. Raises UsageError."""
    expression = text.strip()
    try:
        # a text that is too long is read as "", which is a SyntaxError too
        tree = ast.parse(expression if len(expression) <= LONGEST else "", mode="eval").body
        kind = _evaluate(tree, namespace)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise UsageError(
            f"--output takes the type of the answer, not {_quote(expression)}."
        ) from None
    if not _is_type(kind) and kind is not typing.Any:
        raise UsageError(_explain_no_type(expression, f"is a {type(kind).__name__}"))
    return kind


def _evaluate(node: ast.expr, namespace: Mapping[str, Any]) -> Any:
    """Return the value of a type expression, which may be no type: the callers check it.

    Raises UsageError for other expressions.
    """
    if isinstance(node, ast.Name):
        return _look_up(node.id, namespace)
    if isinstance(node, ast.Constant) and (node.value is None or node.value is Ellipsis):
        return node.value
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        sides = [_evaluate_type(side, namespace) for side in (node.left, node.right)]
        # not `|`: no `__or__` of a class is used
        return _apply_arguments(typing.Union, sides, node)
    if isinstance(node, ast.Subscript):
        return _evaluate_subscript(node, namespace)
    raise UsageError(
        f"--output reads names, [ ] and | only, not {_quote(ast.unparse(node))}. Give the type a name in a cell above, and write --output NAME."
    )


def _look_up(name: str, namespace: Mapping[str, Any]) -> Any:
    """Return the value of a name. Raises UsageError if there is none."""
    if name in namespace:
        return namespace[name]
    value = getattr(builtins, name, None)
    if isinstance(value, type):
        return value
    if name in _TYPING:
        return getattr(typing, name)
    raise UsageError(
        _explain_no_type(name, "is not defined: run the cell that defines or imports it")
    )


def _evaluate_subscript(node: ast.Subscript, namespace: Mapping[str, Any]) -> Any:
    """Return a type with arguments, such as `list[Row]`."""
    base = _evaluate_type(node.value, namespace)
    elements = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    arguments: list[Any]
    if base is typing.Literal:
        arguments = [ast.literal_eval(each) for each in elements]
    elif isinstance(node.slice, ast.Tuple) and not elements:
        arguments = []
    else:
        arguments = [_evaluate_type(each, namespace, allows_dots=True) for each in elements]
    return _apply_arguments(base, arguments, node)


def _apply_arguments(base: Any, arguments: Sequence[Any], node: ast.expr) -> Any:
    """Return `base[arguments]`. Raises UsageError, which quotes `node`."""
    try:
        return base[tuple(arguments) if len(arguments) != 1 else arguments[0]]
    except Exception as fault:  # a class decides itself which arguments it takes
        raise UsageError(
            f"--output {ast.unparse(node)} is not a type: {str(fault)[:200]}."
        ) from None


def _evaluate_type(
    node: ast.expr, namespace: Mapping[str, Any], *, allows_dots: bool = False
) -> Any:
    """Return the value of an expression, which is a type or None. Raises UsageError for others.

    `allows_dots`: or the dots of `tuple[int, ...]`.
    """
    value = _evaluate(node, namespace)
    if value is None or (allows_dots and value is Ellipsis) or _is_type(value):
        return value
    raise UsageError(_explain_no_type(ast.unparse(node), f"is a {type(value).__name__}"))


def _is_type(value: Any) -> bool:
    """Return whether a value is a class, or a type such as `list[int]`; none of its code runs."""
    return issubclass(type(value), type) or type(value).__module__ in _HOMES


def _quote(text: str) -> str:
    return repr(text if len(text) <= 80 else f"{text[:80]}…")


def _explain_no_type(text: str, why: str) -> str:
    message = f"--output takes the type of the answer, and {text[:80]} {why}."
    if not text.isidentifier():
        return message
    return f"{message} For the variable that gets the run, write -o {text[:80]}."
