"""An agent as a tool of another agent: the parent calls it, the child runs.

A delegated task must be shown, stopped, paid for and recorded like any other. So the child's whole
run is a node below the parent's call, its usage counts toward the parent's limits, and cancelling
the call cancels the child, which ends properly before the call does.

Rule: the child's `span` is the id of the call; its block and call ids begin with that id, so that
they are unique in the log.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

import anyio
import msgspec

from .. import events
from ..errors import ToolError, UsageError
from ..events import Event
from ..models import ToolSpec
from ..tools import ApprovalSource, Decision, Host, Question, Tool, ToolContext, clean_name
from ..wire import plain_value
from .limits import Limits
from .registry import hide_nested_runs
from .typed.typed_answer import find_answer

if TYPE_CHECKING:
    from .stream import Stream

SCHEMA = {  # of the tool's arguments
    "type": "object",
    "properties": {
        "prompt": {
            "type": "string",
            "description": "What the agent should do, with all it needs to know.",
        }
    },
    "required": ["prompt"],
    "additionalProperties": False,
}


class Delegate(Protocol):
    """What the tool made by `as_tool` needs of an agent."""

    name: str
    host: Host | None
    ask: ApprovalSource | None
    limits: Limits

    def with_host(
        self, *, trace_id: str, host: Host | None, ask: ApprovalSource | None, limits: Limits
    ) -> Delegate:
        """Return a copy that runs within another agent's run."""

    def __call__(self, prompt: str, *, check: bool, record: bool) -> Stream:
        """Return the stream of a run."""


def as_tool(agent: Delegate, name: str = "", description: str = "") -> Tool:
    """Return a tool that prompts `agent` and returns its answer.

    Raises UsageError without a usable name.
    """
    name, description = plain_value((name or agent.name, description))
    if not name.strip():
        raise UsageError(
            "A sub-agent needs a name: Agent(…, name='researcher') or as_tool(name='researcher')."
        )
    name = clean_name(name)

    async def ask(prompt: str, context: ToolContext) -> Any:
        return await _delegate(agent, name, prompt, context)

    return Tool(
        spec=ToolSpec(
            name, description or f"Ask the agent {name} to do a task and return its answer.", SCHEMA
        ),
        invoke=ask,
        validate=_validate,
        context_parameter="context",
        thread="loop",
        icon="agent",
        timeout=float("inf"),  # the child has limits of its own
        grace=0.2,  # seconds in which a stopped child ends its run properly
        agent=agent,
    )


def _validate(args: dict[str, Any]) -> dict[str, Any]:
    prompt = args.get("prompt")
    if not isinstance(prompt, str) or not prompt.strip() or len(args) != 1:
        raise ToolError("The one argument is `prompt`, a text that is not empty.")
    return args


async def _delegate(agent: Delegate, name: str, prompt: str, context: ToolContext) -> Any:
    """Run the child with its events relayed to the parent; return its answer. Raises ToolError."""
    child = limit_agent(agent, context)
    stream = child(prompt, check=False, record=False)
    data = {"agent": name, "run": stream.log.run, "call_id": context.call_id}
    context.relay(events.Node(name=name, phase="enter", span=context.call_id, data=data))
    status = "cancelled"
    stream.log.subscribe(lambda event: context.relay(relabel_event(event, context.call_id)))
    try:
        with hide_nested_runs():
            stream.start()
        run = await stream
        status = run.status
    finally:
        with anyio.CancelScope(shield=True):  # the child ends properly, however the call ends
            await stream.aclose()
        context.relay(events.Node(name=name, phase="exit", span=context.call_id, result=status))
    if run.status != "ok":
        raise ToolError(
            f"The agent {name} ended with status {run.status}: {run.reason or 'it gave no reason'}"
        )
    typed = find_answer(run.log)
    return run.answer if typed is None else typed[1]


def limit_agent(agent: Delegate, context: ToolContext) -> Delegate:
    """Return a copy of `agent` for one call.

    It has the parent's trace, and limits within what the parent has left. Host and approval source
    are the parent's unless the agent has its own.
    """
    return agent.with_host(
        trace_id=context.trace_id,
        host=agent.host or context.host,
        ask=agent.ask or _prefix_questions(context),
        limits=tighten(agent.limits, context.remaining()),
    )


def _prefix_questions(context: ToolContext) -> ApprovalSource | None:
    """Return the parent's approval source, with question ids prefixed as the child's events are.

    So the buttons below the call answer the child's questions. None: the parent has no source.
    """
    parent = context.ask
    if parent is None:
        return None

    def ask(question: Question) -> Awaitable[Decision | None]:
        return parent(
            msgspec.structs.replace(question, call_id=f"{context.call_id}/{question.call_id}")
        )

    return ask


def tighten(limits: Limits, remaining: Mapping[str, float]) -> Limits:
    """Return `limits`, each at most the amount of its name in `remaining`, if that has one."""
    current = msgspec.structs.asdict(limits)
    # 0 and None: unlimited. Not rounded: 0.4 dollars would become 0
    changes = {name: min(current[name] or left, left) for name, left in remaining.items()}
    return msgspec.structs.replace(limits, **changes)


def relabel_event(event: Event, call_id: str) -> Event:
    """Return a child's event as logged by the parent, below the call `call_id`."""
    # the parent's log numbers the event, and makes `chunks` from the deltas that it got itself
    changes: dict[str, Any] = {"seq": 0, "run": ""}
    for name in ("span", "parent"):
        changes[name] = f"{call_id}/{outer}" if (outer := getattr(event, name)) else call_id
    fields = type(event).__struct_fields__
    for name in ("block", "call_id", "batch"):
        if name in fields and getattr(event, name):
            changes[name] = f"{call_id}/{getattr(event, name)}"
    if isinstance(event, events.Execute):
        changes["calls"] = tuple(f"{call_id}/{c}" for c in event.calls)
    if "chunks" in fields:
        changes["chunks"] = ""
    return msgspec.structs.replace(event, **changes)
