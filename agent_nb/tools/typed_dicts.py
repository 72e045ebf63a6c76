"""Converts each `typing.TypedDict` in a type to `typing_extensions.TypedDict`.

Users write `typing.TypedDict`, which pydantic refuses before Python 3.12.
"""

from __future__ import annotations

import operator
import types
import typing
from functools import reduce
from typing import Any

from ..errors import UsageError


def convert_typed_dicts(kind: Any, inside: tuple[Any, ...] = ()) -> Any:
    """Return the type `kind` with each `typing.TypedDict` in it converted.

    `inside`: the TypedDicts around it. Raises UsageError for one that contains itself.
    """
    if typing.is_typeddict(kind):
        return _rebuild(kind, inside) if type(kind).__module__ == "typing" else kind
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if not args or origin is typing.Literal:
        return kind
    metadata = kind.__metadata__ if origin is typing.Annotated else ()
    converted = [convert_typed_dicts(each, inside) for each in (args[:1] if metadata else args)]
    if metadata:
        return typing.Annotated[(converted[0], *metadata)]
    if all(new is old for new, old in zip(converted, args, strict=True)):
        return kind  # unchanged: not every generic can be subscripted again
    if origin in (typing.Union, types.UnionType):
        return reduce(operator.or_, converted)
    return origin[tuple(converted)]


def _rebuild(kind: Any, inside: tuple[Any, ...]) -> Any:
    """Return a TypedDict of `typing_extensions` with the name, fields and docstring of `kind`."""
    import typing_extensions

    if kind in inside:
        raise UsageError(
            f"The TypedDict {kind.__name__} contains itself. Import TypedDict from typing_extensions, or use a pydantic model."
        )
    hints = typing.get_type_hints(kind, include_extras=True)
    fields = {}
    for name, hint in hints.items():
        requirement: Any = typing.get_origin(hint)
        if requirement in (typing.Required, typing.NotRequired):
            (hint,) = typing.get_args(hint)  # noqa: PLW2901  (the type without Required)
        else:
            is_required = name in kind.__required_keys__
            requirement = typing.Required if is_required else typing.NotRequired
        fields[name] = requirement[convert_typed_dicts(hint, (*inside, kind))]
    make_typed_dict: Any = typing_extensions.TypedDict
    rebuilt = make_typed_dict(kind.__name__, fields)
    rebuilt.__doc__ = kind.__doc__
    return rebuilt
