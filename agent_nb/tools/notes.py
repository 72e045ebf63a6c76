"""What can be said of a builtin object in a few words: sizes, item types, signatures.

Rules
- Only exact builtins are looked into; the functions here may rely on it.
- A function is read from its code object. Annotations and defaults are not looked at, for their
  text would be somebody's `__repr__`.
- Names pass the caller's secret filter before they are cut.
- Sets are looked into whole or not at all: their order differs from process to process.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

from .literals import Clean, same, text_of
from .looks import NAME, by_type, entries, field, type_name

KINDS = 3  # items of a container whose types are named
SET = 1_000  # items of the largest set that is looked into
_LABEL = 40  # characters
_SIGNATURE = 200
_STARS = (("*", 0x04), ("**", 0x08))  # and the flags of code that takes them


def note(value: Any, clean: Clean = same) -> str | None:
    """Return what can be said of an exact builtin, None of anything else."""
    write = by_type(_NOTES, value)
    return write(value, clean) if write is not None else None


def taken(items: Iterable[Any], count: int) -> list[Any]:
    """Return the first items of an exact builtin; none if another thread changes it meanwhile."""
    try:
        return list(islice(items, count))
    except RuntimeError:
        return []


def class_name(kind: type, clean: Clean = same) -> str:
    """Return the name of a class without secrets, cut."""
    return text_of(type_name(kind), clean, NAME)


def _sized(word: str) -> Callable[[Any, Clean], str]:
    return lambda value, _: f"{len(value):,} {word}{'' if len(value) == 1 else 's'}"


def _sequence(value: Any, clean: Clean) -> str:
    kinds = dict.fromkeys(class_name(type(item), clean) for item in taken(value, KINDS))
    return _with(_sized("item")(value, clean), kinds)


def _set(value: Any, clean: Clean) -> str:
    small = len(value) <= SET
    kinds = sorted({class_name(kind, clean) for kind in _kinds(value)}) if small else ()
    return _with(_sized("item")(value, clean), list(kinds)[:KINDS])


def _kinds(value: Any) -> list[type]:
    """Return the types of the items of a set, each once; a type is known by its identity."""
    return list({id(type(item)): type(item) for item in taken(value, SET)}.values())


def _dict(value: Any, clean: Clean) -> str:
    pairs = ((type(k), type(v)) for k, v in taken(dict.items(value), KINDS))
    return _with(
        _sized("item")(value, clean),
        dict.fromkeys(f"{class_name(k, clean)}: {class_name(v, clean)}" for k, v in pairs),
    )


def _with(size: str, kinds: Iterable[str]) -> str:
    inside = ", ".join(kinds)
    return f"{size} ({inside})" if inside else size


def _range(value: range, _: Clean) -> str:
    count = max(
        0, (value.stop - value.start + value.step - (1 if value.step > 0 else -1)) // value.step
    )
    return f"{count:,} items" if count.bit_length() < 64 else "more than 2⁶⁴ items"


def _signature(value: types.FunctionType, clean: Clean) -> str:
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
    text = f"{str.__str__(value.__name__)}({', '.join(filter(None, parts))})"
    return text_of(text, clean, _SIGNATURE)


def _or(value: Any, default: Any) -> Any:
    """Return `value` unless it is None; its truth may be code of a subclass."""
    return default if value is None else value


def _method(value: types.MethodType, clean: Clean) -> str:
    function = value.__func__
    own = _signature(function, clean) if type(function) is types.FunctionType else ""
    return f"{own} of {class_name(type(value.__self__), clean)}".strip()


def _module(value: types.ModuleType, clean: Clean) -> str:
    named = field(value, "__name__")
    return text_of(named, clean, _LABEL) if type(named) is str else ""


def _builtin(value: types.BuiltinFunctionType, clean: Clean) -> str:
    return text_of(str.__str__(value.__name__), clean, _LABEL)


NAMES: dict[type, str] = {
    type(None): "None",
    types.FunctionType: "function",
    types.MethodType: "method",
    types.BuiltinFunctionType: "builtin function",
}
_NOTES: dict[type, Callable[[Any, Clean], str]] = {
    **dict.fromkeys((bool, int, float, complex, type(None)), lambda _value, _clean: ""),
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
    types.BuiltinFunctionType: _builtin,
    types.ModuleType: _module,
}
