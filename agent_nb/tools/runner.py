"""Run a batch of tool calls: validate, approve and run them concurrently, one outcome per call.

Why: a model asks for several calls in one turn; a call that fails or hangs must not cost the
others. So every call, even of an unknown tool, ends in exactly one Outcome, after all its updates.

Rules
- Calls that use the kernel's namespace run one after another, in call order.
- A call that times out or is cancelled is asked to stop, gets its `grace`, and is then abandoned;
  its later output is dropped.
- The runner writes no log: it reports to a `Report`, always on the event loop's thread.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from typing import Any, Literal

import anyio
import msgspec

from ..errors import ToolError, did_you_mean, unknown_name
from ..wire import Redaction, dumps
from . import file_digests
from .approval import Approver
from .base import Host, Outcome, Report, Tool, ToolContext, current_call, enter_call
from .execution import call_tool
from .running_call import Job, RunningCall
from .toolset import Toolset
from .values import LIMIT, convert_to_json, fits_limits, message_of

TIMEOUT = 120.0  # seconds for a call
_STOPPED = Outcome("cancelled", Outcome.STOPPED)


@dataclass(eq=False, repr=False)
class ToolRunner:
    """Runs batches of calls for one run.

    `limit`: concurrent calls. `timeout`: seconds per call for tools that set none (`math.inf`: no
    limit). `result_limit`: characters of a result that the model reads. `folder`: where file tools
    may look. `redaction`: the secret filter for what tools print.
    """

    toolset: Toolset
    _: KW_ONLY
    limit: int = 8
    timeout: float = TIMEOUT
    approver: Approver = field(default_factory=Approver)
    host: Host | None = None
    folder: str = "."
    trace_id: str = ""
    result_limit: int = LIMIT
    redaction: Redaction | None = None

    def __post_init__(self) -> None:
        self._state: dict[str, Any] = {}
        # strong references to tasks of abandoned tools: asyncio keeps weak ones only
        self._abandoned: set[asyncio.Task[Outcome]] = set()

    def files(self) -> dict[str, str]:
        """Return the digests, by name, of the files that calls read and that have not changed."""
        return file_digests.list_unchanged_digests(self._state, self.folder)

    #: `files` has digests of this kind; "" for a file that cannot be read or is too large
    digest_file = staticmethod(file_digests.digest_file)

    async def run(
        self,
        jobs: Sequence[Job],
        report: Report,
        *,
        remaining: Callable[[], Mapping[str, float]] = dict,
    ) -> list[Outcome]:
        """Run the calls `jobs` and return their outcomes in call order.

        `remaining` returns how much of each limit of the run is left, for tools that are agents.
        When cancelled, `run` reports an outcome for every call and re-raises the cancellation
        within about 0.1 s plus twice the longest `grace`.
        """
        batch = self._make_calls(jobs, report, remaining)
        tasks: list[asyncio.Task[None]] = []
        try:
            await asyncio.sleep(0)  # an earlier stop must take effect before the tools start
            slots = asyncio.Semaphore(self.limit)
            for call in batch:
                supervised = self._supervise(call, slots)
                tasks.append(asyncio.create_task(supervised, name=f"call {call.job.name}"))
            if tasks:
                await asyncio.wait(tasks)
        finally:
            longest_grace = max((call.tool.grace for call in batch if call.tool), default=0)
            await _wind_up(tasks, 0.05 + 2 * longest_grace)
            for call in batch:
                call.finish(_STOPPED)
        # an error of a tool is an outcome by now: this is a fault of the report or of the runner
        faults = [task.exception() for task in tasks if not task.cancelled()]
        for fault in filter(None, faults):
            raise fault
        return [call.outcome for call in batch if call.outcome is not None]

    def _make_calls(
        self, jobs: Sequence[Job], report: Report, remaining: Callable[[], Mapping[str, float]]
    ) -> list[RunningCall]:
        """Return the calls of a batch; those that use the kernel wait for one another."""
        batch: list[RunningCall] = []
        before: asyncio.Event | None = None
        for job in jobs:
            context = partial(
                ToolContext,
                call_id=job.call_id,
                name=job.name,
                trace_id=self.trace_id,
                folder=self.folder,
                host=self.host,
                state=self._state,
                ask=self.approver.ask,
                remaining=remaining,
            )
            tool = self.toolset.get(job.name)
            in_order = tool is not None and tool.uses_kernel
            call = RunningCall(job, tool, report, context, before if in_order else None)
            before = call.ended if in_order else before  # other calls wait for nothing
            batch.append(call)
        return batch

    async def _supervise(self, call: RunningCall, slots: asyncio.Semaphore) -> None:
        """Run one call to its end, whatever happens, then let the next call in order start."""
        enter_call(f"{current_call() or self.trace_id}/{call.job.call_id}")
        try:
            call.finish(await self._decide_and_run(call, slots))
        except asyncio.CancelledError:
            call.finish(_stop_outcome(call.returned_after_stop, "cancelled", ""))
        finally:
            # the next call in order must not wait for ever, even if the report raised
            call.ended.set()

    async def _decide_and_run(self, call: RunningCall, slots: asyncio.Semaphore) -> Outcome:
        """Validate, approve and run one call; return its outcome."""
        if call.job.fault:
            return Outcome("error", call.job.fault)
        if call.tool is None:
            name, names = call.job.name, self.toolset.names
            hint = did_you_mean(name, names)
            unknown = unknown_name("tool named", name, names, hint=hint, label="Tools")
            return Outcome("error", unknown)
        if call.previous_ended is not None:
            await call.previous_ended.wait()
        try:
            values = await self._approve(call, call.tool)
        except ToolError as error:
            return Outcome("error", message_of(error))
        if isinstance(values, Outcome):
            return values
        async with slots:
            call.begin()
            return await self._run_limited(call, call.tool, values)

    async def _approve(self, call: RunningCall, tool: Tool) -> dict[str, Any] | Outcome:
        """Return the arguments to run with, or the outcome of a denied call.

        Raises ToolError for invalid arguments, or if the preview finds that the call cannot work.
        """
        values = _validate(tool, call.job.args)
        args = convert_to_json(values)
        decision = await self.approver.decide(tool, args, call.context, call.report)
        if not decision.allow:
            return Outcome("denied", decision.denial)
        return values if decision.args is None else _validate(tool, decision.args)

    async def _run_limited(self, call: RunningCall, tool: Tool, values: dict[str, Any]) -> Outcome:
        """Run the tool until it ends, times out, or this coroutine is cancelled."""
        seconds = self.timeout if tool.timeout is None else tool.timeout
        work = asyncio.create_task(
            call_tool(tool, values, call.context, self.result_limit, self.redaction),
            name=f"tool {tool.name}",
        )
        try:
            await asyncio.wait({work}, timeout=None if math.isinf(seconds) else seconds)
        except asyncio.CancelledError:
            call.returned_after_stop = await self._stop(work, tool, call.context)
            raise
        if not work.done():
            late = f"{tool.name} was stopped: it took longer than {seconds:g} seconds."
            return _stop_outcome(await self._stop(work, tool, call.context), "timeout", late)
        return _STOPPED if work.cancelled() else work.result()

    async def _stop(
        self, work: asyncio.Task[Outcome], tool: Tool, context: ToolContext
    ) -> Outcome | None:
        """Ask the tool to stop, wait briefly, then abandon it; return its outcome, if any."""
        self._abandoned.add(work)
        work.add_done_callback(self._abandoned.discard)
        with suppress(Exception):  # callbacks of tools
            context.cancel()
        # a thread sees the flag; cancelling its task would lose what it returns
        if tool.thread != "loop":
            await asyncio.wait({work}, timeout=tool.grace)
        work.cancel()
        await asyncio.wait({work}, timeout=tool.grace)
        return work.result() if work.done() and not work.cancelled() else None


def _stop_outcome(
    returned: Outcome | None, status: Literal["cancelled", "timeout"], why: str
) -> Outcome:
    """Return the outcome of a stopped call: what the tool still returned, if anything, and why."""
    empty = (Outcome.NOTHING, Outcome.STOPPED)
    if returned is None or returned.status not in ("ok", "cancelled") or returned.content in empty:
        return Outcome(status, why or Outcome.STOPPED)
    text = returned.content if isinstance(returned.content, str) else dumps(returned.content)
    content = f"{text}\n[{why}]" if why else returned.content
    return msgspec.structs.replace(returned, status=status, content=content)


def _validate(tool: Tool, args: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments as the tool takes them. Raises ToolError, whatever `validate` raises.

    Arguments that a question or a rule would get only in part are refused.
    """
    if not fits_limits(args):
        raise ToolError(
            f"The arguments of {tool.name!r} have more than {LIMIT:,} items or are nested too deeply."
        )
    try:
        return tool.validate(args)
    except ToolError:
        raise
    except Exception as error:  # a custom validator
        raise ToolError(
            f"The arguments of {tool.name!r} are not valid: {message_of(error)}"
        ) from error


async def _wind_up(tasks: Sequence[asyncio.Task[None]], seconds: float) -> None:
    """Cancel what still runs and wait briefly for it, even if we are cancelled meanwhile."""
    unfinished = [task for task in tasks if not task.done()]
    for task in unfinished:
        task.cancel()
    if unfinished:
        with anyio.CancelScope(shield=True), suppress(asyncio.CancelledError):
            await asyncio.wait(unfinished, timeout=seconds)
