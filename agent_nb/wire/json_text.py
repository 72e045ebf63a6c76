"""Objects that a program hands over, as plain JSON values.

Why: an iterator of dicts may hold what no line of JSON could: half surrogate pairs (`json.loads`
gives them), NaN, dates, sets, objects of any class. Readers and writers may rely on it that
whatever they see can be written.

Rules: what is JSON already is returned as it is; what is not becomes the nearest JSON value, and
that is said; what is nested too deeply becomes null. Never raises.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Set
from typing import Any

import msgspec

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode
_HALF = re.compile("[\ud800-\udfff]")


def plain(value: Any) -> tuple[Any, bool]:
    """Return `value` as a JSON value, and whether it was another before."""
    try:
        return _checked(value)
    except RecursionError:
        return None, True


def _checked(value: Any) -> tuple[Any, bool]:
    try:
        same = _decode(_encode(value)) == value
    except (TypeError, ValueError, msgspec.MsgspecError, OverflowError):
        same = False
    return (
        (value, False)
        if same and (not isinstance(value, Mapping) or type(value) is dict)
        else (_plain(value), True)
    )


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, str):
        return _HALF.sub("\ufffd", value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {_plain(str(k)): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple | Set):
        return [_plain(v) for v in value]
    try:
        return _decode(_encode(value))
    except (TypeError, ValueError, msgspec.MsgspecError):
        return _plain(str(value))


def partial_args(raw: str) -> dict[str, Any]:
    """Return what can be read of arguments that are still growing, strings cut short included; {}
    while there is nothing.
    """
    from pydantic_core import from_json

    try:
        value = from_json(raw, allow_inf_nan=False, allow_partial="trailing-strings")
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def as_dict(value: Any) -> dict[str, Any]:
    """Return `value` if it is a dict, else an empty one: for JSON whose shape is not certain."""
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    """Return `value` if it is a list, else an empty one: for JSON whose shape is not certain."""
    return value if isinstance(value, list) else []
