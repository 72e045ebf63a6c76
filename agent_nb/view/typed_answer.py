"""A typed answer as nodes: rows as a table, an object as fields and values, a scalar as it is.

Why: people read JSON better as a table. The answer may have a million rows, so tables and cells are
bounded, and say what they leave out.

Rule: only the text of an answer that its event marks as typed comes here; other text is never
parsed.
"""

from __future__ import annotations

from typing import Any

from ..events import order_fields
from ..wire import lenient_loads
from .format import clip_text, count_noun, text_row
from .nodes import Code, Json, Node, Prose, Row, T, Table
from .state.text import Text
from .values import LONGEST_CELL, are_objects, bound_text, format_cell

MOST_ROWS = 50  # of a table; an object has one row for each of its small fields
MOST_COLUMNS = 12  # of a table; also the most large fields of an object
LONGEST = 2_000_000  # characters of JSON that is read for a table
NOTHING = "–"  # null
WHOLE_ADVICE = ": output_frame() has them all"  # for an answer of which a table leaves out a part


def answer_nodes(text: str, name: str, order: tuple[str, ...] = ()) -> tuple[Node, ...]:
    """Return the nodes of an answer: `text` is JSON of the type `name` with fields in `order`.

    Text that is not JSON, or too long, is shown as code.
    """
    if len(text) > LONGEST:
        return (json_code(text),)
    try:
        value = lenient_loads(text)
        return (_caption(name, value), *_draw_value(order_fields(value, order)))
    except (ValueError, RecursionError):  # a record that was changed or cut
        return (json_code(text),)


def json_code(text: str) -> Node:
    """Return text as JSON code: an answer that is still being written, or that is not valid."""
    return Code(bound_text(text), "json")


def _caption(name: str, value: Any) -> Row:
    size = ""
    if isinstance(value, list):
        size = f"  {count_noun(len(value), 'row' if are_objects(value) else 'item')}"
    return Row((T(clip_text(name, 60), tone="muted", mono=True), T(size, tone="muted")))


def _draw_value(value: Any) -> tuple[Node, ...]:
    if isinstance(value, dict):
        return _draw_object(value)
    if isinstance(value, list):
        return (_draw_table(value, WHOLE_ADVICE),) if value else (text_row("No items."),)
    if isinstance(value, str):
        return (Prose(Text(bound_text(value))),) if value.strip() else (text_row("An empty text."),)
    return (Row((T(_draw_cell(value), bold=True, mono=True),)),)


def _draw_object(value: dict[str, Any]) -> tuple[Node, ...]:
    """Return the nodes of an object: its small fields as a table, each large one under its name."""
    if not value:
        return (text_row("No fields."),)
    large = {k: v for k, v in value.items() if _needs_room(v)}
    small = {k: v for k, v in value.items() if k not in large}
    shown = list(small.items())[:MOST_ROWS]
    rows = tuple((clip_text(str(k), LONGEST_CELL), _draw_cell(v)) for k, v in shown)
    out: list[Node] = []
    if rows:
        more = _count_more(len(small) - MOST_ROWS, "field")
        out.append(Table(("field", "value"), rows, more))
    for name, item in list(large.items())[:MOST_COLUMNS]:
        out.append(Row((T(clip_text(str(name), LONGEST_CELL), bold=True, mono=True),)))
        out.append(_draw_table(item) if isinstance(item, list) else Json(item))
    if more := _count_more(len(large) - MOST_COLUMNS, "field"):
        out.append(text_row(f"… {more}"))
    return tuple(out)


def _needs_room(value: Any) -> bool:
    """Return whether a field needs more room than a cell: a list of objects, or long JSON."""
    return isinstance(value, dict | list) and (
        are_objects(value) or len(_draw_cell(value)) >= LONGEST_CELL // 2
    )


def _draw_table(value: list[Any], advice: str = "") -> Table:
    """Return a list as a table, one row for each item; `advice` follows what it leaves out."""
    shown_rows = value[:MOST_ROWS]
    more_rows = _count_more(len(value) - MOST_ROWS, "row")
    if not are_objects(value):
        cells = tuple((_draw_cell(v),) for v in shown_rows)
        return Table(("value",), cells, f"{more_rows}{advice}" if more_rows else "")
    names = list(dict.fromkeys(str(key) for row in shown_rows for key in row))
    columns = names[:MOST_COLUMNS]
    more_columns = _count_more(len(names) - MOST_COLUMNS, "column")
    left_out = ", ".join(filter(None, (more_rows, more_columns)))
    rows = tuple(
        tuple(_draw_cell(row[c]) if c in row else "" for c in columns) for row in shown_rows
    )
    numeric_columns = tuple(
        n for n, c in enumerate(columns) if _are_numbers([row.get(c) for row in shown_rows])
    )
    header = tuple(clip_text(c, LONGEST_CELL) for c in columns)
    note = f"{left_out}{advice}" if left_out else ""
    return Table(header, rows, note, figures=numeric_columns)


def _count_more(number: int, noun: str) -> str:
    """Return how many rows, columns or fields are left out, "" if none are."""
    return count_noun(number, f"more {noun}") if number > 0 else ""


def _are_numbers(values: list[Any]) -> bool:
    """Return whether a column holds numbers, besides empty cells."""
    full = [v for v in values if v is not None]
    return bool(full) and all(isinstance(v, int | float) and not isinstance(v, bool) for v in full)


def _draw_cell(value: Any) -> str:
    return NOTHING if value is None else format_cell(value)
