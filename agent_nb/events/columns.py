"""The columns of the DataFrames, as data: what a frame shows is a list that can be sliced, extended
and written by hand.

    run.to_frame()                                  EVENTS, one row per event
    run.to_frame(CALLS)                             one row per tool call; TURNS and RUNS likewise
    run.to_frame("all")                             every column of events; "all calls", "all
                            turns", "all runs"
    run.to_frame(["ts", "type", "text"])            by name
    run.to_frame([*CALLS, "args"])
    run.to_frame([*EVENTS, Column("n", "int", {Respond: lambda e: len(e.content)})])
    for column in CALLS: print(column.name, column.doc)

Why apart from `frame`: these lists need no pandas, and the command line prints tables from them.

Rules
- A column has a name, a kind and, per type of row, where its value comes from: an attribute's name
  or a function.
- A row of a type that a column does not name has no value there. The rows of one frame are of one
  table.
- `tokens_in` is every token of the requests, those read from a cache or written to it included, for
  every provider; `tokens_cached` says how many were read from a cache, `tokens_reasoning` how many
  of `tokens_out` were thoughts.
- Getters look only at the row; what needs more (`dt`, `cell`), or is needed more than once, is
  `derived` by the frame.
- The short lists (EVENTS, CALLS, TURNS, RUNS) begin with what is read first and end with ids. They
  hold only what every library takes: no timedeltas (seconds instead, `…_s`), no nested values (JSON
  text instead), no local times. A name means the same in every list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

import msgspec

from ..errors import UsageError, did_you_mean, unknown_name
from . import types as e
from .rows import CallRow, RunRow, TurnRow
from .text import content_text

Kind = Literal[
    "category", "text", "json", "count", "int", "float", "bool", "time", "duration", "object"
]
"""category; text; json: text of a nested value; count: a whole number that is always there; int:
one that may be missing, and so a float in the frame; float; bool; time: UTC, from epoch seconds;
duration: from seconds; object: as it is.
"""
Getter = str | Callable[[Any], Any]
Table = Literal["events", "calls", "turns", "runs"]


class Column(msgspec.Struct, frozen=True):
    """One column. `of`: row type -> attribute name or function. `derived`: computed by the frame
    under its name. `doc`: what it says.
    """

    name: str
    kind: Kind
    of: Mapping[type, Getter] = {}
    table: Table = "events"
    derived: bool = False
    doc: str = ""


def _result_payload(event: e.Result) -> Any:
    return event.display if isinstance(event.content, str) else event.content


def _node_text(event: e.Node) -> str:
    return event.result or event.phase


def _tokens(field: str) -> dict[type, Getter]:
    return {e.Metric: lambda event: getattr(event.step, field)}


ANY = e.Event  # a getter for every event
_DURATION: dict[type, Getter] = {e.Result: "duration", e.Metric: lambda x: x.step.duration}
_PLACES = (
    Column(
        "cell", "category", derived=True, doc="The id of the cell that the run was recorded in."
    ),
    Column("notebook", "category", derived=True, doc="The file that the run was read from."),
    Column("run", "category", derived=True, doc="The id of the run."),
)

_EVENTS: tuple[Column, ...] = (
    Column("turn", "count", {ANY: "turn"}, doc="The model turn, from 1; 0 before the first."),
    Column(
        "type",
        "category",
        derived=True,
        doc="What kind of event it is: user, think, call, result, respond …",
    ),
    Column(
        "name",
        "category",
        {
            e.Call: "name",
            e.Started: "name",
            e.Result: "name",
            e.Node: "name",
            e.Extension: "name",
            e.State: "kind",
            e.Error: "code",
            e.RunStart: "agent",
            e.Unknown: "kind",
        },
        doc="The tool, the span, the code of an error.",
    ),
    Column(
        "text",
        "text",
        {
            e.User: "content",
            e.Think: "content",
            e.Respond: "content",
            e.Call: "raw_args",
            e.Result: lambda x: content_text(x.content),
            e.Progress: lambda x: x.text or x.message or None,
            e.Error: "message",
            e.Interrupt: "detail",
            e.End: lambda x: x.finish_reason or None,
            e.Approval: lambda x: x.reason or None,
            e.Node: _node_text,
        },
        doc="What was said: prompt, thought, answer, arguments, result, message.",
    ),
    Column("seconds", "float", derived=True, doc="Seconds since the first event of the run."),
    Column(
        "status",
        "category",
        {
            e.Result: "status",
            e.End: "status",
            e.Interrupt: "reason",
            e.Node: "phase",
            e.Approval: lambda x: x.decision or x.stage,
        },
        doc="How a call or the run ended; what was decided.",
    ),
    Column(
        "duration_s", "float", _DURATION, doc="How long a call or a model turn took, in seconds."
    ),
    Column("fraction", "float", {e.Progress: "fraction"}, doc="Progress of a call, from 0 to 1."),
    Column(
        "tokens_in",
        "int",
        _tokens("input"),
        doc="Tokens of the turn's requests, cached ones included.",
    ),
    Column("tokens_out", "int", _tokens("output"), doc="Tokens that the model wrote in this turn."),
    Column("seq", "count", {ANY: "seq"}, doc="The number of the event in its run, from 1."),
    Column(
        "call_id",
        "text",
        {
            e.Call: "call_id",
            e.Approval: "call_id",
            e.Started: "call_id",
            e.Progress: "call_id",
            e.Result: "call_id",
            e.Error: lambda x: x.call_id or None,
        },
        doc="The id that a call shares with its progress and its result.",
    ),
    Column(
        "span",
        "category",
        {ANY: "span"},
        doc="The span an event belongs to, such as the run of a sub-agent.",
    ),
    *_PLACES,
    Column("ts", "time", derived=True, doc="When it happened, UTC."),
    Column("dt", "duration", derived=True, doc="Time since the first event of the run."),
    Column("duration", "duration", _DURATION, doc="How long a call or a model turn took."),
    Column(
        "cost", "float", _tokens("cost"), doc="US dollars of this turn, where the price is known."
    ),
    Column(
        "origin",
        "category",
        {ANY: "origin"},
        doc="Who it comes from: user, model, runtime, tool, imported.",
    ),
    Column(
        "args",
        "object",
        {e.Call: "args", e.Approval: "args"},
        doc="The arguments of a call, nested.",
    ),
    Column(
        "payload",
        "object",
        {
            e.RunStart: "settings",
            e.User: lambda x: list(x.attachments) or None,
            e.Think: "attributes",
            e.Progress: "data",
            e.Result: _result_payload,
            e.Node: "data",
            e.State: "payload",
            e.Extension: "payload",
            e.Unknown: "payload",
        },
        doc="What else an event carries, nested.",
    ),
    Column("parent", "category", {ANY: "parent"}, doc="The span around the event's own."),
    Column(
        "path",
        "category",
        {ANY: "path"},
        doc="The path of the event in the protocol it comes from.",
    ),
    Column(
        "block",
        "text",
        {e.Think: "block", e.Call: "block", e.Respond: "block"},
        doc="The id of the block that the model wrote.",
    ),
    Column(
        "batch",
        "text",
        {e.Call: "batch", e.Execute: "batch"},
        doc="The calls that were made together.",
    ),
    Column(
        "incomplete",
        "bool",
        {e.Think: "incomplete", e.Call: "incomplete", e.Respond: "incomplete"},
        doc="Whether it was cut off.",
    ),
    Column(
        "tokens_cached",
        "int",
        _tokens("cached"),
        doc="How many of tokens_in were read from a cache.",
    ),
    Column(
        "tokens_reasoning", "int", _tokens("reasoning"), doc="How many of tokens_out were thoughts."
    ),
    Column("ttft", "duration", _tokens("ttft"), doc="Time to the first token of the turn."),
    Column("ttft_s", "float", _tokens("ttft"), doc="Seconds to the first token of the turn."),
    Column("model", "category", {e.RunStart: "model"}, doc="The model of the run."),
    Column(
        "extra", "object", {ANY: "extra"}, doc="Fields of the event that have no column, nested."
    ),
)


def _table(table: Table, row: type, *columns: tuple[str, ...]) -> tuple[Column, ...]:
    """Return the columns of a table from (name, kind, doc) or, where the row has another name for
    it, (name, kind, doc, attribute).
    """
    return tuple(
        Column(name, kind, {row: (*more, name)[0]}, table, doc=doc)  # type: ignore[arg-type]
        for name, kind, doc, *more in columns
    )


_ROW_PLACES = tuple((c.name, c.kind, c.doc) for c in _PLACES)
_CALLS = _table(
    "calls",
    CallRow,
    ("turn", "count", "The model turn that made the call, from 1."),
    ("name", "category", "The tool."),
    (
        "status",
        "category",
        "How it ended: ok, error, denied, cancelled, timeout; missing while it runs.",
    ),
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
)
_TURNS = _table(
    "turns",
    TurnRow,
    ("turn", "count", "The model turn, from 1."),
    ("text", "text", "The answer."),
    ("seconds", "float", "Seconds from the first event of the run to the first of the turn."),
    (
        "duration_s",
        "float",
        "From the first event of the turn to its last, in seconds.",
        "duration",
    ),
    ("ttft_s", "float", "Seconds to the first token.", "ttft"),
    ("requests", "count", "Requests to the model, repeated ones included."),
    ("calls", "count", "Tool calls."),
    ("failed", "count", "Calls that did not end ok."),
    ("tokens_in", "int", "Tokens of the requests, cached ones included."),
    ("tokens_out", "int", "Tokens that the model wrote."),
    ("cost", "float", "US dollars, where the price is known."),
    ("thought", "text", "The thoughts."),
    ("model", "category", "The model."),
    *_ROW_PLACES,
    ("ts", "time", "When it began, UTC."),
    ("duration", "duration", "From the first event of the turn to its last."),
    ("ttft", "duration", "Time to the first token."),
    ("tokens_cached", "int", "How many of tokens_in were read from a cache."),
    ("tokens_reasoning", "int", "How many of tokens_out were thoughts."),
    ("estimated", "bool", "Whether the tokens are an estimate."),
)
_RUNS = _table(
    "runs",
    RunRow,
    ("prompt", "text", "What the user asked."),
    ("answer", "text", "The answer."),
    (
        "status",
        "category",
        "How it ended: ok, error, interrupted, limit, awaiting; running without an end.",
    ),
    ("model", "category", "The model."),
    ("ts", "time", "When it began, UTC."),
    ("duration_s", "float", "From the first event to the last, in seconds.", "duration"),
    ("turns", "count", "Model turns."),
    ("calls", "count", "Tool calls."),
    ("failed", "count", "Calls that did not end ok."),
    ("errors", "count", "Errors in the log."),
    ("tokens_in", "int", "Tokens of the requests, cached ones included."),
    ("tokens_out", "int", "Tokens that the model wrote."),
    ("cost", "float", "US dollars, where the price is known."),
    *_ROW_PLACES,
    ("duration", "duration", "From the first event to the last."),
    ("dialect", "category", "How the model wrote its turns."),
    ("events", "count", "Events in the log."),
    ("tools", "object", "The names of the tools, nested."),
    ("settings", "object", "The settings, nested."),
)


def _short(columns: tuple[Column, ...]) -> tuple[Column, ...]:
    """Return the columns of a short list: down to the run's id."""
    return columns[: [c.name for c in columns].index("run") + 1]


_KNOWN: dict[str, tuple[Column, ...]] = {
    "events": _EVENTS,
    "calls": _CALLS,
    "turns": _TURNS,
    "runs": _RUNS,
}
EVENTS, CALLS, TURNS, RUNS = map(_short, _KNOWN.values())
PRESETS: dict[str, tuple[Column, ...]] = {
    "events": EVENTS, "calls": CALLS, "turns": TURNS, "runs": RUNS,
    "all": _EVENTS, "all calls": _CALLS, "all turns": _TURNS, "all runs": _RUNS,
}  # fmt: skip


def choose(columns: Iterable[str | Column] | str | None) -> tuple[Column, ...]:
    """Return the columns that were asked for: None (EVENTS), the name of a preset, or a list of
    names and Columns.

    Raises UsageError for an unknown name, and for columns of different tables in one list.
    """
    if columns is None:
        return EVENTS
    if isinstance(columns, str):
        if columns not in PRESETS:
            raise UsageError(
                f"There is no list of columns named {columns!r}. Known: {', '.join(PRESETS)}; or give a list."
            )
        return PRESETS[columns]
    chosen = list(columns)
    tables = {c.table for c in chosen if isinstance(c, Column)} or {"events"}
    if len(tables) > 1:
        raise UsageError(
            f"Columns of different tables ({', '.join(sorted(tables))}) do not go into one frame."
        )
    return tuple(c if isinstance(c, Column) else _named(c, next(iter(tables))) for c in chosen)


def _named(name: str, table: str) -> Column:
    known = {c.name: c for c in _KNOWN[table]}
    if name in known:
        return known[name]
    hint = did_you_mean(str(name), known)
    raise UsageError(unknown_name("column", name, known, hint=hint, label="Columns"))
