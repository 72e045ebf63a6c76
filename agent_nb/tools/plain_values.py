"""Write plain values and builtin objects as short texts: numbers, dates, and the scalars of NumPy
and pandas as they are; of containers and functions their size, item types or signature.

Why: these texts go to a model and into records. No object may add code, secrets or length to them.

Rules
- Only exact types are written, for a subclass may have a `__str__` of its own; so may the zone of a
  time, which counts only if it is one of the standard library.
- A function is read from its code object. Annotations and defaults are not looked at, for their
  text would be a user's `__repr__`.
- A text passes the caller's secret filter, with as much after it as a key may be long, before it is
  cut.
- Sets are looked into whole or not at all: their order differs from process to process.
"""

from __future__ import annotations

import datetime
import inspect
import re
import types
import zoneinfo
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

from ..wire import Redactor
from .safe_types import (
    NAME,
    find_by_type,
    find_entry,
    is_exactly,
    module_space,
    one_line,
    own_fields,
    public_name,
    text_entries,
    type_name,
)

Clean = Callable[[str], str]  # a secret filter; `str` leaves a text as it is
KINDS = 3  # items of a container whose types are named, and parts of a label
SET = 1_000  # items of the largest set that is looked into
WIDTH = 40  # characters of a text
_SIGNATURE = 200  # characters
# between them a number is rounded to a whole one; from the second on every float is whole
_ROUNDED, _WHOLE = 1e6, 1e16
_FLOATS = frozenset({"numpy.float16", "numpy.float32", "numpy.float64"})
_BITS = 256  # of the largest integer that is written
_ZEROS = re.compile(r"\.0+\Z")  # fractions of a second
_ZONES = (type(None), datetime.timezone, zoneinfo.ZoneInfo)


def clean_text(text: str, clean: Clean, width: int = WIDTH) -> str:
    """Return the beginning of a text on one line, without secrets."""
    head = text[: width + Redactor.LONGEST_KEY]
    return one_line(clean(head) + ("…" * (len(head) < len(text))), width)


def class_name(kind: type, clean: Clean = str) -> str:
    """Return the name of a class without secrets, cut."""
    return clean_text(type_name(kind), clean, NAME)


def write_literal(value: Any, clean: Clean = str) -> str:
    """Return a plain value as text, "" for anything else."""
    name = public_name(value)
    if type(value) is str or name == "numpy.str_":
        return f"'{clean_text(str.__str__(value), clean)}'"
    write = find_by_type(_WRITERS, value) or _LIBRARY.get(name)
    if write is None and (
        (name.startswith("numpy.") and name != "numpy.ndarray") or _missing(value)
    ):
        write = str
    try:
        return write(value) if write is not None else ""
    except ValueError:  # a time of NumPy without a unit
        return ""


def write_unquoted(value: Any, clean: Clean = str, width: int = WIDTH) -> str:
    """Return a plain value, a text without quotes, "" for anything else."""
    return clean_text(value, clean, width) if type(value) is str else write_literal(value, clean)


def round_float(value: Any) -> Any:
    """Return a floating-point number with about six digits, all of them before the point included;
    anything else as it is.
    """
    if type(value) is not float and public_name(value) not in _FLOATS:
        return value
    number = float(value)
    whole = _ROUNDED <= abs(number) < _WHOLE
    return float(round(number)) if whole else float(f"{number:.6g}")


def _missing(value: Any) -> bool:
    """Return whether a value is NaT or NA of pandas."""
    pandas = module_space("pandas")
    return bool(pandas) and (value is pandas.get("NaT") or value is pandas.get("NA"))


def _integer(value: int) -> str:
    bits = value.bit_length()
    return str(value) if bits <= _BITS else f"an integer of {bits:,} bits"


def _time(value: Any) -> str:
    """Return a time as text, "" if its zone is an object of the user's."""
    return str(value) if is_exactly(value.tzinfo, _ZONES) else ""


# how plain values are written, by their exact type or public name
_WRITERS: dict[type, Callable[[Any], str]] = {
    **dict.fromkeys((type(None), bool, float, complex), repr),
    **dict.fromkeys((datetime.date, datetime.timedelta), str),
    **dict.fromkeys((datetime.datetime, datetime.time), _time),
    int: _integer,
}
_LIBRARY: dict[str, Callable[[Any], str]] = {
    "numpy.datetime64": lambda value: _ZEROS.sub("", str(value)).replace("T", " "),
    "numpy.timedelta64": lambda value: str(value.astype("m8[us]").item()),
    "pandas.Timestamp": _time,
    "pandas.Timedelta": str,
}


def describe_builtin(value: Any, clean: Clean = str) -> str:
    """Describe an exact builtin by its size, item types or signature; "" for anything else."""
    write = find_by_type(_NOTES, value)
    return write(value, clean) if write is not None else ""


def take_items(items: Iterable[Any], count: int) -> list[Any]:
    """Return the first items of an exact builtin; none if another thread changes it meanwhile."""
    try:
        return list(islice(items, count))
    except RuntimeError:
        return []


def take_set(items: Any) -> list[Any]:
    """Return the items of a set, none of a large one: its first ones differ between processes."""
    return take_items(items, SET) if len(items) <= SET else []


def _sized(word: str) -> Callable[[Any, Clean], str]:
    return lambda value, _: f"{len(value):,} {word}{'' if len(value) == 1 else 's'}"


def _items(value: Any, clean: Clean) -> str:
    """Return the length of a container and the types of its first items, of a set those of all."""
    kinds: Iterable[str]
    if type(value) is dict:
        pairs = [(type(key), type(item)) for key, item in take_items(dict.items(value), KINDS)]
        kinds = (f"{class_name(key, clean)}: {class_name(item, clean)}" for key, item in pairs)
    elif is_exactly(value, (list, tuple)):
        kinds = (class_name(type(item), clean) for item in take_items(value, KINDS))
    else:
        known = {id(type(item)): type(item) for item in take_set(value)}.values()
        kinds = sorted({class_name(kind, clean) for kind in known})[:KINDS]
    inside = ", ".join(dict.fromkeys(kinds))
    size = _sized("item")(value, clean)
    return f"{size} ({inside})" if inside else size


def _range(value: range, _: Clean) -> str:
    try:
        return f"{len(value):,} items"
    except OverflowError:
        return "more than 2⁶⁴ items"


def _signature(value: types.FunctionType, clean: Clean) -> str:
    """Return name and parameters, read from the code object. `inspect.signature` would ask the
    defaults, and evaluate annotations.
    """
    # `co_varnames` has the positional parameters, those by keyword only, `*args` and `**kwargs`
    code, defaults, named = value.__code__, value.__defaults__, value.__kwdefaults__
    plain, total = code.co_argcount, code.co_argcount + code.co_kwonlyargcount
    first = plain - (0 if defaults is None else tuple.__len__(defaults))
    optional = {*code.co_varnames[first:plain], *dict(() if named is None else text_entries(named))}
    shown = [f"{name}=…" if name in optional else name for name in code.co_varnames[:total]]
    rest = iter(code.co_varnames[total:])
    star = f"*{next(rest)}" if code.co_flags & inspect.CO_VARARGS else "*"
    parts = [*shown[:plain], *([star] if star != "*" or total > plain else []), *shown[plain:]]
    parts += [f"**{next(rest)}"] if code.co_flags & inspect.CO_VARKEYWORDS else []
    if code.co_posonlyargcount:
        parts.insert(code.co_posonlyargcount, "/")
    return clean_text(f"{str.__str__(value.__name__)}({', '.join(parts)})", clean, _SIGNATURE)


def _method(value: types.MethodType, clean: Clean) -> str:
    function = value.__func__
    own = _signature(function, clean) if type(function) is types.FunctionType else ""
    return f"{own} of {class_name(type(value.__self__), clean)}".strip()


def _module(value: types.ModuleType, clean: Clean) -> str:
    named = find_entry(own_fields(value) or {}, "__name__")
    return clean_text(named, clean) if type(named) is str else ""


# types whose name in a line is not that of the class
NAMES: dict[type, str] = {
    type(None): "None",
    types.FunctionType: "function",
    types.MethodType: "method",
    types.BuiltinFunctionType: "builtin function",
}
# what stands behind the name of a builtin's type, by its exact type
_NOTES: dict[type, Callable[[Any, Clean], str]] = {
    **dict.fromkeys((bytes, bytearray), _sized("byte")),
    **dict.fromkeys((list, tuple, set, frozenset, dict), _items),
    str: _sized("character"),
    range: _range,
    types.FunctionType: _signature,
    types.MethodType: _method,
    types.BuiltinFunctionType: lambda value, clean: clean_text(str.__str__(value.__name__), clean),
    types.ModuleType: _module,
}
