"""Describe variables in a line each, and show the first rows or items of those that are plain.

Why: a model that works with the user's variables should know what there is; finding out must not
change or cost anything, nor fill its window.

Rules
- No code of the described objects runs (`looks`): no property, `__repr__`, `__len__` or iteration
  of anything but exact builtins, and of the fields of tables and arrays (`frames`).
- Values of numbers and texts appear in a preview only, never in a line.
- What a text shows has passed `clean`, the caller's secret filter, before it is cut: half a key
  would not be found.
- Every text is bounded, and what is left out is counted. The same variables give the same text in
  another process: sets are sorted, or not looked into.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from .decorator import Declaration
from .frames import COLUMNS, Facts, cells, facts
from .literals import Clean, bare, literal, rounded, same, text_of
from .looks import NAME, by_type, entries, field, imported, is_a, line, module_of, offered
from .notes import KINDS, NAMES, SET, class_name, note, taken
from .variable_facts import Described, count_tokens

VARIABLES = 60
TOKENS = 2_000
_DOTS = "…"  # for a cell that is not plain
_ROWS = 20  # of a preview at most
_LABEL = 40  # characters
_TEXT = 400  # characters of a text that is a variable itself
_OURS = __name__.partition(".")[0]
_SHELL = frozenset({"In", "Out", "get_ipython", "exit", "quit"})


def describe(name: str, value: Any, clean: Clean = same) -> Described:
    """Return what is known of a variable. Never raises, runs nothing of the value's."""
    known = facts(value)
    if known is not None:
        return _table(name, value, known, clean)
    words = note(value, clean)
    if words is not None:
        return Described(name=name, kind=_kind(value), note=words)
    if is_a(value, type):
        return Described(name=name, kind=f"class {class_name(value, clean)}")
    return Described(name=name, kind=_kind(value, clean), note=_figure(value))


def preview(
    name: str, value: Any, rows: int = 3, clean: Clean = same, *, brief: bool = False
) -> str:
    """Return the first rows of a table, items of a container or characters of a text, each cell at
    most 40 characters; "" for anything else.

    `brief`: the floating-point numbers of a table are rounded (`literals.rounded`).
    """
    cut = rounded if brief else _whole
    count = max(0, min(rows, _ROWS))
    known = facts(value)
    if known is not None:
        head = [" | ".join(_label(label, clean) for label, _ in known.columns)]
        body = (
            " | ".join(bare(cut(cell), clean) or _DOTS for cell in row)
            for row in cells(value, count)
        )
        lines = [*filter(None, head), *body]
    elif type(value) is dict:
        lines = [
            f"{_item(key, clean)}: {_item(held, clean)}"
            for key, held in taken(dict.items(value), count)
        ]
    elif take := by_type(_ITEMS, value):
        lines = [_item(item, clean) for item in take(value, count)]
    else:
        lines = list(filter(None, [bare(value, clean, _TEXT)]))
    return _fitting(lines)


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
    kept = dict(entries(hidden)) if type(hidden) is dict else dict.fromkeys(hidden, _ANY)
    return {
        name: value
        for name, value in entries(namespace)
        if not name.startswith("_")
        and name not in _SHELL
        and name.isidentifier()
        and not any(kept.get(name, _NOWHERE) is gone for gone in (_ANY, value))
        and (modules or not is_a(value, types.ModuleType))
        and (_is_tool(value) or not _ours(value))
        and (imports or not imported(name, value))
    }


def listing(
    variables: Mapping[str, Any],
    first: Sequence[str] = (),
    clean: Clean = same,
    known: Mapping[str, Described] = {},
) -> str:
    """Return a line for each variable: those of `first`, then the others by name; a closing line
    counts those that are left out.

    At most `VARIABLES` lines and about `TOKENS` tokens. `known`: those that are described already.
    """
    order = [n for n in dict.fromkeys(first) if n in variables]
    order += sorted(variables.keys() - set(order), key=lambda n: (n.casefold(), n))
    shown: list[str] = []
    left = TOKENS - count_tokens(_left_out(len(order)))
    for name in order[:VARIABLES]:
        found = known.get(name) or describe(name, variables[name], clean)
        brief = msgspec.structs.replace(found, columns=(), more=0)
        text = next(
            (t for t in map(Described.as_text, (found, brief)) if count_tokens(t) <= left), ""
        )
        if not text:
            break
        shown.append(text)
        left -= count_tokens(text)
    missing = len(order) - len(shown)
    return "\n".join([*shown, *([_left_out(missing)] if missing else [])])


def _left_out(count: int) -> str:
    return f"… and {count:,} more variable{'' if count == 1 else 's'}"


def _fitting(lines: Iterable[str]) -> str:
    """Return as many of the lines as `TOKENS` allow."""
    left = TOKENS
    kept: list[str] = []
    for text in lines:
        left -= count_tokens(text)
        if left < 0:
            return "\n".join([*kept, "…"])
        kept.append(text)
    return "\n".join(kept)


def _table(name: str, value: Any, known: Facts, clean: Clean) -> Described:
    columns = tuple(
        (_label(label, clean), text_of(dtype, clean, _LABEL)) for label, dtype in known.columns
    )
    return Described(
        name=name,
        kind=_kind(value),
        shape=known.shape,
        dtype=text_of(known.dtype, clean, NAME),
        columns=columns[:COLUMNS],
        more=max(0, known.width - len(columns)),
    )


def _whole(value: Any) -> Any:
    return value


def _label(label: Any, clean: Clean) -> str:
    """Return a column's label; a tuple, as of several levels, by its parts."""
    parts = label[:KINDS] if type(label) is tuple else (label,)
    return line("/".join(bare(part, clean, _LABEL) or _DOTS for part in parts), _LABEL)


def _kind(value: Any, clean: Clean = same) -> str:
    return offered(value) or by_type(NAMES, value) or class_name(type(value), clean)


def _item(value: Any, clean: Clean) -> str:
    """Return an item of a container: a plain value as it is, anything else by its description."""
    return literal(value, clean) or describe("", value, clean).as_text().removeprefix(": ")


def _sorted(items: Iterable[Any], count: int) -> list[Any]:
    """Return the first items of a set by their text; none of a set that is large or holds more than
    plain values: its own order differs from process to process.
    """
    held = taken(items, SET + 1)
    texts = [literal(item) for item in held]
    if len(held) > SET or not all(texts):
        return []
    return [item for _, item in sorted(zip(texts, held, strict=True), key=lambda p: p[0])][:count]


_ITEMS: dict[type, Callable[[Any, int], list[Any]]] = {
    list: taken,
    tuple: taken,
    range: taken,
    set: _sorted,
    frozenset: _sorted,
}


def _figure(value: Any) -> str:
    """Return how many axes a figure of matplotlib has, if it says so."""
    axes = field(value, "_localaxes") if offered(value) == "matplotlib.figure.Figure" else None
    return f"{len(axes)} axes" if type(axes) is list else ""


def _is_tool(value: Any) -> bool:
    if type(value) is not types.FunctionType:
        return False
    return any(type(held) is Declaration for _, held in entries(value.__dict__))


def _ours(value: Any) -> bool:
    """Return whether a value is a function, a class or an object of this package."""
    named: Any = module_of(value if is_a(value, type) else type(value))
    if type(value) is types.FunctionType:
        named = value.__module__
    return type(named) is str and named.partition(".")[0] == _OURS


_ANY, _NOWHERE = object(), object()
