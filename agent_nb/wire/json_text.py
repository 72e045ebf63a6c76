"""Reads and writes JSON, its canonical text, and the nearest JSON value of any object.

Providers send JSON that strict readers refuse, and a digest needs one text for each value. `loads`
is strict, for JSON of ours; `lenient_loads` reads what providers really send.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Set
from typing import Any

import msgspec

from .plain_values import plain_value
from .surrogates import replace_surrogates

SAFE = 2**53 - 1  # larger integers are not exact in every JSON reader
_MOST_BITS = 14_000  # of an integer that Python writes as text
_DEEPEST = 400  # levels of a value that has a canonical text
_SCALARS = frozenset({str, bool, type(None)})
_encode = msgspec.json.Encoder().encode
_canonical_text = json.JSONEncoder(
    sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False
).encode
#: Parse strict JSON, text or bytes. Raises msgspec.DecodeError, or UnicodeEncodeError for a lone
#: surrogate.
loads = msgspec.json.Decoder().decode


def dumps(value: Any) -> str:
    """Return a JSON value as compact text.

    A lone surrogate, which UTF-8 lacks, is replaced; NaN and infinity become null.
    """
    try:
        return _encode(value).decode()
    except UnicodeEncodeError:
        return _encode(_nearest(value)).decode()


def lenient_loads(text: str | bytes) -> Any:
    """Parse JSON, also with NaN, lone surrogates or raw control characters in it.

    Raises ValueError for anything else, too deep nesting included.
    """
    try:
        return loads(text)
    except (msgspec.MsgspecError, RecursionError, UnicodeEncodeError):
        pass
    try:
        return json.loads(text, strict=False)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def encode_canonical(value: Any) -> str:
    """Return the text that all equal JSON values share, for digests: sorted keys, no spaces.

    Raises ValueError for any other value.
    """
    return _canonical_text(_canonical_numbers(value, _DEEPEST))


def _canonical_numbers(value: Any, depth: int) -> Any:
    """Return a JSON value with each number in the form that every JSON reader gives it."""
    if isinstance(value, str | bool) or value is None:
        return value
    # 1.0 and 1 are one number in JSON, and JavaScript writes the first as the second
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) <= SAFE else value
    if isinstance(value, int):
        return value if abs(value) <= SAFE else _double(value)
    if not depth:
        raise ValueError("the value is nested too deeply")
    below = depth - 1
    # scalars are handled here, without a call for each: records hold millions of them
    if isinstance(value, dict):
        return {
            k if type(k) is str else str(k): v
            if (kind := type(v)) in _SCALARS
            or (kind is int and -SAFE <= v <= SAFE)
            or (kind is float and not v.is_integer())
            else _canonical_numbers(v, below)
            for k, v in value.items()
        }
    if isinstance(value, list | tuple):
        return [v if type(v) in _SCALARS else _canonical_numbers(v, below) for v in value]
    raise ValueError(f"{type(value).__name__} is not a JSON value")


def _double(value: int) -> float:
    """Return the float nearest to a large integer, as JavaScript reads it."""
    try:
        return float(value)
    except OverflowError:
        raise ValueError("the number is too large for JSON") from None


def nearest_json(value: Any) -> tuple[Any, bool]:
    """Return the nearest JSON value, of built-in types, and whether it differs from `value`.

    A program's object may hold what JSON cannot: lone surrogates, NaN, dates, sets, instances of
    any class. A value that is nested too deeply becomes null as a whole. Never raises.
    """
    try:
        return _round_trip(value)
    except RecursionError:
        return None, True


def _round_trip(value: Any) -> tuple[Any, bool]:
    """Return `value` written and read as JSON if that is equal, else the nearest value."""
    try:
        read = loads(_encode(value))
        if read == value and (not isinstance(value, Mapping) or type(value) is dict):
            return read, False
    except (TypeError, ValueError, msgspec.MsgspecError, OverflowError):
        pass
    return _nearest(value), True


def _nearest(value: Any) -> Any:
    """Return the nearest JSON value: of other objects their JSON, else their text."""
    if isinstance(value, Mapping):
        return {_text_of(k) or "": _nearest(v) for k, v in value.items()}
    if isinstance(value, list | tuple | Set):
        return [_nearest(v) for v in value]
    value = plain_value(value)
    if value is None or (isinstance(value, int) and value.bit_length() <= _MOST_BITS):
        return value
    if isinstance(value, str):
        return replace_surrogates(value)
    if isinstance(value, int | float):
        return value if isinstance(value, float) and math.isfinite(value) else None
    try:
        return loads(_encode(value))
    except (TypeError, ValueError, msgspec.MsgspecError):
        return _text_of(value)


def _text_of(value: Any) -> str | None:
    """Return the text of an object, None if it has none that can be written."""
    try:
        return replace_surrogates(str(value))
    except Exception:  # of a foreign class
        return None


def as_dict(value: Any) -> dict[str, Any]:
    """Return `value` if it is a dict, else {}: for JSON of uncertain shape."""
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    """Return `value` if it is a list, else []: for JSON of uncertain shape."""
    return value if isinstance(value, list) else []
