"""The contract of tools: a tool, its context, updates and outcome, approval questions, reports.

Why: tools of other packages build on these types alone, so the rest of `tools` may change.

Rules
- A tool never sees the log or the model; it reports through `ToolContext.progress`, its yields and
  its return value. Only a tool that is an agent adds events to the log (`ToolContext.relay`).
- Whatever a tool raises becomes a result (`KeyboardInterrupt` and `Cancelled`: with status
  `cancelled`). Only the loop's cancellation passes through, after every call has its result.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import InitVar, dataclass, field
from typing import Any, ClassVar, Literal, Protocol

import msgspec

from ..events import meaning, progress_fields
from ..models import ToolSpec
from ..wire import dumps

Effect = Literal["none", "reads", "kernel", "outside"]
QUIET = ("none", "reads")  # effects that the user is not asked about
LIVES = ("reads", "kernel")  # effects whose calls run in order, and again in a replay
Compare = Literal["exact", "full", "text", "none"]
_call: ContextVar[str] = ContextVar("agent_nb_call", default="")


def current_call() -> str:
    """Return the tool call that the running code belongs to, as `run/call`, or "".

    A call of a sub-agent is `run/call/call`.
    """
    return _call.get()


def enter_call(path: str) -> None:
    """Mark the current context as part of the call `path` (see `current_call`)."""
    _call.set(path)


class Update(msgspec.Struct, frozen=True):
    """Progress of a running tool: `text`, `fraction` (0 to 1) or `data`, and a `message`.

    `printed`: the text was printed to stdout; the model reads it beside the result. `picture`: the
    index of a picture among the call's pictures, and the picture, to be shown at once; None as the
    picture removes the earlier ones. The outcome repeats the pictures, unless the call is stopped.
    """

    text: str = ""
    fraction: float | None = None
    data: Any = None
    message: str = ""
    printed: bool = False
    picture: tuple[int, dict[str, Any] | None] | None = None


class Outcome(msgspec.Struct, frozen=True):
    """How a call ended: `content` (text or JSON) for the model, `display` (mime bundle) for people.

    `printed`: what the tool printed, if known from a record and not from its updates.
    `attachments`: its pictures, objects with `media_type` and base64 `data`.
    """

    #: the content of a call that returned None
    NOTHING: ClassVar[str] = "(no value)"
    #: the content of a stopped call that returned nothing
    STOPPED: ClassVar[str] = "Stopped before it was done."

    status: Literal["ok", "error", "denied", "cancelled", "timeout"]
    content: Any = ""
    display: dict[str, Any] | None = None
    duration: float = 0.0
    printed: str = ""
    attachments: tuple[dict[str, Any], ...] = ()

    def after(self, printed: str) -> Outcome:
        """Return the outcome with `printed`, the output of its code, before the content."""
        if not printed:
            return self
        text = self.content if isinstance(self.content, str) else dumps(self.content)
        content = printed if text == self.NOTHING else f"{printed.rstrip(chr(10))}\n{text}"
        return msgspec.structs.replace(self, content=content)


class Pictured(msgspec.Struct, frozen=True):
    """What a tool may return: `content`, as any tool returns it, and `pictures` beside it.

    A picture is bytes (PNG, JPEG, GIF or WebP), an object with base64 `data`, a figure or a PIL
    image.
    """

    content: Any
    pictures: Sequence[Any] = ()


class Host(Protocol):
    """The kernel's main thread, as tools see it."""

    async def run_cell(
        self,
        code: str,
        on_output: Callable[[str], None],
        on_picture: Callable[[int, dict[str, Any] | None], None] = ...,
    ) -> Outcome:
        """Run `code` as a cell in the user's namespace; top-level await works.

        `on_output` receives stdout and stderr as they come, `on_picture` what is shown; see
        `Update.picture`.
        """

    async def call(self, function: Callable[[], Any]) -> Any:
        """Call a synchronous function on the main thread and return its value.

        Raises what it raises, and EOFError if it reads input where there is no keyboard.
        """

    def namespace(self) -> dict[str, Any]:
        """Return the user's namespace."""


@dataclass(kw_only=True, eq=False, repr=False)
class ToolContext:
    """What a running tool may use: a parameter annotated with this type receives it.

    The parameter is not part of the schema. `trace_id` is the same in sub-agents. `folder`: where
    file tools may look. `host`: None outside a notebook. `emit`: receives what `progress` reports.
    `state`: values that tools keep between calls of one runner.

    For tools that are agents: `relay(event)` adds an event to the log (on the event loop's thread),
    `ask` answers questions (None: nobody can), `remaining()` returns what the run's limits leave,
    by name (`turns`, `tokens` …).
    """

    call_id: str = ""
    name: str = ""
    trace_id: str = ""
    folder: str = "."
    host: Host | None = None
    emit: InitVar[Callable[[Update], None]] = lambda _: None
    state: dict[str, Any] = field(default_factory=dict)
    relay: Callable[[Any], None] = lambda _: None
    ask: ApprovalSource | None = None
    remaining: Callable[[], Mapping[str, float]] = dict

    def __post_init__(self, emit: Callable[[Update], None]) -> None:
        self._emit = emit
        self._cancelled = False
        self._callbacks: list[Callable[[], None]] = []

    @property
    def cancelled(self) -> bool:
        """True once the call must stop; long synchronous loops should check it."""
        return self._cancelled

    def cancel(self) -> None:
        """Ask the tool to stop: set `cancelled`, then call each `on_cancel` callback once."""
        self._cancelled = True
        while self._callbacks:
            self._callbacks.pop()()

    def on_cancel(self, callback: Callable[[], None]) -> None:
        """Register a callback for when the call must stop (called at once if it must already).

        It runs on the thread that cancels (at once: on this one) and must be quick and not raise:
        kill a process, close a connection, set an event.
        """
        self._callbacks.append(callback)
        if self._cancelled:
            self.cancel()

    def progress(self, value: Any = None, *, message: str = "") -> None:
        """Report progress from any thread.

        A str is output text, a float in 0..1 or an int 0 or 1 is a fraction, anything else JSON
        data. `{"percent": 65}` and `{"done": 3, "total": 10, "unit": "rows"}` are shown as a bar,
        with `message` beside it, `{"subtype": "stdout_chunk", "content": "…"}` as output.

        Raises TypeError if the value is not JSON, and Cancelled once the call must stop, so that a
        loop that reports progress ends by itself.
        """
        self._emit(update(value, message))


def update(value: Any, message: str = "") -> Update:
    """Return `value` as an Update (see `ToolContext.progress`); an Update is returned unchanged."""
    if isinstance(value, Update):
        return value
    if isinstance(value, str):
        return Update(text=value, message=message)
    if isinstance(value, float | int) and not isinstance(value, bool) and 0 <= value <= 1:
        return Update(fraction=float(value), message=message)
    data = msgspec.to_builtins(value)
    # data with more fields than a bar or output has stay whole: a card may draw the others
    fields = progress_fields({"data": data}) if not meaning(data).rest else {"data": data}
    return Update(**{**fields, **({"message": message} if message else {})})


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool: its description for the model (`spec`) and how a call runs.

    `validate` checks and converts the model's arguments; it raises ToolError with what to correct.
    `invoke` runs with them and returns a value, an awaitable, or an (async) generator whose items
    are progress and whose last value or `return` is the result.

    `effect`: `none`; `reads` or `kernel` (reads or changes the user's namespace; a replay runs the
    call again); `outside` (files, network …). Under `--approve ask` the last two need approval.
    """

    spec: ToolSpec
    invoke: Callable[..., Any]
    validate: Callable[[dict[str, Any]], dict[str, Any]]
    effect: Effect = "none"
    declared: bool = True  # False: a function without a stated effect; its code decides (`reads`)
    timeout: float | None = None
    # where it is called; coroutine functions always on the agent's event loop
    thread: Literal["worker", "main", "loop"] = "worker"
    icon: str = ""
    context_parameter: str = ""
    render: Callable[[Any], dict[str, Any]] | None = None  # a mime bundle for people
    # text of what a call would change; a ToolError it raises is the result of the call
    preview: Callable[[dict[str, Any], ToolContext], str] | None = None
    command: str = ""  # the parameter that holds a shell command, for the globs of policies
    grace: float = 0.03  # seconds to clean up after a stop
    # what must equal the record when a test runs a call again (see `decorator.tool`)
    compare: Compare = "full"
    agent: Any = None  # the agent behind this tool
    each: bool = False  # a yes to the whole run does not cover it
    origin: str = ""  # identifies what runs its calls, if not `invoke`'s code, for a remembered yes

    @property
    def name(self) -> str:
        """The name the model calls it by."""
        return self.spec.name

    @property
    def harmless(self) -> bool:
        """Whether its calls change nothing: the user is not asked about them."""
        return self.effect in QUIET

    @property
    def uses_kernel(self) -> bool:
        """Whether its calls use the user's namespace: they run in order, and again in a replay."""
        return self.effect in LIVES


class Question(msgspec.Struct, frozen=True):
    """A call that needs a decision; `preview`: what it would change, if the tool can say.

    `tool`: the tool of the call, whose schema describes and checks edited arguments (None:
    unknown). `exact`: a mark unique to the question. With it the answer counts for these arguments
    only, and a click must carry the mark, since a record may show old questions.
    """

    call_id: str
    name: str
    args: dict[str, Any]
    effect: Effect = "outside"
    preview: str = ""
    exact: str = ""
    tool: Tool | None = None

    def find_fault(self, args: dict[str, Any]) -> str:
        """Return why the tool cannot be called with `args`, "" if no fault is known."""
        try:
            if self.tool is not None:
                self.tool.validate(args)
        except Exception as error:  # a custom validator
            return str(error) or type(error).__name__
        return ""


class Decision(msgspec.Struct, frozen=True):
    """The answer to a question: the approved, perhaps edited, `args`, who decided, and why.

    `scope`: this call (once), this tool with these arguments in this run (args), this tool in this
    run (tool), the whole run (run), or this tool in this notebook (kernel).
    """

    #: the reason of a denial for which the user wrote none
    NO: ClassVar[str] = "the user said no"

    allow: bool
    args: dict[str, Any] | None = None
    scope: Literal["once", "args", "tool", "run", "kernel"] = "once"
    by: str = "policy"
    reason: str = ""

    @property
    def denial(self) -> str:
        """The denial as the model reads it; the user's own words follow `NO`."""
        reason = self.reason.strip() or self.NO
        if reason != self.NO and self.by in ("click", "stdin", "remote"):
            reason = f"{self.NO}: {reason}"
        return f"Not run: {reason}" + ("" if reason.endswith((".", "!", "?")) else ".")


class Report(Protocol):
    """Receives what happens to each call of a batch.

    Per call: approval (0-2), started (0-1), update and relay (any number), end (exactly 1). All
    methods are called on the event loop's thread, never after the call's `end`, and must not raise.
    """

    def approval(self, call_id: str, **fields: Any) -> None:
        """Report a question or its answer.

        Question: `stage="requested"`, `args`, `extra={"preview": …}`. Answer: `stage="decided"`,
        `args`, `decision` (allow or deny), `scope`, `by`, `reason`.
        """

    def started(self, call_id: str) -> None:
        """Report that the tool starts."""

    def update(self, call_id: str, news: Update) -> None:
        """Report progress."""

    def relay(self, call_id: str, event: Any) -> None:
        """Report an event of a sub-agent's run."""

    def end(self, call_id: str, outcome: Outcome) -> None:
        """Report the outcome."""


ApprovalSource = Callable[[Question], Awaitable[Decision | None]]  # None: nobody can be asked
