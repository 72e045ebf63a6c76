"""Every column of the table of events, in the order in which a frame shows them.

Rule: a getter sees one event; `frame` computes the columns that need more (`derived`).
"""

from __future__ import annotations

from typing import Any

from . import types as e
from .column_type import Column, Getter
from .text import content_text


def _result_payload(event: e.Result) -> Any:
    """Return the nested content of a result; for a text, its display or attachments instead."""
    displayed = event.display or list(event.attachments) or None
    return displayed if isinstance(event.content, str) else event.content


def _node_text(event: e.Node) -> str:
    """Return the result of a node, or its phase (enter, exit) while it has none."""
    return event.result or event.phase


def _usage_getter(field: str) -> dict[type, Getter]:
    """Return a getter of one field of a turn's usage: tokens, cost or time."""
    return {e.Metric: lambda event: getattr(event.step, field)}


ANY = e.Event  # the base class: its getter serves events of every type
_DURATION: dict[type, Getter] = {e.Result: "duration", e.Metric: lambda x: x.step.duration}
# where a run was recorded; every table has these columns
PLACES = (
    Column(
        "cell", "category", derived=True, doc="The id of the cell that the run was recorded in."
    ),
    Column("notebook", "category", derived=True, doc="The file that the run was read from."),
    Column("run", "category", derived=True, doc="The id of the run."),
)
EVENT_COLUMNS: tuple[Column, ...] = (
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
        _usage_getter("input"),
        doc="Tokens of the turn's requests, cached ones included.",
    ),
    Column(
        "tokens_out",
        "int",
        _usage_getter("output"),
        doc="Tokens that the model wrote in this turn.",
    ),
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
    *PLACES,
    Column("ts", "time", derived=True, doc="When it happened, UTC."),
    Column("dt", "duration", derived=True, doc="Time since the first event of the run."),
    Column("duration", "duration", _DURATION, doc="How long a call or a model turn took."),
    Column(
        "cost",
        "float",
        _usage_getter("cost"),
        doc="US dollars of this turn, where the price is known.",
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
        _usage_getter("cached"),
        doc="How many of tokens_in were read from a cache.",
    ),
    Column(
        "tokens_cache_written",
        "int",
        _usage_getter("cache_written"),
        doc="How many of tokens_in were written to a cache.",
    ),
    Column(
        "tokens_reasoning",
        "int",
        _usage_getter("reasoning"),
        doc="How many of tokens_out were thoughts.",
    ),
    Column("ttft", "duration", _usage_getter("ttft"), doc="Time to the first token of the turn."),
    Column("ttft_s", "float", _usage_getter("ttft"), doc="Seconds to the first token of the turn."),
    Column("model", "category", {e.RunStart: "model"}, doc="The model of the run."),
    Column(
        "extra", "object", {ANY: "extra"}, doc="Fields of the event that have no column, nested."
    ),
)
