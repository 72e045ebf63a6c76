"""Read the parameters of a callable, their evaluated annotations, and its docstring.

Why: a tool may be a partial, a method, a wrapper or an object, and its annotations may be texts.
"""

from __future__ import annotations

import functools
import inspect
import types
import typing
from collections.abc import Iterable
from typing import Any

from ..errors import UsageError
from .base import ToolContext
from .reads import list_closure


def read_docstring(function: Any) -> str:
    """Return the docstring of a function, a partial's function, or a callable object."""
    own = None if isinstance(function, functools.partial) else inspect.getdoc(function)
    return own or inspect.getdoc(_find_function(function)) or ""


def find_bound_names(function: Any) -> set[str]:
    """Return the names that partials bind by keyword; the model does not see them."""
    names: set[str] = set()
    while isinstance(function, functools.partial):
        names |= set(function.keywords)
        function = function.func
    return names


def read_signature(function: Any, name: str) -> tuple[list[inspect.Parameter], dict[str, Any]]:
    """Return the parameters of `function` and their annotations by name; `name` is for messages.

    Raises UsageError for a signature that cannot be read or an annotation that cannot be resolved.
    """
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError) as error:
        raise UsageError(
            f"The signature of {name!r} cannot be read ({error}). Wrap it in a function of your own."
        ) from None
    source = _find_function(function)
    # local types are found in the closure
    closure = list_closure(source) if isinstance(source, types.FunctionType) else ()
    scope = {**getattr(source, "__globals__", {}), **dict(closure)}
    annotated = (p for p in parameters if p.annotation is not p.empty)
    return parameters, {p.name: _evaluate(p, scope, name) for p in annotated}


def _evaluate(p: inspect.Parameter, scope: dict[str, Any], name: str) -> Any:
    """Return the annotation of a parameter, with each text in it evaluated. Raises UsageError."""
    try:
        holder = types.SimpleNamespace(__annotations__={p.name: p.annotation})
        return typing.get_type_hints(holder, scope, {}, include_extras=True)[p.name]
    except Exception as error:  # whatever an annotation's expression raises
        if "ToolContext" in str(p.annotation):  # often imported for type checkers only
            return ToolContext
        if not isinstance(p.annotation, str):  # of a parameter that the model may not need
            return p.annotation
        raise UsageError(
            f"The annotation {p.annotation!r} of parameter {p.name!r} of tool {name!r} cannot be resolved "
            f"({type(error).__name__}: {error}). Define or import it at the top level."
        ) from None


def _find_function(function: Any) -> Any:
    """Return the innermost Python function of a partial, method, wrapper or callable object."""
    while isinstance(function, functools.partial):
        function = function.func
    if not inspect.isroutine(function) and not inspect.isclass(function):
        function = type(function).__call__
    return inspect.unwrap(getattr(function, "__func__", function))


def find_context_parameter(parameters: Iterable[inspect.Parameter], hints: dict[str, Any]) -> str:
    """Return the name of the parameter annotated ToolContext, "" for none."""
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    single = (p.name for p in parameters if p.kind not in variadic)
    return next((name for name in single if _is_context(hints.get(name))), "")


def _is_context(hint: Any) -> bool:
    """Return whether an annotation is ToolContext, also in a union or `Annotated`."""
    if isinstance(hint, type):
        return issubclass(hint, ToolContext)
    either = typing.get_origin(hint) in (typing.Union, types.UnionType, typing.Annotated)
    return either and any(_is_context(arg) for arg in typing.get_args(hint))
