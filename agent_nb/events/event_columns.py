"""Every column of the table of events, in the order in which a frame shows them.

It stands apart from `columns`: the rows of each table there (calls, turns, runs) have one type.
Each type of event has attributes of its own, so a column needs a getter for each type.

Rules
- A getter sees one event; `frame` computes the columns that need more (`derived`).
- A length of time stands twice: as a float (`seconds`, `duration_s`, `ttft_s`), which every library
  accepts, and as a timedelta (`dt`, `duration`, `ttft`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import types as e
from .column_type import Column, Getter, Kind
from .text import content_text


def _result_payload(event: e.Result) -> Any:
    """Return the nested content of a result; for a text, its display or attachments instead."""
    displayed = event.display or list(event.attachments) or None
    return displayed if isinstance(event.content, str) else event.content


def _column(name: str, kind: Kind, doc: str, of: str | Mapping[type, Getter]) -> Column:
    """Return a column; `of`: getters by type of event, or an attribute that every event has."""
    return Column(name, kind, {e.Event: of} if isinstance(of, str) else of, doc=doc)


def _derived_column(name: str, kind: Kind, doc: str) -> Column:
    return Column(name, kind, derived=True, doc=doc)


def _usage(name: str, kind: Kind, doc: str, field: str) -> Column:
    """Return a column with one field of a turn's usage: tokens, cost or time."""
    return _column(name, kind, doc, {e.Metric: lambda event: getattr(event.step, field)})


_BLOCKS = (e.Think, e.Call, e.Respond)  # what the model writes
_ABOUT_CALLS = (e.Call, e.Approval, e.Started, e.Progress, e.Result)  # always have a `call_id`
_NAMED = (e.Call, e.Started, e.Result, e.Node, e.Extension)  # have a `name`
# getters of the columns that have another one for each type of event
_CALL_ID: dict[type, Getter] = {
    **dict.fromkeys(_ABOUT_CALLS, "call_id"),
    e.Error: lambda event: event.call_id or None,
}
_DURATION: dict[type, Getter] = {e.Result: "duration", e.Metric: lambda event: event.step.duration}
_NAME: dict[type, Getter] = {
    **dict.fromkeys(_NAMED, "name"),
    **dict.fromkeys((e.State, e.Unknown), "kind"),
    e.Error: "code",
    e.RunStart: "agent",
}
_TEXT: dict[type, Getter] = {
    **dict.fromkeys((e.User, e.Think, e.Respond), "content"),
    e.Call: "raw_args",
    e.Result: lambda event: content_text(event.content),
    e.Progress: lambda event: event.text or event.message or None,
    e.Error: "message",
    e.Interrupt: "detail",
    e.End: lambda event: event.finish_reason or None,
    e.Approval: lambda event: event.reason or None,
    e.Node: lambda event: event.result or event.phase,  # enter, exit: a node without a result yet
}
_STATUS: dict[type, Getter] = {
    **dict.fromkeys((e.Result, e.End), "status"),
    e.Interrupt: "reason",
    e.Node: "phase",
    e.Approval: lambda event: event.decision or event.stage,
}
_PAYLOAD: dict[type, Getter] = {
    **dict.fromkeys((e.State, e.Extension, e.Unknown), "payload"),
    **dict.fromkeys((e.Progress, e.Node), "data"),
    e.RunStart: "settings",
    e.User: lambda event: list(event.attachments) or None,
    e.Think: "attributes",
    e.Result: _result_payload,
}
#: Which run, and where it was recorded; every table has these columns.
PLACE_COLUMNS = (
    _derived_column("cell", "category", "The id of the cell that the run was recorded in."),
    _derived_column("notebook", "category", "The file that the run was read from."),
    _derived_column("run", "category", "The id of the run."),
)
EVENT_COLUMNS: tuple[Column, ...] = (
    _column("turn", "count", "The model turn, from 1; 0 before the first.", "turn"),
    _derived_column("type", "category", "What kind of event it is: user, think, call, result, respond …"),
    _column("name", "category", "The tool, the span, the code of an error.", _NAME),
    _column("text", "text", "What was said: prompt, thought, answer, arguments, result, message.", _TEXT),
    _derived_column("seconds", "float", "Seconds since the first event of the run."),
    _column("status", "category", "How a call or the run ended; what was decided.", _STATUS),
    _column("duration_s", "float", "How long a call or a model turn took, in seconds.", _DURATION),
    _column("fraction", "float", "Progress of a call, from 0 to 1.", {e.Progress: "fraction"}),
    _usage("tokens_in", "int", "Tokens of the turn's requests, cached ones included.", "input"),
    _usage("tokens_out", "int", "Tokens that the model wrote in this turn.", "output"),
    _column("seq", "count", "The number of the event in its run, from 1.", "seq"),
    _column("call_id", "text", "The id that a call shares with its progress and its result.", _CALL_ID),
    _column("span", "category", "The span an event belongs to, such as the run of a sub-agent.", "span"),
    *PLACE_COLUMNS,
    _derived_column("ts", "time", "When it happened, UTC."),
    _derived_column("dt", "duration", "Time since the first event of the run."),
    _column("duration", "duration", "How long a call or a model turn took.", _DURATION),
    _usage("cost", "float", "US dollars of this turn, where the price is known.", "cost"),
    _column("origin", "category", "Who it comes from: user, model, runtime, tool, imported.", "origin"),
    _column("args", "object", "The arguments of a call, nested.", {e.Call: "args", e.Approval: "args"}),
    _column("payload", "object", "What else an event carries, nested.", _PAYLOAD),
    _column("parent", "category", "The span around the event's own.", "parent"),
    _column("path", "category", "The path of the event in the protocol it comes from.", "path"),
    _column("block", "text", "The id of the block that the model wrote.", dict.fromkeys(_BLOCKS, "block")),
    _column("batch", "text", "The calls that were made together.", {e.Call: "batch", e.Execute: "batch"}),
    _column("incomplete", "bool", "Whether it was cut off.", dict.fromkeys(_BLOCKS, "incomplete")),
    _usage("tokens_cached", "int", "How many of tokens_in were read from a cache.", "cached"),
    _usage("tokens_cache_written", "int", "How many of tokens_in were written to a cache.", "cache_written"),
    _usage("tokens_reasoning", "int", "How many of tokens_out were thoughts.", "reasoning"),
    _usage("ttft", "duration", "Time to the first token of the turn.", "ttft"),
    _usage("ttft_s", "float", "Seconds to the first token of the turn.", "ttft"),
    _column("model", "category", "The model of the run.", {e.RunStart: "model"}),
    _column("extra", "object", "Fields of the event that have no column, nested.", "extra"),
)  # fmt: skip
