"""What can be said of a builtin object in a few words: sizes, item types, signatures.

Rules
- Only exact builtins are looked into; the functions here may rely on it.
- A function is read from its code object. Annotations and defaults are not looked at, for their
  text would be somebody's `__repr__`.
- Sets are looked into whole or not at all: their order differs from process to process.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

from .looks import by_type, entries, field, line, type_name

KINDS = 3  # items of a container whose types are named
SET = 1_000  # items of the largest set that is looked into
_LABEL = 40  # characters
_SIGNATURE = 200
_STARS = (("*", 0x04), ("**", 0x08))  # and the flags of code that takes them


def note(value: Any) -> str | None:
    """Return what can be said of an exact builtin, None of anything else."""
    write = by_type(_NOTES, value)
    return write(value) if write is not None else None


def taken(items: Iterable[Any], count: int) -> list[Any]:
    """Return the first items of an exact builtin; none if another thread changes it meanwhile."""
    try:
        return list(islice(items, count))
    except RuntimeError:
        return []


def _sized(word: str) -> Callable[[Any], str]:
    return lambda value: f"{len(value):,} {word}{'' if len(value) == 1 else 's'}"


def _sequence(value: Any) -> str:
    kinds = dict.fromkeys(type_name(type(item)) for item in taken(value, KINDS))
    return _with(_sized("item")(value), kinds)


def _set(value: Any) -> str:
    small = len(value) <= SET
    kinds = sorted({type_name(type(i)) for i in taken(value, SET)}) if small else ()
    return _with(_sized("item")(value), list(kinds)[:KINDS])


def _dict(value: Any) -> str:
    pairs = ((type(k), type(v)) for k, v in taken(dict.items(value), KINDS))
    return _with(
        _sized("item")(value),
        dict.fromkeys(f"{type_name(k)}: {type_name(v)}" for k, v in pairs),
    )


def _with(size: str, kinds: Iterable[str]) -> str:
    inside = ", ".join(kinds)
    return f"{size} ({inside})" if inside else size


def _range(value: range) -> str:
    count = max(
        0, (value.stop - value.start + value.step - (1 if value.step > 0 else -1)) // value.step
    )
    return f"{count:,} items" if count.bit_length() < 64 else "more than 2⁶⁴ items"


def _signature(value: types.FunctionType) -> str:
    """Return name and parameters, read from the code; annotations and defaults are not looked
    at.
    """
    code = value.__code__
    plain, named = code.co_argcount, code.co_kwonlyargcount
    names = code.co_varnames
    optional = {*names[plain - tuple.__len__(_or(value.__defaults__, ())) : plain]}
    optional |= {k for k, _ in entries(_or(value.__kwdefaults__, {}))}
    shown = [f"{n}=…" if n in optional else n for n in names[: plain + named]]
    rest = iter(names[plain + named :])
    stars = {star: f"{star}{next(rest)}" for star, flag in _STARS if code.co_flags & flag}
    if code.co_posonlyargcount:
        shown.insert(code.co_posonlyargcount, "/")
        plain += 1
    middle = stars.get("*") or ("*" if named else "")
    parts = [*shown[:plain], middle, *shown[plain:], stars.get("**", "")]
    return line(f"{str.__str__(value.__name__)}({', '.join(filter(None, parts))})", _SIGNATURE)


def _or(value: Any, default: Any) -> Any:
    """Return `value` unless it is None; its truth may be code of a subclass."""
    return default if value is None else value


def _method(value: types.MethodType) -> str:
    function = value.__func__
    own = _signature(function) if type(function) is types.FunctionType else ""
    return f"{own} of {type_name(type(value.__self__))}".strip()


def _module(value: types.ModuleType) -> str:
    named = field(value, "__name__")
    return line(named, _LABEL) if type(named) is str else ""


NAMES: dict[type, str] = {
    type(None): "None",
    types.FunctionType: "function",
    types.MethodType: "method",
    types.BuiltinFunctionType: "builtin function",
}
_NOTES: dict[type, Callable[[Any], str]] = {
    **dict.fromkeys((bool, int, float, complex, type(None)), lambda _: ""),
    str: _sized("character"),
    bytes: _sized("byte"),
    bytearray: _sized("byte"),
    list: _sequence,
    tuple: _sequence,
    set: _set,
    frozenset: _set,
    dict: _dict,
    range: _range,
    types.FunctionType: _signature,
    types.MethodType: _method,
    types.BuiltinFunctionType: lambda value: line(str.__str__(value.__name__), _LABEL),
    types.ModuleType: _module,
}
