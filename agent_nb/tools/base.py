"""The values of the tool room: a tool, its context, what it yields, and what surrounds it.

Rules
- A tool never sees the log or the model; it speaks through `ToolContext.progress`, its yields and
  its return value.
- `Host` is the way to the main thread of the kernel; outside a notebook there is none and tools run
  in worker threads.
- Whatever a tool raises becomes a result (`KeyboardInterrupt` and `Cancelled`: one of status
  `cancelled`); only the cancellation of the loop passes through, after every call got its result.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any, Literal, Protocol

import msgspec

from ..events.tool_events import meaning, progress_fields
from ..models.messages import ToolSpec

Effect = Literal["none", "kernel", "outside"]
Compare = Literal["full", "text", "none"]
_call: ContextVar[str] = ContextVar("agent_nb_call", default="")


def current_call() -> str:
    """Return the call of a tool that the running code belongs to, as `run/call` ("": to none); of a
    sub-agent's tool as `run/call/call`.
    """
    return _call.get()


def enter_call(path: str) -> None:
    """Say that what runs in this context from now on belongs to a call."""
    _call.set(path)


class Update(msgspec.Struct, frozen=True):
    """News of a running tool: one of `text`, `fraction` (0 to 1) or `data`, with an optional
    `message`.

    `printed`: the text was printed to stdout; the model reads it beside the result.
    """

    text: str = ""
    fraction: float | None = None
    data: Any = None
    message: str = ""
    printed: bool = False


class Outcome(msgspec.Struct, frozen=True):
    """How a call ended: `content` for the model (text or JSON value), `display` a mime bundle for
    people.

    `printed`: what the tool printed, where that is known from a record and not from its updates.
    """

    status: Literal["ok", "error", "denied", "cancelled", "timeout"]
    content: Any = ""
    display: dict[str, Any] | None = None
    duration: float = 0.0
    printed: str = ""


class Host(Protocol):
    """The kernel's main thread, as tools see it."""

    async def run_cell(self, code: str, on_output: Callable[[str], None]) -> Outcome:
        """Run `code` as a cell in the user's namespace (top-level await works); `on_output` gets
        stdout and stderr as they come.
        """

    async def call(self, function: Callable[[], Any]) -> Any:
        """Call a synchronous function on the main thread and return its value."""

    def namespace(self) -> dict[str, Any]:
        """Return the user's namespace."""


class ToolContext:
    """What a running tool may use: annotate a parameter with this type to get it; it is no part of
    the schema.

    `trace_id` is constant through sub-agents; `call_id` and `name` are of this call; `folder` is
    where file tools may look; `state` is what tools keep from call to call, shared by all calls of
    one runner. For tools that are agents themselves: `relay(event)` puts an event into the log of
    the run (on the event loop's thread), `ask` is who answers questions, if anybody, and
    `remaining()` what the run's limits leave, by name (`turns`, `tokens`, `seconds` …).
    """

    def __init__(
        self,
        *,
        call_id: str = "",
        name: str = "",
        trace_id: str = "",
        folder: str = ".",
        host: Host | None = None,
        emit: Callable[[Update], None] = lambda _: None,
        state: dict[str, Any] | None = None,
        relay: Callable[[Any], None] = lambda _: None,
        ask: Asker | None = None,
        remaining: Callable[[], Mapping[str, float]] = dict,
    ) -> None:
        self.call_id = call_id
        self.name = name
        self.trace_id = trace_id
        self.folder = folder
        self.host = host
        self.state: dict[str, Any] = {} if state is None else state
        self.relay = relay
        self.ask = ask
        self.remaining = remaining
        self._emit = emit
        self._cancelled = False
        self._callbacks: list[Callable[[], None]] = []

    @property
    def cancelled(self) -> bool:
        """True once the call is to stop; long synchronous loops should look at it."""
        return self._cancelled

    def cancel(self) -> None:
        """Ask the tool to stop: sets `cancelled`, then calls what was registered with `on_cancel`,
        once.
        """
        self._cancelled = True
        while self._callbacks:
            self._callbacks.pop()()

    def on_cancel(self, callback: Callable[[], None]) -> None:
        """Have `callback` called, quickly and without raising, when the call is to stop (at once if
        it already is).

        It runs on the canceller's thread: kill a process, close a connection, set an event.
        """
        self._callbacks.append(callback)
        if self._cancelled:
            self.cancel()

    def progress(self, value: Any = None, *, message: str = "") -> None:
        """Report progress: a str is output text, a float in 0..1 or an int 0 or 1 a fraction,
        anything else JSON data.

        Data is shown as it is, but for a bar (`{"percent": 65}`, `{"done": 3, "total": 10, "unit":
        "rows"}`) and for output (`{"subtype": "stdout_chunk", "content": "…"}`); its `message`
        stands beside the bar. Safe to call from any thread. Raises TypeError if the value is no
        JSON, and Cancelled once the call is to stop, so that a loop which reports progress ends by
        itself.
        """
        self._emit(update(value, message))


def update(value: Any, message: str = "") -> Update:
    """Return `value` as an Update; see `ToolContext.progress`."""
    if isinstance(value, Update):
        return value
    if isinstance(value, str):
        return Update(text=value, message=message)
    if isinstance(value, float | int) and not isinstance(value, bool) and 0 <= value <= 1:
        return Update(fraction=float(value), message=message)
    data = msgspec.to_builtins(value)
    fields = progress_fields({"data": data}) if not meaning(data).rest else {"data": data}
    return Update(**{**fields, **({"message": message} if message else {})})


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool: what the model is told (`spec`) and how a call runs.

    `effect`: `none` (reads only), `kernel` (changes the user's namespace: executed again on
    replay), `outside` (files, network …). Tools whose effect is not `none` are asked about under
    `--approve ask`. `validate` checks and converts the model's arguments (raises ToolError with
    what to correct); `invoke` runs with them and returns a value, an awaitable, or an (async)
    generator whose items are progress and whose last value or `return` is the result. `thread`:
    where it is called: a worker thread, the kernel's main thread, or the agent's event loop
    (coroutine functions always are). `declared`: somebody said what the effect is; where nobody
    did, a function of the notebook counts by what its code uses (`reads`). `render` may return a
    mime bundle for people from the result value. `preview` may return text (a diff) of what a call
    would change; a ToolError it raises is the result of the call. `command`: the parameter that
    holds a shell command, if any (the globs of allow rules then do not match across shell
    operators). `grace`: seconds to clean up when it is stopped. `compare`: what of the result of a
    call that runs again must be as in its record: all of it, its text, or nothing. `agent`: the
    agent that the tool is, with its own `tools`.
    """

    spec: ToolSpec
    invoke: Callable[..., Any]
    validate: Callable[[dict[str, Any]], dict[str, Any]]
    effect: Effect = "none"
    declared: bool = True
    timeout: float | None = None
    thread: Literal["worker", "main", "loop"] = "worker"
    icon: str = ""
    context_parameter: str = ""
    render: Callable[[Any], dict[str, Any]] | None = None
    preview: Callable[[dict[str, Any], ToolContext], str] | None = None
    command: str = ""
    grace: float = 0.03
    compare: Compare = "full"
    agent: Any = None

    @property
    def name(self) -> str:
        """The name the model calls it by."""
        return self.spec.name


class Question(msgspec.Struct, frozen=True):
    """A call that needs a decision: who wants to do what, and (if the tool can tell) what it would
    change.

    `exact`: a mark of this one question; then the answer counts for these arguments only, whatever
    its scope, and a click must bear the mark, for a record may show questions of its own.
    """

    call_id: str
    name: str
    args: dict[str, Any]
    effect: Effect = "outside"
    preview: str = ""
    exact: str = ""


class Decision(msgspec.Struct, frozen=True):
    """The answer: `args` as approved (perhaps edited), `by` who decided, and why.

    `scope`: for this call (once), all of this tool in this run (tool), all of the run, or for this
    tool until the kernel restarts (kernel).
    """

    allow: bool
    args: dict[str, Any] | None = None
    scope: Literal["once", "tool", "run", "kernel"] = "once"
    by: str = "policy"
    reason: str = ""


class Report(Protocol):
    """Where the runner tells what happens to each call: approval (0-2), started (0-1), update and
    relay (any number), end (exactly one).

    Its methods are called on the event loop's thread only, never after a call's `end`, and must not
    raise.
    """

    def approval(self, call_id: str, **fields: Any) -> None:
        """A question was asked (`stage="requested"`, `args`, and a preview as `extra={"preview":
        …}`) or settled: `stage="decided"`, `args`, `decision` allow or deny, `scope`, `by`,
        `reason`.
        """

    def started(self, call_id: str) -> None:
        """The tool begins to run now."""

    def update(self, call_id: str, news: Update) -> None:
        """The running tool has news."""

    def relay(self, call_id: str, event: Any) -> None:
        """The running tool, an agent itself, hands on an event of its own run."""

    def end(self, call_id: str, outcome: Outcome) -> None:
        """The call has ended."""


Asker = Callable[[Question], Awaitable[Decision | None]]  # None: nobody can be asked
Stream = Iterator[Any] | AsyncIterator[Any]
CancelScope = AbstractContextManager[Any]
