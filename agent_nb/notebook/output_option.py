"""The type that `--output TYPE` names: a name of the notebook, or an expression like `list[Row]`.

Why not `eval`: the text of an option must not run arbitrary code. Only names, subscripts, `|`,
`None`, `...` and, in `Literal[…]`, constants are read. Only classes and types are subscripted: the
code of other objects does not run.
"""

from __future__ import annotations

import ast
import builtins
import sys
import typing
from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import UsageError

LONGEST = 500  # characters of an expression that are read
_TYPING = ("Any", "Literal", "Optional", "Union")
_NEED_BRACKETS = (typing.Annotated, typing.Literal, typing.Optional, typing.Union)
# a type of each kind that is not a class
_EXAMPLES: tuple[Any, ...] = (
    list[int], int | None, typing.List, typing.List[int], typing.Tuple, typing.Optional[int],  # noqa: UP006, UP045
    typing.Literal[1], typing.Annotated[int, 1], typing.NewType("_Id", int),
)  # fmt: skip
_KINDS = tuple(type(each) for each in _EXAMPLES)
_ALIAS_MODULES = ("typing", "typing_extensions")  # they define the class of `type Row = …`


def output_type(text: str, namespace: Mapping[str, Any]) -> Any:
    """Return the type that `text` names in the notebook's namespace. Raises UsageError."""
    expression = text.strip()
    unreadable = UsageError(f"--output takes the type of the answer, not {_quote(expression)}.")
    if len(expression) > LONGEST:
        raise unreadable
    try:
        kind = _evaluate(ast.parse(expression, mode="eval").body, namespace)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise unreadable from None
    if not _is_type(kind):
        raise UsageError(_format_type_error(expression, _describe_value(kind)))
    return kind


def _evaluate(node: ast.expr, namespace: Mapping[str, Any]) -> Any:
    """Return the value of an expression; the caller checks that it is a type. Raises UsageError."""
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
        _format_type_error(name, "is not defined: run the cell that defines or imports it")
    )


def _evaluate_subscript(node: ast.Subscript, namespace: Mapping[str, Any]) -> Any:
    """Return a type with arguments, such as `list[Row]`."""
    base = _evaluate(node.value, namespace)
    if not _needs_brackets(base):
        _check_type(node.value, base)
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
    if value is not None and not (allows_dots and value is Ellipsis):
        _check_type(node, value)
    return value


def _check_type(node: ast.expr, value: Any) -> None:
    if not _is_type(value):
        raise UsageError(_format_type_error(ast.unparse(node), _describe_value(value)))


def _is_type(value: Any) -> bool:
    """Return whether a value is a class, or a type such as `list[int]`; none of its code runs."""
    kind = type(value)
    if value is typing.Any or issubclass(kind, type):
        return not _needs_brackets(value)
    aliases = [getattr(sys.modules.get(m), "TypeAliasType", None) for m in _ALIAS_MODULES]
    return any(kind is each for each in (*_KINDS, *aliases))


def _needs_brackets(value: Any) -> bool:
    return any(value is form for form in _NEED_BRACKETS)


def _describe_value(value: Any) -> str:
    return "is not a type without [ ]" if _needs_brackets(value) else f"is a {type(value).__name__}"


def _quote(text: str) -> str:
    return repr(text if len(text) <= 80 else f"{text[:80]}…")


def _format_type_error(text: str, why: str) -> str:
    message = f"--output takes the type of the answer, and {text[:80]} {why}."
    if not text.isidentifier():
        return message
    return f"{message} For the variable that gets the run, write -o {text[:80]}."
