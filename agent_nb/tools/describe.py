"""Describe each variable in one line, and show the first rows or items of plain ones.

Why: a model that works with the user's variables must know which variables exist. Finding out must
change nothing, compute nothing, and not fill the model's context window.

Rules
- No code of the user's classes runs (`safe_types`): properties, `__repr__`, `__len__` and iteration
  are used only on exact builtin types and on the scalars of known libraries (`plain_values`);
  tables are read from their storage (`frames`).
- Every text passes `clean`, the caller's secret filter, before it is cut: the filter would not find
  half a key.
- The same variables give the same text in another process: sets are sorted, or not looked into.
"""

from __future__ import annotations

import types
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from .decorator import is_tool
from .frames import Table, read_table
from .known_types import public_name, read_field
from .plain_values import (
    LONGEST_TEXT,
    MOST_PARTS,
    WORDS,
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
    LONGEST_NAME,
    find_by_type,
    is_a,
    is_exactly,
    is_imported,
    module_name,
    one_line,
    text_entries,
)
from .variable_facts import VariableFacts, count_tokens

MOST_VARIABLES = 60  # in a list
MOST_TOKENS = 2_000  # of a list with the rows below it, or of a preview; about
FIRST_ROWS = 3  # first rows of a table below a list
_FRAME_TYPES = ("pandas.DataFrame", "polars.DataFrame")
_UNREADABLE = "…"  # stands for a cell that is not a plain value
_MOST_ROWS = 20  # of a preview
_LONGEST_PREVIEW = 400  # characters in the preview of a text
_PACKAGE = __name__.partition(".")[0]
# names that IPython sets in every namespace
_SHELL_NAMES = frozenset({"In", "Out", "get_ipython", "exit", "quit"})


def describe_variable(name: str, value: Any, clean: Clean = str) -> VariableFacts:
    """Return the description of a variable. Never raises, and runs no code of the value."""
    if is_a(value, type):
        return VariableFacts(name=name, kind=f"class {class_name(value, clean)}")
    table = read_table(value) or Table()
    columns = [(_write_label(label, clean), clean_text(d, clean)) for label, d in table.columns]
    return VariableFacts(
        name=name,
        kind=public_name(value) or find_by_type(WORDS, value) or class_name(type(value), clean),
        shape=table.shape,
        dtype=clean_text(table.dtype, clean, LONGEST_NAME),
        columns=tuple(columns),
        columns_left_out=table.width - len(columns),
        note=describe_builtin(value, clean) or _describe_figure(value),
    )


def preview_value(value: Any, rows: int = 3, clean: Clean = str, *, brief: bool = False) -> str:
    """Return the first rows or items of a value, one per line; "" if it is not plain.

    `rows`: the most rows of a table or items of a container, up to `_MOST_ROWS`. `brief`: the
    floats of a table are rounded (`plain_values.round_float`).
    """
    count = max(0, min(rows, _MOST_ROWS))
    table = read_table(value)

    def shown(cell: Any) -> str:
        return write_unquoted(round_float(cell) if brief else cell, clean) or _UNREADABLE

    if table is not None:
        lines = [" | ".join(map(shown, row)) for row in table.read_rows(count)]
        if table.columns:
            lines.insert(0, " | ".join(_write_label(label, clean) for label, _ in table.columns))
    elif type(value) is dict:
        pairs = take_items(dict.items(value), count)
        lines = [f"{_write_item(key, clean)}: {_write_item(item, clean)}" for key, item in pairs]
    elif is_exactly(value, (list, tuple, range)):
        lines = [_write_item(item, clean) for item in take_items(value, count)]
    elif is_exactly(value, (set, frozenset)):
        lines = [_write_item(item, clean) for item in _sort_set(value)[:count]]
    else:
        lines = [write_unquoted(value, clean, _LONGEST_PREVIEW)]
    return _fit_tokens(lines)


def user_variables(
    namespace: dict[str, Any],
    hidden: Iterable[str] = (),
    *,
    modules: bool = False,
    imports: bool = True,
) -> dict[str, Any]:
    """Return the user's variables of a namespace, in the order in which they were first set.

    `hidden`: names to leave out; a dict (IPython's `user_ns_hidden`) leaves out a name only while
    it still has the value in the dict. `modules`: include modules. `imports`: include functions and
    classes imported from modules. Of this package only functions with `@tool` count.
    """
    pairs = dict(text_entries(namespace))
    if type(hidden) is dict:
        hidden_values = dict(text_entries(hidden))
    else:
        hidden_values = {name: pairs.get(name) for name in hidden}
    return {
        name: value
        for name, value in pairs.items()
        if not name.startswith("_")
        and name not in _SHELL_NAMES
        and name.isidentifier()
        and hidden_values.get(name, ABSENT) is not value
        and (modules or not is_a(value, types.ModuleType))
        and not _is_ours(value)
        and (imports or not is_imported(name, value))
    }


def _is_ours(value: Any) -> bool:
    """Return whether a value belongs to this package; a function with `@tool` does not."""
    is_own_tool = type(value) is types.FunctionType and is_tool(value)
    return module_name(value).partition(".")[0] == _PACKAGE and not is_own_tool


def list_variables(
    variables: Mapping[str, Any],
    first: Sequence[str] = (),
    clean: Clean = str,
    known: Mapping[str, VariableFacts] = {},
    *,
    rows: bool = False,
) -> str:
    """Return a line for each variable: those of `first`, then the others by name.

    The list has at most `MOST_VARIABLES` variables and about `MOST_TOKENS` tokens; a last line
    counts the others. `first`: may name variables that do not exist. `known`: descriptions made
    before, by name. `rows`: below the list, add the first rows of as many DataFrames as fit.
    """
    wanted = [name for name in first if name in variables]
    by_name = sorted(variables, key=lambda name: (name.casefold(), name))
    order = list(dict.fromkeys([*wanted, *by_name]))
    lines: list[str] = []
    tokens_left = MOST_TOKENS - count_tokens(_left_out_line(len(order)))
    for name in order[:MOST_VARIABLES]:
        full = known.get(name) or describe_variable(name, variables[name], clean)
        # a table whose columns do not fit is listed without them
        short = msgspec.structs.replace(full, columns=(), columns_left_out=0)
        texts = map(VariableFacts.as_text, (full, short))
        if (text := next((t for t in texts if count_tokens(t) <= tokens_left), None)) is None:
            break
        lines.append(text)
        tokens_left -= count_tokens(text)
    if missing := len(order) - len(lines):
        lines.append(_left_out_line(missing))
    if not rows:
        return "\n".join(lines)
    ordered = {name: variables[name] for name in (*wanted, *sorted(variables))}
    tokens_left = MOST_TOKENS - sum(map(count_tokens, lines))
    return "\n\n".join(["\n".join(lines), *_show_first_rows(ordered, clean, tokens_left)])


def _show_first_rows(variables: Mapping[str, Any], clean: Clean, tokens_left: int) -> list[str]:
    """Return the first rows of those DataFrames that fit into `tokens_left`, each as one text."""
    frames: list[str] = []
    for name, value in variables.items():
        if public_name(value) in _FRAME_TYPES:
            preview = preview_value(value, FIRST_ROWS, clean, brief=True)
            text = f"First rows of {name}:\n{preview}"
            # 1: the empty line between frames. Where one does not fit, a smaller one still may
            cost = sum(map(count_tokens, text.splitlines())) + 1
            if cost <= tokens_left:
                frames.append(text)
                tokens_left -= cost
    return frames


def _left_out_line(count: int) -> str:
    """Return the last line of a list that leaves out `count` variables."""
    return f"… and {count:,} more variable{'' if count == 1 else 's'}"


def _fit_tokens(lines: Iterable[str]) -> str:
    """Return as many of the lines as `MOST_TOKENS` allow, with `…` below if not all."""
    tokens_left = MOST_TOKENS
    shown: list[str] = []
    for text in lines:
        tokens_left -= count_tokens(text)
        if tokens_left < 0:
            return "\n".join([*shown, "…"])
        shown.append(text)
    return "\n".join(shown)


def _write_label(label: Any, clean: Clean) -> str:
    """Return a column's label on one line; the parts of a tuple (several levels) with `/`."""
    labels = label[:MOST_PARTS] if type(label) is tuple else (label,)
    texts = (write_unquoted(each, clean) or _UNREADABLE for each in labels)
    return one_line("/".join(texts), LONGEST_TEXT)


def _write_item(value: Any, clean: Clean) -> str:
    """Return an item of a container: a plain value as a literal, any other object described."""
    text = write_literal(value, clean)
    return text or describe_variable("", value, clean).as_text().removeprefix(": ")


def _sort_set(items: Iterable[Any]) -> list[Any]:
    """Return the items of a set, sorted by their text; [] if it is large or not all are plain."""
    known = take_set(items)
    return sorted(known, key=write_literal) if all(map(write_literal, known)) else []


def _describe_figure(value: Any) -> str:
    """Return how many axes a figure of matplotlib has; "" for any other object."""
    axes = read_field(value, "_localaxes")
    return f"{len(axes)} axes" if type(axes) is list else ""
