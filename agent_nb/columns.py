"""The columns of the DataFrames, as data: what a frame shows is a list that can be sliced, extended and written by hand.

    run.to_frame()                                  EVENTS, one row per event
    run.to_frame(CALLS)                             one row per tool call; TURNS and RUNS likewise
    run.to_frame(["ts", "type", "text"])            by name
    run.to_frame([*EVENTS, Column("n", "int", {Respond: lambda e: len(e.content)})])

Why apart from `frame`: these lists need no pandas, and the command line prints tables from them.

Rules
- A column has a name, a kind and, per type of row, where its value comes from: an attribute's name or a function.
- A row of a type that a column does not name has no value there. The rows of one frame are of one table.
- `tokens_in` is every token of the requests, those read from a cache or written to it included, for every provider; `tokens_cached` says
  how many were read from a cache, `tokens_reasoning` how many of `tokens_out` were thoughts.
- Getters look only at the row; what needs more (`dt`, `cell`), or is needed more than once, is `derived` by the frame.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

import msgspec

from . import events as e
from .errors import UsageError
from .rows import CallRow, RunRow, TurnRow

Kind = Literal["category", "text", "int", "float", "bool", "time", "duration", "object"]
"""category, text, int (nullable), float, bool, time (UTC, from epoch seconds), duration (from seconds), object (as it is)."""
Getter = str | Callable[[Any], Any]
Table = Literal["events", "calls", "turns", "runs"]


class Column(msgspec.Struct, frozen=True):
    """One column. `of`: row type -> attribute name or function. `derived`: computed by the frame under its name."""

    name: str
    kind: Kind
    of: Mapping[type, Getter] = {}
    table: Table = "events"
    derived: bool = False


def _result_text(event: e.Result) -> str:
    content = event.content
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False, default=str)


def _result_payload(event: e.Result) -> Any:
    return event.display if isinstance(event.content, str) else event.content


def _node_text(event: e.Node) -> str:
    return event.result or event.phase


def _tokens(field: str) -> dict[type, Getter]:
    return {e.Metric: lambda event: getattr(event.step, field)}


ANY = e.Event  # a getter for every event

ALL: tuple[Column, ...] = (
    Column("run", "category", derived=True),
    Column("cell", "category", derived=True),
    Column("notebook", "category", derived=True),
    Column("turn", "int", {ANY: "turn"}),
    Column("seq", "int", {ANY: "seq"}),
    Column("ts", "time", derived=True),
    Column("dt", "duration", derived=True),
    Column("type", "category", derived=True),
    Column("span", "category", {ANY: "span"}),
    Column("call_id", "text", {
        e.Call: "call_id", e.Approval: "call_id", e.Started: "call_id", e.Progress: "call_id", e.Result: "call_id",
        e.Error: lambda x: x.call_id or None,
    }),
    Column("name", "category", {
        e.Call: "name", e.Started: "name", e.Result: "name", e.Node: "name", e.Extension: "name", e.State: "kind",
        e.Error: "code", e.RunStart: "agent", e.Unknown: "kind",
    }),
    Column("status", "category", {
        e.Result: "status", e.End: "status", e.Interrupt: "reason", e.Node: "phase",
        e.Approval: lambda x: x.decision or x.stage,
    }),
    Column("text", "text", {
        e.User: "content", e.Think: "content", e.Respond: "content", e.Call: "raw_args", e.Result: _result_text,
        e.Progress: lambda x: x.text or x.message or None, e.Error: "message", e.Interrupt: "detail",
        e.End: lambda x: x.finish_reason or None, e.Approval: lambda x: x.reason or None, e.Node: _node_text,
    }),
    Column("tokens_in", "int", _tokens("input")),
    Column("tokens_out", "int", _tokens("output")),
    Column("duration", "duration", {e.Result: "duration", e.Metric: lambda x: x.step.duration}),
    Column("fraction", "float", {e.Progress: "fraction"}),
    Column("cost", "float", _tokens("cost")),
    Column("origin", "category", {ANY: "origin"}),
    Column("args", "object", {e.Call: "args", e.Approval: "args"}),
    Column("payload", "object", {
        e.RunStart: "settings", e.User: lambda x: list(x.attachments) or None, e.Think: "attributes", e.Progress: "data",
        e.Result: _result_payload, e.Node: "data", e.State: "payload", e.Extension: "payload", e.Unknown: "payload",
    }),
    Column("parent", "category", {ANY: "parent"}),
    Column("path", "category", {ANY: "path"}),
    Column("block", "text", {e.Think: "block", e.Call: "block", e.Respond: "block"}),
    Column("batch", "text", {e.Call: "batch", e.Execute: "batch"}),
    Column("incomplete", "bool", {e.Think: "incomplete", e.Call: "incomplete", e.Respond: "incomplete"}),
    Column("tokens_cached", "int", _tokens("cached")),
    Column("tokens_reasoning", "int", _tokens("reasoning")),
    Column("ttft", "duration", _tokens("ttft")),
    Column("model", "category", {e.RunStart: "model"}),
    Column("extra", "object", {ANY: "extra"}),
)  # fmt: skip


def _table(table: Table, row: type, *columns: tuple[str, Kind]) -> tuple[Column, ...]:
    return tuple(Column(name, kind, {row: name}, table) for name, kind in columns)


BY_NAME = {column.name: column for column in ALL}
EVENTS: tuple[Column, ...] = tuple(c for c in ALL[: list(BY_NAME).index("parent")] if c.name != "notebook")
CALLS = _table(
    "calls", CallRow,
    ("run", "category"), ("cell", "category"), ("turn", "int"), ("seq", "int"), ("ts", "time"), ("call_id", "text"), ("name", "category"),
    ("status", "category"), ("waited", "duration"), ("duration", "duration"), ("decision", "category"), ("by", "category"),
    ("progress", "int"), ("text", "text"), ("args", "object"), ("content", "object"), ("display", "object"),
)  # fmt: skip
TURNS = _table(
    "turns", TurnRow,
    ("run", "category"), ("cell", "category"), ("turn", "int"), ("ts", "time"), ("duration", "duration"), ("requests", "int"),
    ("calls", "int"), ("failed", "int"), ("thought", "text"), ("text", "text"), ("tokens_in", "int"), ("tokens_out", "int"),
    ("tokens_cached", "int"), ("tokens_reasoning", "int"), ("ttft", "duration"), ("cost", "float"), ("estimated", "bool"),
)  # fmt: skip
RUNS = _table(
    "runs", RunRow,
    ("run", "category"), ("cell", "category"), ("notebook", "category"), ("ts", "time"), ("duration", "duration"),
    ("status", "category"), ("model", "category"), ("dialect", "category"), ("prompt", "text"), ("answer", "text"), ("turns", "int"),
    ("calls", "int"), ("failed", "int"), ("errors", "int"), ("tokens_in", "int"), ("tokens_out", "int"), ("cost", "float"),
    ("events", "int"), ("tools", "object"), ("settings", "object"),
)  # fmt: skip
PRESETS: dict[str, tuple[Column, ...]] = {"events": EVENTS, "calls": CALLS, "turns": TURNS, "runs": RUNS}


def choose(columns: Iterable[str | Column] | str | None) -> tuple[Column, ...]:
    """Return the columns that were asked for: None (EVENTS), the name of a preset, or a list of names and Columns.

    Raises UsageError for an unknown name, and for columns of different tables in one list.
    """
    if columns is None:
        return EVENTS
    if isinstance(columns, str):
        if columns not in PRESETS:
            raise UsageError(f"There is no list of columns named {columns!r}. Known: {', '.join(PRESETS)}; or give a list.")
        return PRESETS[columns]
    chosen = list(columns)
    tables = {c.table for c in chosen if isinstance(c, Column)} or {"events"}
    if len(tables) > 1:
        raise UsageError(f"Columns of different tables ({', '.join(sorted(tables))}) do not go into one frame.")
    return tuple(c if isinstance(c, Column) else _named(c, next(iter(tables))) for c in chosen)


def _named(name: str, table: str) -> Column:
    known = BY_NAME if table == "events" else {c.name: c for c in PRESETS[table]}
    if name in known:
        return known[name]
    near = difflib.get_close_matches(str(name), known, 1)
    raise UsageError(f"There is no column {name!r}.{f' Did you mean {near[0]}?' if near else ''} Columns: {', '.join(known)}.")
