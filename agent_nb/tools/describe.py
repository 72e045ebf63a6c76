"""Describe variables in a line each, and show the first rows or items of those that are plain.

Why: a model that works with the user's variables should know what there is; finding out must not
change or cost anything, nor fill its window.

Rules
- No code of the described objects runs (`safe_types`): no property, `__repr__`, `__len__` or
  iteration of anything but exact builtins, and of the fields of tables and arrays (`frames`).
- Values of numbers and texts appear in a preview only, never in a line.
- What a text shows has passed `clean`, the caller's secret filter, before it is cut: half a key
  would not be found.
- Every text is bounded, and what is left out is counted. The same variables give the same text in
  another process: sets are sorted, or not looked into.
"""

from __future__ import annotations

import types
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from .decorator import is_tool
from .frames import Table, read_table
from .plain_values import (
    KINDS,
    NAMES,
    WIDTH,
    Clean,
    class_name,
    clean_text,
    describe_builtin,
    round_float,
    take_items,
    take_set,
    write_literal,
    write_unquoted,
)
from .safe_types import (
    ABSENT,
    NAME,
    find_by_type,
    is_a,
    is_exactly,
    is_imported,
    module_name,
    one_line,
    public_name,
    read_field,
    text_entries,
)
from .variable_facts import Described, count_tokens

VARIABLES = 60  # lines of a list at most
TOKENS = 2_000  # of a list or a preview, about
_DOTS = "…"  # for a cell that is not plain
_ROWS = 20  # of a preview at most
_TEXT = 400  # characters of a text that is a variable itself
_OURS = __name__.partition(".")[0]
# what IPython puts into a namespace
_SHELL = frozenset({"In", "Out", "get_ipython", "exit", "quit"})


def describe_variable(name: str, value: Any, clean: Clean = str) -> Described:
    """Return what is known of a variable. Never raises, runs nothing of the value's."""
    if is_a(value, type):
        return Described(name=name, kind=f"class {class_name(value, clean)}")
    table = read_table(value) or Table()
    columns = tuple((_label(label, clean), clean_text(d, clean)) for label, d in table.columns)
    return Described(
        name=name,
        kind=public_name(value) or find_by_type(NAMES, value) or class_name(type(value), clean),
        shape=table.shape,
        dtype=clean_text(table.dtype, clean, NAME),
        columns=columns,
        more=table.width - len(columns),
        note=describe_builtin(value, clean) or _figure(value),
    )


def preview_value(
    name: str, value: Any, rows: int = 3, clean: Clean = str, *, brief: bool = False
) -> str:
    """Return the first rows of a table, items of a container or characters of a text, each cell at
    most 40 characters; "" for anything else.

    `brief`: the floating-point numbers of a table are rounded (`plain_values.round_float`).
    """
    count = max(0, min(rows, _ROWS))
    table = read_table(value)

    def shown(cell: Any) -> str:
        return write_unquoted(round_float(cell) if brief else cell, clean) or _DOTS

    if table is not None:
        lines = [" | ".join(map(shown, row)) for row in table.rows(count)]
        if table.columns:
            lines.insert(0, " | ".join(_label(label, clean) for label, _ in table.columns))
    elif type(value) is dict:
        pairs = take_items(dict.items(value), count)
        lines = [f"{_item(key, clean)}: {_item(held, clean)}" for key, held in pairs]
    elif is_exactly(value, (list, tuple, range)):
        lines = [_item(item, clean) for item in take_items(value, count)]
    elif is_exactly(value, (set, frozenset)):
        lines = [_item(item, clean) for item in _sorted(value)[:count]]
    else:
        lines = [write_unquoted(value, clean, _TEXT)]
    return _fit_tokens(lines)


def user_variables(
    namespace: dict[str, Any],
    hidden: Iterable[str] = (),
    *,
    modules: bool = False,
    imports: bool = True,
) -> dict[str, Any]:
    """Return the variables of a namespace that are the user's, in the order in which they were
    first set.

    `hidden`: names to leave out; of a dict (IPython's `user_ns_hidden`) only those that still have
    the value it names. `modules` and `imports` (functions and classes of modules) may be left out.
    Objects of this package count only if they are tools made of functions.
    """
    pairs = dict(text_entries(namespace))
    dropped = (
        dict(text_entries(hidden)) if type(hidden) is dict else {n: pairs.get(n) for n in hidden}
    )
    return {
        name: value
        for name, value in pairs.items()
        if not name.startswith("_")
        and name not in _SHELL
        and name.isidentifier()
        and dropped.get(name, ABSENT) is not value
        and (modules or not is_a(value, types.ModuleType))
        and (
            module_name(value).partition(".")[0] != _OURS
            or (type(value) is types.FunctionType and is_tool(value))
        )
        and (imports or not is_imported(name, value))
    }


def list_variables(
    variables: Mapping[str, Any],
    first: Sequence[str] = (),
    clean: Clean = str,
    known: Mapping[str, Described] = {},
) -> str:
    """Return a line for each variable: those of `first`, then the others by name; a closing line
    counts those that are left out.

    At most `VARIABLES` lines and about `TOKENS` tokens. `known`: those that are described already.
    """
    by_name = sorted(variables, key=lambda name: (name.casefold(), name))
    order = list(dict.fromkeys([*(name for name in first if name in variables), *by_name]))
    shown: list[str] = []
    left = TOKENS - count_tokens(_left_out(len(order)))
    for name in order[:VARIABLES]:
        whole = known.get(name) or describe_variable(name, variables[name], clean)
        short = msgspec.structs.replace(whole, columns=(), more=0)
        text = next(
            (t for t in map(Described.as_text, (whole, short)) if count_tokens(t) <= left), ""
        )
        if not text:
            break
        shown.append(text)
        left -= count_tokens(text)
    missing = len(order) - len(shown)
    return "\n".join([*shown, *([_left_out(missing)] if missing else [])])


def _left_out(count: int) -> str:
    return f"… and {count:,} more variable{'' if count == 1 else 's'}"


def _fit_tokens(lines: Iterable[str]) -> str:
    """Return as many of the lines as `TOKENS` allow."""
    left = TOKENS
    shown: list[str] = []
    for text in lines:
        left -= count_tokens(text)
        if left < 0:
            return "\n".join([*shown, "…"])
        shown.append(text)
    return "\n".join(shown)


def _label(label: Any, clean: Clean) -> str:
    """Return a column's label; a tuple, as of several levels, by its parts."""
    parts = label[:KINDS] if type(label) is tuple else (label,)
    return one_line("/".join(write_unquoted(part, clean) or _DOTS for part in parts), WIDTH)


def _item(value: Any, clean: Clean) -> str:
    """Return an item of a container: a plain value as it is, anything else by its description."""
    return write_literal(value, clean) or describe_variable(
        "", value, clean
    ).as_text().removeprefix(": ")


def _sorted(items: Iterable[Any]) -> list[Any]:
    """Return the items of a set by their text, none if it is large or not all are plain values."""
    known = take_set(items)
    return sorted(known, key=write_literal) if all(map(write_literal, known)) else []


def _figure(value: Any) -> str:
    """Return how many axes a figure of matplotlib has, if it says so."""
    axes = read_field(value, "_localaxes")
    return f"{len(axes)} axes" if type(axes) is list else ""
