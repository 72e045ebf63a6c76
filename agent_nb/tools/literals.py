"""Plain values as short texts: numbers, texts, dates, and the scalars of NumPy and pandas.

Rules
- Only exact types are written, for a subclass may have a `__str__` of its own; so may the zone of a
  time, which counts only if it is one of the standard library.
- A text passes the secret filter, with as much after it as a key may be long, before it is cut.
"""

from __future__ import annotations

import datetime
import re
import zoneinfo
from collections.abc import Callable
from typing import Any

from ..wire.key_search import LONGEST
from .looks import by_type, exactly, library, line, offered

Clean = Callable[[str], str]
WIDTH = 40  # characters of a text
_DIGITS, _EXACT = 1e6, 1e16  # between them a number is rounded to a whole one
_FLOATS = frozenset({"numpy.float16", "numpy.float32", "numpy.float64"})
_BITS = 256  # of the largest integer that is written
_ZEROS = re.compile(r"\.0+\Z")
_ZONES = (type(None), datetime.timezone, zoneinfo.ZoneInfo)


def same(text: str) -> str:
    """Return a text as it is: the secret filter of callers that have none."""
    return text


def text_of(text: str, clean: Clean, width: int = WIDTH) -> str:
    """Return the beginning of a text on one line, without secrets."""
    head = text[: width + LONGEST]
    return line(clean(head) + ("…" * (len(head) < len(text))), width)


def literal(value: Any, clean: Clean = same) -> str:
    """Return a plain value as text, "" for anything else."""
    write = by_type(_WRITERS, value)
    if write is not None:
        return write(value, clean)
    kind = offered(value)
    if kind in _LIBRARY:
        return _LIBRARY[kind](value, clean)
    if kind.startswith("numpy.") and kind != "numpy.ndarray":
        return str(value)
    if kind == "pandas.Timedelta" or _missing(value):
        return str(value)
    return ""


def rounded(value: Any) -> Any:
    """Return a floating-point number with about six digits, all of them before the point included;
    anything else as it is.
    """
    if type(value) is not float and offered(value) not in _FLOATS:
        return value
    number = float(value)
    whole = _DIGITS <= abs(number) < _EXACT
    return float(round(number)) if whole else float(f"{number:.6g}")


def bare(value: Any, clean: Clean = same, width: int = WIDTH) -> str:
    """Return a plain value, a text without quotes, "" for anything else."""
    return text_of(value, clean, width) if type(value) is str else literal(value, clean)


def _missing(value: Any) -> bool:
    pandas = library("pandas")
    return bool(pandas) and (value is pandas.get("NaT") or value is pandas.get("NA"))


def _integer(value: int, _: Clean) -> str:
    bits = value.bit_length()
    return str(value) if bits <= _BITS else f"an integer of {bits:,} bits"


def _quoted(value: str, clean: Clean) -> str:
    return f"'{text_of(value, clean)}'"


def _time(value: Any, _: Clean) -> str:
    zone = datetime.datetime.tzinfo.__get__(value)
    return str(value) if exactly(zone, _ZONES) else ""


def _clock(value: datetime.time, _: Clean) -> str:
    return str(value) if exactly(value.tzinfo, _ZONES) else ""


def _written(value: Any, _: Clean) -> str:
    return repr(value)


def _said(value: Any, _: Clean) -> str:
    return str(value)


_WRITERS: dict[type, Callable[[Any, Clean], str]] = {
    type(None): _written,
    bool: _written,
    int: _integer,
    float: _written,
    complex: _written,
    str: _quoted,
    datetime.datetime: _time,
    datetime.date: _said,
    datetime.time: _clock,
    datetime.timedelta: _said,
}
_LIBRARY: dict[str, Callable[[Any, Clean], str]] = {
    "numpy.str_": lambda value, clean: _quoted(str.__str__(value), clean),
    "numpy.datetime64": lambda value, _: _ZEROS.sub("", str(value)).replace("T", " "),
    "numpy.timedelta64": lambda value, _: str(value.astype("m8[us]").item()),
    "pandas.Timestamp": _time,
}
