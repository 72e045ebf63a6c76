"""Write plain values as short texts, and describe other builtin objects.

Plain values are None, numbers, texts, dates and times, and the scalars of NumPy and pandas. These
texts go to a model and into records, so the object must not run its own code, nor bring secrets or
much length into the text.

Rules
- Only exact types are written, since a subclass may have its own `__str__`. Annotations and
  defaults of a function are not looked at: their text would be a user's `__repr__`.
- A text passes the caller's secret filter before it is cut, with as many characters after the cut
  as a key may have: the filter would miss a key that the cut splits.
"""

from __future__ import annotations

import datetime
import inspect
import re
import types
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

from ..wire import Redactor
from .known_types import public_name
from .safe_types import (
    LONGEST_NAME,
    SAFE_ZONES,
    find_by_type,
    find_entry,
    is_exactly,
    module_space,
    one_line,
    own_fields,
    text_entries,
    type_name,
)

Clean = Callable[[str], str]  # a secret filter; `str` leaves a text as it is
MOST_PARTS = 3  # items of a container whose types are named; parts of a label that are shown
_LARGEST_SET = 1_000  # items of the largest set that is looked into
LONGEST_TEXT = 40  # characters of a text
_LONGEST_SIGNATURE = 200  # characters of a signature
# a float from `_SIX_DIGITS` to below `_WHOLE` is rounded to a whole number; Python writes a larger
# one with an exponent, and six digits of it are kept
_SIX_DIGITS, _WHOLE = 1e6, 1e16
_FLOATS = frozenset({"numpy.float16", "numpy.float32", "numpy.float64"})
_MOST_BITS = 256  # of an integer that is written; a longer one costs time and tokens
_ZERO_FRACTION = re.compile(r"\.0+\Z")  # a fraction of a second that is zero
_TIME_MARK = re.compile(r"(?<=\d)T")  # between date and time; not the letter in `NaT`


def clean_text(text: str, clean: Clean, width: int = LONGEST_TEXT) -> str:
    """Return the first `width` characters of a text on one line, without secrets."""
    head = text[: width + Redactor.LONGEST_KEY]
    return one_line(clean(head) + ("…" * (len(head) < len(text))), width)


def class_name(kind: type, clean: Clean = str) -> str:
    """Return the name of a class in at most `LONGEST_NAME` characters, without secrets."""
    return clean_text(type_name(kind), clean, LONGEST_NAME)


def write_literal(value: Any, clean: Clean = str) -> str:
    """Return a plain value as text, a string in quotes; "" for anything else."""
    name = public_name(value)
    if type(value) is str or name == "numpy.str_":
        return f"'{clean_text(str.__str__(value), clean)}'"
    write = find_by_type(_WRITERS, value) or _LIBRARY_WRITERS.get(name)
    # every other NumPy scalar (numbers, bools) has a `__str__` of NumPy's own
    is_scalar = name.startswith("numpy.") and name != "numpy.ndarray"
    if write is None and (is_scalar or _is_missing(value)):
        write = str
    try:
        return write(value) if write is not None else ""
    except ValueError:  # a time of NumPy without a unit
        return ""


def write_unquoted(value: Any, clean: Clean = str, width: int = LONGEST_TEXT) -> str:
    """Return a plain value as text, a string without quotes; "" for anything else."""
    if type(value) is str or public_name(value) == "numpy.str_":
        return clean_text(str.__str__(value), clean, width)
    return write_literal(value, clean)


def round_float(value: Any) -> Any:
    """Return a float rounded to six digits, or to a whole number from `_SIX_DIGITS` to `_WHOLE`.

    Any other value is returned unchanged.
    """
    if type(value) is not float and public_name(value) not in _FLOATS:
        return value
    number = float(value)
    to_whole = _SIX_DIGITS <= abs(number) < _WHOLE
    return float(round(number)) if to_whole else float(f"{number:.6g}")


def _is_missing(value: Any) -> bool:
    """Return whether a value is NaT or NA of pandas."""
    # their classes have no public name; both are singletons
    pandas = module_space("pandas")
    return any(name in pandas and value is pandas[name] for name in ("NaT", "NA"))


def _write_integer(value: int) -> str:
    """Return an integer as text; a very large one as its size in bits."""
    bits = value.bit_length()
    return str(value) if bits <= _MOST_BITS else f"an integer of {bits:,} bits"


def _write_time(value: Any) -> str:
    """Return a time as text, "" if its zone may run code of the user's."""
    if not is_exactly(value.tzinfo, SAFE_ZONES):
        return ""
    try:
        return str(value)
    except RuntimeError:  # of pandas, with a local year that Python does not know
        return str(value.tz_convert("UTC"))


# exact type, or public name -> the function that writes such plain values
_WRITERS: dict[type, Callable[[Any], str]] = {
    **dict.fromkeys((type(None), bool, float, complex), repr),
    **dict.fromkeys((datetime.date, datetime.timedelta), str),
    **dict.fromkeys((datetime.datetime, datetime.time), _write_time),
    int: _write_integer,
}
_LIBRARY_WRITERS: dict[str, Callable[[Any], str]] = {
    "numpy.datetime64": lambda value: _ZERO_FRACTION.sub("", _TIME_MARK.sub(" ", str(value))),
    # a missing duration becomes None
    "numpy.timedelta64": lambda v: str(v.astype("m8[us]").item()).replace("None", "NaT"),
    "pandas.Timestamp": _write_time,
    "pandas.Timedelta": str,
}


def describe_builtin(value: Any, clean: Clean = str) -> str:
    """Describe an object of an exact builtin type by its size, item types or signature; else ""."""
    describe = find_by_type(_DESCRIBERS, value)
    return describe(value, clean) if describe is not None else ""


def take_items(items: Iterable[Any], count: int) -> list[Any]:
    """Return the first `count` items of an exact builtin; [] if another thread changes it now."""
    try:
        return list(islice(items, count))
    except RuntimeError:  # its size changed during the iteration
        return []


def take_set(items: Any) -> list[Any]:
    """Return all items of a set, [] of a large one: its order differs between processes."""
    return take_items(items, _LARGEST_SET) if len(items) <= _LARGEST_SET else []


def _describe_size(word: str) -> Callable[[Any, Clean], str]:
    """Return a function that describes a value by its length, such as `3 items` for "item"."""
    return lambda value, _: f"{len(value):,} {word}{'' if len(value) == 1 else 's'}"


def _describe_items(value: Any, clean: Clean) -> str:
    """Return the length of a container and the types of its first items: `2 items (str)`."""
    kinds: Iterable[str]
    if type(value) is dict:
        pairs = [(type(key), type(item)) for key, item in take_items(dict.items(value), MOST_PARTS)]
        kinds = (f"{class_name(key, clean)}: {class_name(item, clean)}" for key, item in pairs)
    elif is_exactly(value, (list, tuple)):
        kinds = (class_name(type(item), clean) for item in take_items(value, MOST_PARTS))
    else:
        # by `id`, since hashing a class may call its metaclass
        distinct = {id(type(item)): type(item) for item in take_set(value)}.values()
        kinds = sorted({class_name(kind, clean) for kind in distinct})[:MOST_PARTS]
    inside = ", ".join(dict.fromkeys(kinds))
    size = _describe_size("item")(value, clean)
    return f"{size} ({inside})" if inside else size


def _describe_range(value: range, _: Clean) -> str:
    """Return the number of items of a range; `len` raises for one that is longer than an index."""
    try:
        return f"{len(value):,} items"
    except OverflowError:
        return "more than 2⁶⁴ items"


def _write_signature(value: types.FunctionType, clean: Clean) -> str:
    """Return name and parameters of a function, such as `f(a, b=…, *, c)`.

    `inspect.signature` would run `repr` of the defaults and evaluate annotations.
    """
    code, defaults, keyword_defaults = value.__code__, value.__defaults__, value.__kwdefaults__
    positional = code.co_argcount
    names, star, double_star = inspect.getargs(code)  # `names`: first the positional ones
    # defaults belong to the last positional parameters
    first_default = positional - (0 if defaults is None else tuple.__len__(defaults))
    optional = {
        *names[first_default:positional],
        *dict(() if keyword_defaults is None else text_entries(keyword_defaults)),
    }
    parameters = [f"{name}=…" if name in optional else name for name in names]
    if star or len(names) > positional:
        parameters.insert(positional, f"*{star or ''}")
    parameters += [f"**{double_star}"] if double_star else []
    if code.co_posonlyargcount:
        parameters.insert(code.co_posonlyargcount, "/")
    return clean_text(
        f"{str.__str__(value.__name__)}({', '.join(parameters)})", clean, _LONGEST_SIGNATURE
    )


def _describe_method(value: types.MethodType, clean: Clean) -> str:
    """Return the signature of a bound method and the class of its object."""
    function = value.__func__
    own = _write_signature(function, clean) if type(function) is types.FunctionType else ""
    return f"{own} of {class_name(type(value.__self__), clean)}".strip()


def _describe_module(value: types.ModuleType, clean: Clean) -> str:
    """Return the name that a module has in its own namespace."""
    named = find_entry(own_fields(value) or {}, "__name__")
    return clean_text(named, clean) if type(named) is str else ""


# type -> the word that a description has in place of the name of the class
WORDS: dict[type, str] = {
    type(None): "None",
    types.FunctionType: "function",
    types.MethodType: "method",
    types.BuiltinFunctionType: "builtin function",
}
# exact type -> the function that describes such objects
_DESCRIBERS: dict[type, Callable[[Any, Clean], str]] = {
    **dict.fromkeys((bytes, bytearray), _describe_size("byte")),
    **dict.fromkeys((list, tuple, set, frozenset, dict), _describe_items),
    str: _describe_size("character"),
    range: _describe_range,
    types.FunctionType: _write_signature,
    types.MethodType: _describe_method,
    types.BuiltinFunctionType: lambda value, clean: clean_text(str.__str__(value.__name__), clean),
    types.ModuleType: _describe_module,
}
