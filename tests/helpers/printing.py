"""An object as people may print it."""

from typing import Any


def print_every_way(value: Any) -> str:
    """Return the `repr` of an object, and what rich prints of a class with a method for that."""
    return repr(value) + repr([*getattr(value, "__rich_repr__", tuple)()])
