"""Objects that must not be asked anything: each hook of theirs counts, and then does harm.

Why: describing a variable may run none of its code. One counter proves it for all of them at once,
and what the hooks do (raise, print, sleep, write, exit, never end) would show if it were not so.

Rules: `HITS` gets a word whenever a hook runs; `hostile(folder)` makes the objects anew.
"""

from __future__ import annotations

import enum
import sys
import threading
import time
import types
import weakref
from collections import UserDict, defaultdict
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pandas as pd

HITS: list[str] = []
_METHODS = """
    __repr__ __str__ __len__ __iter__ __next__ __getitem__ __bool__ __eq__ __hash__ __lt__ __call__
    __contains__ __getattr__ __format__ __sizeof__ __dir__ __index__ __int__ __float__ __array__
    __fspath__ __reduce_ex__ __copy__ __enter__ __instancecheck__ __subclasscheck__ items keys
    values shape dtype dtypes columns head _repr_html_ _repr_mimebundle_ schema collect name
"""
_HOOKS = _METHODS.split()


def hook(word: str, harm: Any = None) -> Any:
    """Return a function that counts, does `harm` and raises."""

    def run(*_: Any, **__: Any) -> Any:
        HITS.append(word)
        if harm is not None:
            return harm()
        raise RuntimeError(word)

    return run


def hooks(*but: str) -> dict[str, Any]:
    """Return a class body in which every hook counts and raises."""
    return {name: hook(name) for name in _HOOKS if name not in but}


def trap(word: str, harm: Any = None, **body: Any) -> Any:
    """Return an object with a property, and a `__class__`, that do `harm`."""
    read = property(hook(word, harm))
    names = ("shape", "dtype", "columns", "__class__", "__doc__", "__len__", "_mgr", "_df")
    return type("Trap", (), {**dict.fromkeys(names, read), **body})()


def endless() -> str:
    """Never return."""
    while True:
        time.sleep(1)


def _metaclass() -> Any:
    body = {
        "__getattribute__": hook("metaclass __getattribute__"),
        "__eq__": hook("metaclass __eq__"),
        "__hash__": hook("metaclass __hash__"),
        "__instancecheck__": hook("metaclass __instancecheck__"),
        "__subclasscheck__": hook("metaclass __subclasscheck__"),
        "__repr__": hook("metaclass __repr__"),
        "__module__": "lies",
    }
    return type("Meta", (type,), body)


def _subclass(base: type, *args: Any) -> Any:
    body = {k: v for k, v in hooks("__hash__").items() if k not in ("name", "__getattr__")}
    lies = {name: property(hook(name)) for name in ("shape", "dtypes", "columns", "_mgr", "dtype")}
    made = type(f"My{base.__name__}", (base,), {})
    value = made(*args)
    for name, member in {**body, **lies}.items():
        setattr(made, name, member)
    return value


class Key:
    """A key of a dictionary that answers to a name and counts whoever compares it."""

    def __init__(self, name: str) -> None:
        self._hash = hash(name)

    def __hash__(self) -> int:
        return self._hash

    __eq__ = hook("key __eq__")
    __repr__ = hook("key __repr__")


class Text(str):
    """A text whose every method counts."""

    __slots__ = ()
    __str__ = __repr__ = __format__ = __len__ = __iter__ = __eq__ = hook("text")
    __hash__ = str.__hash__


def _recursive() -> list[Any]:
    inner: list[Any] = []
    inner += [inner, {"self": inner}, (inner,)]
    return inner


def _module() -> types.ModuleType:
    module = types.ModuleType("hostile_module")
    module.__getattr__ = hook("module __getattr__")  # type: ignore[method-assign]
    return module


def _lazy_module() -> types.ModuleType:
    body = {"__getattribute__": hook("lazy module"), "__getattr__": hook("lazy module")}
    return type("LazyModule", (types.ModuleType,), body)("lazy_module")


def _function() -> Any:
    def sample(first, /, second: Any = 1, *rest, third, fourth: Any = 2, **more):
        raise RuntimeError

    defaults = type("Defaults", (tuple,), {"__len__": hook("defaults"), "__bool__": hook("bool")})
    sample.__defaults__ = defaults((trap("default"),))
    sample.__kwdefaults__ = _subclass(dict, {"fourth": trap("default")})
    sample.__annotations__ = _subclass(dict, {"second": trap("annotation")})
    sample.__name__ = Text("sample")
    sample.__module__ = Text("somewhere")
    return sample


def _descriptor() -> Any:
    reads = {"__get__": hook("descriptor __get__"), "__set_name__": lambda *_: None}
    member = type("Descriptor", (), reads)()
    names = ("__dict__", "shape", "_mgr", "_localaxes", "__module__", "__name__")
    return type("Described", (), dict.fromkeys(names, member))()


def _collected(pl: Any) -> Any:
    frame = pl.LazyFrame({"a": [1, 2]})
    return frame.map_batches(hook("lazy frame"), schema={"a": pl.Int64})


def _foreign_column() -> pd.DataFrame:
    body = {name: hook(f"array {name}") for name in ("__repr__", "__str__", "__iter__")}
    array = type("Foreign", (pd.arrays.IntegerArray,), body)(
        np.array([1, 2, 3]), np.array([False, True, False])
    )
    frame = pd.DataFrame({"plain": [1, 2, 3]})
    frame["foreign"] = array
    for name in ("__len__", "__getitem__", "dtype", "shape", "_data"):
        setattr(type(array), name, property(hook(f"array {name}")))
    return frame


def _held(*values: Any) -> Any:
    """Return an array that holds the values, none of them asked what it is."""
    array = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):
        array[place] = value
    return array


def _object_cells() -> pd.DataFrame:
    cells = _held(*(type("Cell", (), hooks())() for _ in range(4)))
    frame = pd.DataFrame({"a": cells, "b": 1})
    return frame.set_axis(pd.Index(_held(Text("label"), Key("b")), dtype=object), axis=1)


def _polars_objects(pl: Any) -> Any:
    cells = [type("Cell", (), hooks("__hash__", "__bool__"))() for _ in range(3)]
    return pl.DataFrame({"held": pl.Series(cells, dtype=pl.Object), "n": [1, 2, 3]})


def _dtype_with_metadata() -> Any:
    return np.zeros(3, dtype=np.dtype("i4", metadata={"note": type("Note", (), hooks())()}))


def _enum() -> Any:
    member = enum.Enum("Level", {"A": 1}).A
    type(member).__repr__ = type(member).__str__ = hook("enum")  # type: ignore[assignment]
    return member


def hostile(folder: Path) -> dict[str, Any]:
    """Return the hostile objects by name; none of their hooks has run yet."""
    meta = _metaclass()
    target = type("Target", (), hooks())()
    locked = threading.Lock()
    locked.acquire()
    made = {
        "raising": trap("raising property"),
        "printing": trap("printing property", lambda: print("printed")),
        "sleeping": trap("sleeping property", lambda: time.sleep(60)),
        "writing": trap("writing property", lambda: (folder / "written").write_text("x")),
        "leaving": trap("exiting property", lambda: sys.exit(3)),
        "waiting": trap("waiting property", locked.acquire),
        "endless": type("Endless", (), {"__repr__": hook("endless repr", endless)})(),
        "all_hooks": type("AllHooks", (), hooks())(),
        "asked": type("Asked", (), {"__getattribute__": hook("__getattribute__")})(),
        "huge": type("Huge", (), {"__len__": hook("huge", lambda: 10**18)})(),
        "negative": type("Negative", (), {"__len__": hook("negative", lambda: -1)})(),
        "class_of_meta": type.__new__(meta, "OfMeta", (), {}),
        "of_meta": object.__new__(type.__new__(meta, "Owner", (), {})),
        "my_dict": _subclass(dict, {"a": 1}),
        "my_list": _subclass(list, [1, 2]),
        "my_text": Text("text"),
        "my_frame": _subclass(pd.DataFrame, {"a": [1]}),
        "my_array": np.zeros(3).view(type("MyArray", (np.ndarray,), {"__len__": hook("array")})),
        "zeros": np.lib.stride_tricks.as_strided(np.zeros(1), (1_250_000_000,), (0,)),
        "recursive": _recursive(),
        "keys": {Key("a"): 1, Key("b"): 2, 3: Key("c")},
        "descriptor": _descriptor(),
        "module": _module(),
        "lazy_module": _lazy_module(),
        "proxy": weakref.proxy(target, hook("proxy died", lambda: None)),
        "mock": MagicMock(),
        "function": _function(),
        "foreign_column": _foreign_column(),
        "object_cells": _object_cells(),
        "metadata": _dtype_with_metadata(),
        "level": _enum(),
        "factory": defaultdict(hook("factory"), {"a": 1}),
        "user_dict": UserDict({"a": 1}),
    }
    if find_spec("polars") is not None:  # it comes with an extra
        pl = import_module("polars")
        made |= {"lazy": _collected(pl), "polars_objects": _polars_objects(pl)}
    globals()["_kept"] = target  # the proxy's target lives on
    HITS.clear()
    return made
