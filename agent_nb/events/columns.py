"""The columns of the DataFrames, as lists that can be sliced and extended.

    run.to_frame()                                  EVENTS, one row per event
    run.to_frame(CALLS)                             one row per tool call; TURNS and RUNS likewise
    run.to_frame("all")                             every column of events; "all calls", …
    run.to_frame(["ts", "type", "text"])            by name
    run.to_frame([*CALLS, "args"])
    run.to_frame([*EVENTS, Column("n", "int", {Respond: lambda e: len(e.content)})])
    for column in CALLS: print(column.name, column.doc)

The lists stand apart from `frame`, so that the command line can print tables without pandas.

Rules
- The short lists (EVENTS, CALLS, TURNS, RUNS) hold only what every library accepts: no timedeltas,
  no nested values, no local times.
- A name has the same kind and unit in every list.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..errors import UsageError, did_you_mean, unknown_name
from .column_type import Column, Getter, Table
from .event_columns import EVENT_COLUMNS, PLACE_COLUMNS
from .rows import CallRow, RunRow, TurnRow

__all__ = ["CALLS", "EVENTS", "PRESETS", "RUNS", "TURNS", "Column", "choose_columns"]


def _table(table: Table, row: type, *columns: tuple[Any, ...]) -> tuple[Column, ...]:
    """Return the columns of a table from tuples (name, kind, doc[, getter of the row])."""
    return tuple(
        # without a fourth item, the column has the name of an attribute
        Column(name, kind, {row: (*getter, name)[0]}, table, doc=doc)
        for name, kind, doc, *getter in columns
    )


def _usage(field: str) -> Getter:
    """Return a getter of one field of a row's usage, None while the usage is unknown."""
    return lambda row: None if row.usage is None else getattr(row.usage, field)


_ROW_PLACES = tuple((c.name, c.kind, c.doc) for c in PLACE_COLUMNS)
_USAGE = (
    ("tokens_in", "int", "Tokens of the requests, cached ones included.", _usage("input")),
    ("tokens_out", "int", "Tokens that the model wrote.", _usage("output")),
    ("cost", "float", "US dollars, where the price is known.", _usage("cost")),
)
_CALLS = _table(
    "calls",
    CallRow,
    ("turn", "count", "The model turn that made the call, from 1."),
    ("name", "category", "The tool."),
    ("status", "category", "How it ended: ok, error, denied, cancelled, timeout; missing while it runs."),
    ("arguments", "json", "The arguments, as approved, as JSON.", "args"),
    ("text", "text", "What the model read of the result."),
    ("seconds", "float", "Seconds from the first event of the run to the call."),
    ("duration_s", "float", "How long it ran, in seconds.", "duration"),
    ("waited_s", "float", "How long it waited before it ran, in seconds.", "waited"),
    ("decision", "category", "The decision of a user or policy; missing if none was needed."),
    ("by", "category", "Who or what decided."),
    ("progress", "count", "How often it reported progress."),
    ("model", "category", "The model that made the call."),
    ("seq", "count", "The number of the call's event in its run, from 1."),
    ("call_id", "text", "The id of the call."),
    *_ROW_PLACES,
    ("ts", "time", "When the call was made, UTC."),
    ("duration", "duration", "How long it ran."),
    ("waited", "duration", "How long it waited before it ran."),
    ("args", "object", "The arguments, as approved, nested."),
    ("content", "object", "The result, nested."),
    ("display", "object", "What was shown of the result: a mime bundle."),
    ("attachments", "object", "What the result shows: pictures in base64, charts and tables."),
)  # fmt: skip
_TURNS = _table(
    "turns",
    TurnRow,
    ("turn", "count", "The model turn, from 1."),
    ("text", "text", "The answer."),
    ("seconds", "float", "Seconds from the first event of the run to the first of the turn."),
    ("duration_s", "float", "From the first event of the turn to its last, in seconds.", "duration"),
    ("ttft_s", "float", "Seconds to the first token.", _usage("ttft")),
    ("requests", "count", "Requests to the model, repeated ones included."),
    ("calls", "count", "Tool calls."),
    ("failed", "count", "Calls that did not end ok."),
    *_USAGE,
    ("thought", "text", "The thoughts."),
    ("model", "category", "The model."),
    *_ROW_PLACES,
    ("ts", "time", "When it began, UTC."),
    ("duration", "duration", "From the first event of the turn to its last."),
    ("ttft", "duration", "Time to the first token.", _usage("ttft")),
    ("tokens_cached", "int", "How many of tokens_in were read from a cache.", _usage("cached")),
    ("tokens_cache_written", "int", "How many of tokens_in were written to a cache.", _usage("cache_written")),
    ("tokens_reasoning", "int", "How many of tokens_out were thoughts.", _usage("reasoning")),
    ("estimated", "bool", "Whether the tokens are an estimate."),
)  # fmt: skip
_RUNS = _table(
    "runs",
    RunRow,
    ("prompt", "text", "What the user asked."),
    ("answer", "text", "The answer."),
    ("status", "category", "How it ended: ok, error, interrupted, limit, awaiting; running without an end."),
    ("model", "category", "The model."),
    ("ts", "time", "When it began, UTC."),
    ("duration_s", "float", "From the first event to the last, in seconds.", "duration"),
    ("turns", "count", "Model turns."),
    ("calls", "count", "Tool calls."),
    ("failed", "count", "Calls that did not end ok."),
    ("errors", "count", "Errors in the log."),
    *_USAGE,
    *_ROW_PLACES,
    ("duration", "duration", "From the first event to the last."),
    ("dialect", "category", "How the model wrote its turns."),
    ("events", "count", "Events in the log."),
    ("tools", "object", "The names of the tools, nested."),
    ("settings", "object", "The settings, nested."),
)  # fmt: skip


def _short(columns: tuple[Column, ...]) -> tuple[Column, ...]:
    """Return the short list of a table: its columns up to the run's id."""
    return columns[: [c.name for c in columns].index("run") + 1]


# in the order of the lists below
_KNOWN: dict[str, tuple[Column, ...]] = {
    "events": EVENT_COLUMNS,
    "calls": _CALLS,
    "turns": _TURNS,
    "runs": _RUNS,
}
EVENTS, CALLS, TURNS, RUNS = map(_short, _KNOWN.values())
PRESETS: dict[str, tuple[Column, ...]] = {
    "events": EVENTS, "calls": CALLS, "turns": TURNS, "runs": RUNS,
    "all": EVENT_COLUMNS, "all calls": _CALLS, "all turns": _TURNS, "all runs": _RUNS,
}  # fmt: skip


def choose_columns(columns: Iterable[str | Column] | str | None) -> tuple[Column, ...]:
    """Return the columns for None (EVENTS), a preset's name, or a list of names and Columns.

    The names are of the table of the list's Columns; without any Column, of events. Raises
    UsageError for an unknown name, and for columns of different tables in one list.
    """
    if columns is None:
        return EVENTS
    if isinstance(columns, str):
        if columns not in PRESETS:
            raise UsageError(
                f"Unknown list of columns {columns!r}. Known: {', '.join(PRESETS)}; or give a list."
            )
        return PRESETS[columns]
    chosen = list(columns)
    tables = {c.table for c in chosen if isinstance(c, Column)} or {"events"}
    if len(tables) > 1:
        raise UsageError(
            f"Columns of different tables ({', '.join(sorted(tables))}) do not go into one frame."
        )
    (table,) = tables
    return tuple(c if isinstance(c, Column) else _find_column(c, table) for c in chosen)


def _find_column(name: str, table: str) -> Column:
    column_of = {c.name: c for c in _KNOWN[table]}
    if name in column_of:
        return column_of[name]
    hint = did_you_mean(str(name), column_of)
    raise UsageError(unknown_name("column", name, column_of, hint=hint, label="Columns"))
