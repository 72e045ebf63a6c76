"""The events: everything that can happen in a run, as frozen values.

One tagged union (tag `type`), read and written by msgspec. The ten names of the cogency taxonomy
(user, think, call, execute, result, respond, end, metric, error, interrupt) keep their meaning.

Rules
- An event never changes, since the log, the view, the record and other threads share it; a later
  fact is a new event.
- `seq` counts from 1 in a log, without gaps. It is 0 on deltas, which are never stored.
- `ts` is epoch seconds in whole milliseconds, and never decreases in a log of ours.
- Results come from the tool runner, the record or a codec, never from model text.
- This file imports nothing of ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Literal, Self

import msgspec

Origin = Literal["user", "model", "runtime", "tool", "imported"]
ResultStatus = Literal["ok", "error", "denied", "cancelled", "timeout"]
EndStatus = Literal["ok", "error", "interrupted", "limit", "awaiting"]
#: Extensions of this name go back to their provider unchanged (see `agent.history`).
RESEND = "resend"
#: Decimal places of a cost: a tenth of a token of the cheapest model is still visible.
COST_PLACES = 10


class Event(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    # the decoder fails on unknown fields, and `event_json` then moves them into `extra`
    forbid_unknown_fields=True,
    tag_field="type",
    tag="event",
):
    """The fields that every event has.

    `run` is the run's id, `turn` the number of the model's turn (from 1; 0: outside of turns).
    `span` and `parent` place the event in a tree of nodes (sub-agents, model requests); without a
    `span` it belongs to the run itself. `path` is a foreign protocol's own path.
    """

    type: ClassVar[str] = "event"

    seq: int = 0
    ts: float = 0.0
    run: str = ""
    turn: int = 0
    span: str = ""
    parent: str = ""
    path: str = ""
    origin: Origin = "runtime"
    extra: dict[str, Any] | None = None

    @classmethod
    def first_in(cls, events: Iterable[Event]) -> Self:
        """Return the run's first event of this type, outside of spans; an empty one without it."""
        return next((e for e in events if isinstance(e, cls) and not e.span), cls())


class RunStart(Event, frozen=True, tag="run_start"):
    """The run begins, with the values that decide its outcome; `settings["hash"]` digests them."""

    type: ClassVar[str] = "run_start"

    agent: str = ""
    model: str = ""
    dialect: str = ""
    tools: tuple[str, ...] = ()
    settings: dict[str, Any] = {}


class User(Event, frozen=True, tag="user"):
    """A prompt of the user; `attachments` are objects with `media_type` and base64 `data`."""

    type: ClassVar[str] = "user"

    content: str = ""
    attachments: tuple[dict[str, Any], ...] = ()


class Think(Event, frozen=True, tag="think"):
    """A block of reasoning; `opaque` (a signature) goes back to its provider unchanged.

    `attributes` are those of its tag in the model's text. `block` is the id that its deltas name,
    `chunks` holds their lengths and times (see the module `chunks`), as in Call and Respond.
    """

    type: ClassVar[str] = "think"

    content: str = ""
    block: str = ""
    attributes: dict[str, Any] | None = None
    opaque: Any = None
    incomplete: bool = False
    chunks: str = ""


class Call(Event, frozen=True, tag="call"):
    """The model called a tool. `args` is the parsed object, `raw_args` the text as it came.

    `synthetic`: the model gave no usable id, so `call_id` is ours. `batch`: that of its Execute.
    """

    type: ClassVar[str] = "call"

    call_id: str = ""
    synthetic: bool = False
    name: str = ""
    args: dict[str, Any] = {}
    raw_args: str = ""
    block: str = ""
    batch: str = ""
    index: int = 0
    incomplete: bool = False
    chunks: str = ""


class Approval(Event, frozen=True, tag="approval"):
    """A question to the user about a call (`requested`), or its decision (`decided`).

    `args` are those of the call; in a decision, those with which it would run. `by` is the person
    or rule that decided, `scope` the calls that the decision covers.
    """

    type: ClassVar[str] = "approval"

    call_id: str = ""
    stage: Literal["requested", "decided"] = "requested"
    args: dict[str, Any] | None = None
    decision: Literal["", "allow", "deny"] = ""
    scope: Literal["", "once", "args", "tool", "run"] = ""
    by: str = ""
    reason: str = ""


class Execute(Event, frozen=True, tag="execute"):
    """A batch of calls is complete and runs now; `calls` are the call ids in order."""

    type: ClassVar[str] = "execute"

    batch: str = ""
    calls: tuple[str, ...] = ()


class Started(Event, frozen=True, tag="started"):
    """A tool began to run."""

    type: ClassVar[str] = "started"

    call_id: str = ""
    name: str = ""


class Progress(Event, frozen=True, tag="progress"):
    """News from a running tool: `text` (output), `fraction` (0 to 1) or `data` (any JSON).

    Only one of them is set, with an optional `message`.
    """

    type: ClassVar[str] = "progress"

    call_id: str = ""
    text: str = ""
    fraction: float | None = None
    data: Any = None
    message: str = ""


PRINTED = "printed"  # key in `extra` of a Result


class Result(Event, frozen=True, tag="result"):
    """How a call ended; exactly one per call.

    `content` is what the model reads (text or a JSON value), `display` a mime bundle for people,
    `duration` seconds. `attachments` are objects with a picture (as in User), a `display` (a mime
    bundle of a chart or table), or both. `extra["printed"]` is the tool's printed output, bounded:
    the model reads it beside the content.
    """

    type: ClassVar[str] = "result"

    call_id: str = ""
    name: str = ""
    status: ResultStatus = "ok"
    content: Any = ""
    display: dict[str, Any] | None = None
    duration: float = 0.0
    attachments: tuple[dict[str, Any], ...] = ()


class Respond(Event, frozen=True, tag="respond"):
    """A block of the answer."""

    type: ClassVar[str] = "respond"

    content: str = ""
    block: str = ""
    incomplete: bool = False
    chunks: str = ""


class Counts(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Tokens (counts), times (seconds), cost (US dollars, None: unknown) of a step or of the run.

    `input`: all tokens of the request, with those read from a cache (`cached`) or written to it
    (`cache_written`). `output`: all tokens of the answer, of which `reasoning` were thoughts. The
    same for every provider (`usage`).
    """

    input: int = 0
    output: int = 0
    cached: int = 0
    cache_written: int = 0
    reasoning: int = 0
    duration: float = 0.0
    ttft: float | None = None
    cost: float | None = None

    def __add__(self, later: Counts) -> Counts:
        """Return the sum; an unknown cost counts as nothing, and `ttft` is the first known one."""
        costs = [cost for cost in (self.cost, later.cost) if cost is not None]
        return Counts(
            input=self.input + later.input,
            output=self.output + later.output,
            cached=self.cached + later.cached,
            cache_written=self.cache_written + later.cache_written,
            reasoning=self.reasoning + later.reasoning,
            duration=round(self.duration + later.duration, 3),
            ttft=self.ttft if self.ttft is not None else later.ttft,
            cost=round(sum(costs), COST_PLACES) if costs else None,
        )


class Metric(Event, frozen=True, tag="metric"):
    """Usage of the last model request (`step`) and of the run (`total`), perhaps `estimated`."""

    type: ClassVar[str] = "metric"

    step: Counts = Counts()
    total: Counts = Counts()
    estimated: bool = False


class Node(Event, frozen=True, tag="node"):
    """A span begins (`phase` enter) or ends (exit); `result` says how it ended (`ok`, `error: …`).

    It is a model request (`llm`, internal), a sub-agent, or a node of a foreign protocol's graph.
    """

    type: ClassVar[str] = "node"

    name: str = ""
    phase: Literal["enter", "exit"] = "enter"
    result: str = ""
    data: dict[str, Any] | None = None


class State(Event, frozen=True, tag="state"):
    """A snapshot, update or checkpoint of state, named by `kind`.

    Kinds of our own runs: `window` (turns left out), `foreign_turns` (turns from records of
    others), `context` (the notebook as sent), `mcp` (tools of a server), `model` (a fallback
    model), `conversation` (other remarks), `map` and `map.*` (counts, plan, rows and scores).
    """

    type: ClassVar[str] = "state"

    kind: str = ""
    payload: Any = None


class Extension(Event, frozen=True, tag="extension"):
    """A field or event of another protocol without an equivalent here."""

    type: ClassVar[str] = "extension"

    namespace: str = ""
    name: str = ""
    payload: Any = None


class Error(Event, frozen=True, tag="error"):
    """Something went wrong; the run may go on."""

    type: ClassVar[str] = "error"

    code: str = ""
    message: str = ""
    call_id: str = ""
    raw: str = ""
    position: int | None = None
    retryable: bool = False


class Interrupt(Event, frozen=True, tag="interrupt"):
    """The run was stopped from outside: by the user, a timeout or a limit."""

    type: ClassVar[str] = "interrupt"
    AT_LIMIT: ClassVar[str] = "stopped at the limit of "  # how the `detail` of a limit begins

    reason: Literal["user", "timeout", "limit"] = "user"
    detail: str = ""

    @classmethod
    def limit_in(cls, detail: str) -> str:
        """Return the limit that a `detail` names ("30 turns"), or ""; records of any age count."""
        heads = (cls.AT_LIMIT, "limit reached: ")  # older records have the second one
        limit = next((detail.removeprefix(h) for h in heads if detail.startswith(h)), "")
        return limit.partition(" (")[0].replace(" model turns", " turns")


class End(Event, frozen=True, tag="end"):
    """The run is over: one per run, always its last event. With a `span` it ends a sub-agent."""

    type: ClassVar[str] = "end"

    status: EndStatus = "ok"
    finish_reason: str = ""

    @classmethod
    def status_in(cls, log: Sequence[Event]) -> EndStatus:
        """Return the status of the run's own end (not of a span); `interrupted` without one."""
        last = log[-1] if len(log) else None
        return last.status if isinstance(last, cls) and not last.span else "interrupted"


class Delta(Event, frozen=True, tag="delta"):
    """Live only: a piece of an open block, or news about it.

    `of` is the type of the event to come (`think`, `call`, `respond`), or one of:
    - `picture`: the call `block` shows a picture; `text`: JSON of (its index, attachment or null)
    - `result`: the call `block` has ended with status `text`; its Result comes in its turn
    - `status`: what a run waits for before it can stream, in words (a model that loads)
    - `approval`: a replay's question about the call `block`, the JSON of an unrecorded Approval
    - `map`: the counts of a map's rows so far, as JSON
    """

    type: ClassVar[str] = "delta"

    block: str = ""
    of: str = ""
    name: str = ""
    text: str = ""


class Unknown(Event, frozen=True, tag="unknown"):
    """An event of a type this version does not know; `payload` is the whole object as it came."""

    type: ClassVar[str] = "unknown"

    kind: str = ""
    payload: dict[str, Any] = {}


# without `Unknown`, which `event_json` makes of every other type
TYPES: dict[str, type[Event]] = {t.type: t for t in (
    RunStart, User, Think, Call, Approval, Execute, Started, Progress, Result, Respond, Metric,
    Node, State, Extension, Error, Interrupt, End, Delta,
)}  # fmt: skip

AnyEvent = (
    RunStart | User | Think | Call | Approval | Execute | Started | Progress | Result | Respond
    | Metric | Node | State | Extension | Error | Interrupt | End | Delta
)  # fmt: skip

ENVELOPE = frozenset(Event.__struct_fields__)  # the names of the fields that every event has
