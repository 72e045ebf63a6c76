"""Converts values of subclasses to built-in ones: `np.str_`, `Markup`, `np.float64`, an `IntEnum`.

Such values pass for texts and numbers until they are written as JSON, joined or compared. So each
function where outside values enter calls `plain_value`, once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_EXACT = frozenset({str, int, float, bool, bytes, type(None)})
_DATES = ("datetime64", "timedelta64")  # of NumPy; Python cannot express all of them


def plain_value(value: Any) -> Any:
    """Return `value` with built-in texts, numbers, dicts, lists and tuples, at any depth.

    Any other value, also a NumPy date, stays as it is: the caller decides whether it is wrong.
    """
    if isinstance(value, Mapping):
        return {plain_scalar(key): plain_value(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain_value(item) for item in value]
    if isinstance(value, tuple):
        return tuple(plain_value(item) for item in value)
    return plain_scalar(value)


def plain_scalar(value: Any) -> Any:
    """Return a text or number as a built-in one, any other value as it is."""
    kind = type(value)
    if kind in _EXACT:
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int.__index__(value)
    if isinstance(value, float):
        return float.__float__(value)
    if kind.__module__ == "numpy" and not getattr(value, "ndim", 1):
        return _convert_numpy(value)
    return value


def _convert_numpy(scalar: Any) -> Any:
    """Return a NumPy scalar as a Python value; a NumPy date stays as it is."""
    if type(scalar).__name__ in _DATES:
        return scalar
    value = scalar.item()
    # `item` of a long double returns a long double
    return float(value) if type(value) is type(scalar) else value
