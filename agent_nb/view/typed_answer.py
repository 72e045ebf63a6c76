"""A typed answer as nodes: rows as a table, an object as fields and values, a scalar as it is.

Why: people read JSON better as a table. The answer may have a million rows, so tables are bounded.

Rules
- Only the text of an answer that its event marks as typed comes here; other text is never parsed.
- Tables and cells are bounded (`ROWS`, `COLUMNS`, `CELL`). A table says how much is left out; a cut
  cell ends with an ellipsis.
- Only the answer and its fields become tables; deeper values are JSON in a cell, or a tree.
"""

from __future__ import annotations

from typing import Any

from ..events import order_fields
from ..wire import lenient_loads
from .format import clip_text, count_noun, text_row
from .nodes import Code, Json, Node, Prose, Row, T, Table
from .state.text import Text
from .values import CELL, bounded, cell

ROWS, COLUMNS = 50, 12  # of a table; of an object, so many small and so many large fields
LONGEST = 2_000_000  # characters of JSON that is read for a table
NOTHING = "–"  # null
# how to get the items that a table leaves out
WHOLE = ": output_frame() has them all"


def nodes(text: str, name: str, order: tuple[str, ...] = ()) -> tuple[Node, ...]:
    """Return the nodes of an answer: `text` is JSON of the type `name` with fields in `order`.

    Text that is not JSON, or too long, is shown as code.
    """
    if len(text) > LONGEST:
        return (code(text),)
    try:
        value = lenient_loads(text)
        return (_caption(name, value), *_draw_value(order_fields(value, order)))
    except (ValueError, RecursionError):  # a record that was changed or cut
        return (code(text),)


def code(text: str) -> Node:
    """Return text as JSON code: an answer that is still being written, or that is not valid."""
    return Code(bounded(text), "json")


def _caption(name: str, value: Any) -> Row:
    size = ""
    if isinstance(value, list):
        size = f"  {count_noun(len(value), 'row' if _are_objects(value) else 'item')}"
    return Row((T(clip_text(name, 60), tone="muted", mono=True), T(size, tone="muted")))


def _draw_value(value: Any) -> tuple[Node, ...]:
    if isinstance(value, dict):
        return _draw_object(value)
    if isinstance(value, list):
        return (_draw_table(value, WHOLE),) if value else (text_row("No items."),)
    if isinstance(value, str):
        return (Prose(Text(bounded(value))),) if value.strip() else (text_row("An empty text."),)
    return (Row((T(_draw_cell(value), bold=True, mono=True),)),)


def _draw_object(value: dict[str, Any]) -> tuple[Node, ...]:
    """Return an object: its plain fields as one table, then each larger field below its name."""
    if not value:
        return (text_row("No fields."),)
    large = {k: v for k, v in value.items() if _needs_room(v)}
    small = {k: v for k, v in value.items() if k not in large}
    rows = tuple((clip_text(str(k), CELL), _draw_cell(v)) for k, v in list(small.items())[:ROWS])
    left_out = len(small) - len(rows)
    note = f"{count_noun(left_out, 'more field')}" if left_out > 0 else ""
    table = (Table(("field", "value"), rows, note),) if rows else ()
    below = [
        node
        for k, v in list(large.items())[:COLUMNS]
        for node in (
            Row((T(clip_text(str(k), CELL), bold=True, mono=True),)),
            _draw_table(v) if isinstance(v, list) else Json(v),
        )
    ]
    left_out_large = len(large) - COLUMNS
    if left_out_large > 0:
        below.append(text_row(f"… {count_noun(left_out_large, 'more field')}"))
    return (*table, *below)


def _needs_room(value: Any) -> bool:
    """Return whether a field needs more room than a cell: a list of objects, or long JSON."""
    return isinstance(value, dict | list) and (
        _are_objects(value) or len(_draw_cell(value)) >= CELL // 2
    )


def _draw_table(value: list[Any], whole: str = "") -> Table:
    """Return a list as a table, one row for each item; `whole`: see `WHOLE`."""
    shown_rows = value[:ROWS]
    left_out = [count_noun(len(value) - ROWS, "more row")] if len(value) > ROWS else []
    if not _are_objects(value):
        return Table(
            ("value",), tuple((_draw_cell(v),) for v in shown_rows), _note(left_out, whole)
        )

    names = list(dict.fromkeys(str(key) for row in shown_rows for key in row))
    left_out += [count_noun(len(names) - COLUMNS, "more column")] if len(names) > COLUMNS else []
    columns = names[:COLUMNS]
    rows = tuple(
        tuple(_draw_cell(row[c]) if c in row else "" for c in columns) for row in shown_rows
    )
    figures = tuple(
        n for n, c in enumerate(columns) if _are_numbers([row.get(c) for row in shown_rows])
    )
    return Table(
        tuple(clip_text(c, CELL) for c in columns), rows, _note(left_out, whole), figures=figures
    )


def _note(left_out: list[str], whole: str) -> str:
    return ", ".join(left_out) + (whole if left_out else "")


def _are_numbers(values: list[Any]) -> bool:
    """Return whether a column holds numbers, besides empty cells."""
    full = [v for v in values if v is not None]
    return bool(full) and all(isinstance(v, int | float) and not isinstance(v, bool) for v in full)


def _are_objects(value: Any) -> bool:
    """Return whether a value is a list of objects, none of them empty."""
    return isinstance(value, list) and bool(value) and all(isinstance(v, dict) and v for v in value)


def _draw_cell(value: Any) -> str:
    return NOTHING if value is None else cell(value)
