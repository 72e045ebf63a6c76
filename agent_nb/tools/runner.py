"""Run the calls of a batch: check, approve, run at the same time, and give each exactly one
outcome.

Rules
- Every call ends in one Outcome, whatever it names, is given, raises, or fails to do; what a tool
  said is reported before its end.
- Calls run concurrently up to `limit`, except that those which change the kernel's namespace run
  one after another in call order.
- Stopping is prompt: when `run` is cancelled or a call takes too long, the tool is asked to stop,
  given its `grace`, and left behind if it does not. What a tool that was left behind says later is
  dropped.
- The runner knows no log: it speaks to a `Report`, always on the event loop's thread.
"""

from __future__ import annotations

import asyncio
import contextvars
import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal, NamedTuple

import anyio
import msgspec

from ..errors import Cancelled, ToolError, did_you_mean, unknown_name
from ..wire.json_text import dumps
from ..wire.redact import Redaction
from . import read_files, results
from .approval import Approver
from .base import Host, Outcome, Report, Tool, ToolContext, Update, current_call, enter_call
from .execution import perform
from .toolset import Toolset
from .values import LIMIT, message_of, plain

TIMEOUT = 120.0
_BACKLOG = 10_000  # updates that a thread may be ahead of the event loop
_STOPPED = Outcome("cancelled", "Stopped before it was done.")


class Job(NamedTuple):
    """A call to run; with a `fault` it does not run and the fault is its result."""

    call_id: str
    name: str
    args: dict[str, Any]
    fault: str = ""


class ToolRunner:
    """Runs batches of calls for one run.

    `limit`: calls at the same time. `timeout`: seconds per call for tools that set none
    (`math.inf`: no limit). `result_limit`: characters of a result that the model reads. `folder`:
    where file tools may look. `remaining`: what the run's limits leave, for tools that are agents.
    `redaction`: the secret filter of what tools print.
    """

    def __init__(
        self,
        toolset: Toolset,
        *,
        limit: int = 8,
        timeout: float = TIMEOUT,
        approver: Approver | None = None,
        host: Host | None = None,
        folder: str = ".",
        trace_id: str = "",
        result_limit: int = LIMIT,
        remaining: Callable[[], Mapping[str, float]] = dict,
        redaction: Redaction | None = None,
    ) -> None:
        self.toolset = toolset
        self.limit = limit
        self.timeout = timeout
        self.approver = approver or Approver()
        self.host = host
        self.folder = folder
        self.trace_id = trace_id
        self.result_limit = result_limit
        self.remaining = remaining
        self.redaction = redaction
        self._state: dict[str, Any] = {}
        self._left: set[asyncio.Task[Outcome]] = set()  # strong references, until they end

    def files(self) -> dict[str, str]:
        """Return the digests, by name, of the files that calls have read and that are
        the same now.
        """
        return read_files.unchanged(self._state, self.folder)

    async def run(
        self, calls: Sequence[tuple[str, str, dict[str, Any], str]], report: Report
    ) -> list[Outcome]:
        """Run `calls` (each a `Job` or a tuple like one) and return their outcomes in call order.

        When cancelled it reports an outcome for every call and lets the cancellation pass, within
        about 0.1 s and twice the longest `grace` of its tools.
        """
        batch = [self._call(Job(*call), report) for call in calls]
        tasks: list[asyncio.Task[None]] = []
        try:
            await asyncio.sleep(0)  # a stop that came before must come before the tools
            tasks += self._start(batch)
            if tasks:
                await asyncio.wait(tasks)
        finally:
            await _wind_up(
                tasks, 0.05 + 2 * max((call.tool.grace for call in batch if call.tool), default=0)
            )
            for call in batch:
                call.finish(_STOPPED)
        faults = [task.exception() for task in tasks if not task.cancelled()]
        for fault in filter(None, faults):
            raise fault
        return [call.outcome for call in batch if call.outcome is not None]

    def _start(self, batch: Sequence[_Call]) -> list[asyncio.Task[None]]:
        slots = asyncio.Semaphore(self.limit)
        before: asyncio.Event | None = None
        for call in batch:
            if call.in_order:
                call.before, before = before, call.over
        return [
            asyncio.create_task(self._supervise(call, slots), name=f"call {call.job.name}")
            for call in batch
        ]

    def _call(self, job: Job, report: Report) -> _Call:
        call = _Call(job, self.toolset.get(job.name), report)
        call.context = ToolContext(
            call_id=job.call_id,
            name=job.name,
            trace_id=self.trace_id,
            folder=self.folder,
            host=self.host,
            emit=call.emit,
            state=self._state,
            relay=call.relay,
            ask=self.approver.ask,
            remaining=self.remaining,
        )
        return call

    async def _supervise(self, call: _Call, slots: asyncio.Semaphore) -> None:
        enter_call(f"{current_call() or self.trace_id}/{call.job.call_id}")
        try:
            call.finish(await self._settle(call, slots))
        except asyncio.CancelledError:
            call.finish(_stopped(call.last_words, "cancelled", ""))
        finally:
            # the next in order must not wait for ever, even if the report has raised
            call.over.set()

    async def _settle(self, call: _Call, slots: asyncio.Semaphore) -> Outcome:
        """Take one call from the model's words to its outcome."""
        if call.job.fault:
            return Outcome("error", call.job.fault)
        if call.tool is None:
            return Outcome("error", self._unknown(call.job.name))
        if call.before is not None:
            await call.before.wait()
        try:
            values = await self._approved(call, call.tool)
        except ToolError as error:
            return Outcome("error", message_of(error))
        if isinstance(values, Outcome):
            return values
        async with slots:
            call.report.started(call.job.call_id)
            call.start = time.monotonic()
            return await self._limited(call, call.tool, values)

    async def _approved(self, call: _Call, tool: Tool) -> dict[str, Any] | Outcome:
        """Return the arguments to run with, or the outcome of a call that may not. Raises ToolError
        for arguments that do not fit.
        """
        values = _validated(tool, call.job.args)
        decision = await self.approver.decide(tool, plain(values), call.context, call.report)
        if not decision.allow:
            return Outcome("denied", f"Not run: {decision.reason or 'the user said no'}.")
        return values if decision.args is None else _validated(tool, decision.args)

    async def _limited(self, call: _Call, tool: Tool, values: dict[str, Any]) -> Outcome:
        """Run the tool until it ends, its time is over, or this coroutine is cancelled."""
        seconds = self.timeout if tool.timeout is None else tool.timeout
        work = asyncio.create_task(
            perform(tool, values, call.context, self.result_limit, self.redaction),
            name=f"tool {tool.name}",
        )
        try:
            await asyncio.wait({work}, timeout=None if math.isinf(seconds) else seconds)
        except asyncio.CancelledError:
            call.last_words = await self._stop(work, tool, call.context)
            raise
        if not work.done():
            late = f"{tool.name} was stopped: it took longer than {seconds:g} seconds."
            return _stopped(await self._stop(work, tool, call.context), "timeout", late)
        return _STOPPED if work.cancelled() else work.result()

    async def _stop(
        self, work: asyncio.Task[Outcome], tool: Tool, context: ToolContext
    ) -> Outcome | None:
        """Ask the tool to stop, wait a moment, leave it behind; return its outcome if
        it gave one.
        """
        self._left.add(work)
        work.add_done_callback(self._left.discard)
        with suppress(Exception):  # callbacks of tools
            context.cancel()
        # a thread sees the flag; cancelling its task would lose what it returns
        if tool.thread != "loop":
            await asyncio.wait({work}, timeout=tool.grace)
        work.cancel()
        await asyncio.wait({work}, timeout=tool.grace)
        return work.result() if work.done() and not work.cancelled() else None

    def _unknown(self, name: str) -> str:
        names = self.toolset.names
        return unknown_name(
            "tool named", name, names, hint=did_you_mean(name, names), label="Tools"
        )


class _Call:
    """One call on its way: what it says reaches the report in order, on the loop's thread, and
    never after its end.
    """

    context: ToolContext

    def __init__(self, job: Job, tool: Tool | None, report: Report) -> None:
        self.job = job
        self.tool = tool
        self.report = report
        self.in_order = tool is not None and tool.effect == "kernel"
        self.before: asyncio.Event | None = None
        self.over = asyncio.Event()
        self.start = 0.0
        self.outcome: Outcome | None = None
        self.last_words: Outcome | None = None  # what a stopped tool still returned
        # reports run in it, not in that of the tool, whose prints may be captured
        self._home = contextvars.copy_context()
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._lock = threading.Lock()
        self._pending: list[Update] = []

    def emit(self, update: Update) -> None:
        """Take news from any thread. Raises Cancelled once the call is to stop."""
        if self.context.cancelled or self.outcome is not None:
            raise Cancelled
        told = results.news(update)
        if told == Update():
            return
        with self._lock:
            self._pending.append(told)
            backlog = len(self._pending)
        if threading.get_ident() == self._thread:
            self._home.copy().run(self._drain)
        elif backlog == 1:
            with suppress(RuntimeError):  # the loop is closed: nobody listens any more
                self._loop.call_soon_threadsafe(self._drain, context=self._home.copy())
        elif backlog > _BACKLOG:
            time.sleep(0.001)

    def relay(self, event: Any) -> None:
        """Hand on an event of an agent that is this tool; on the loop's thread, until the call has
        ended.
        """
        if self.outcome is None:
            self._home.copy().run(self.report.relay, self.job.call_id, event)

    def finish(self, outcome: Outcome) -> None:
        """End the call with `outcome`, unless it has ended."""
        if self.outcome is not None:
            return
        self._drain()
        took = time.monotonic() - self.start if self.start else 0.0
        self.outcome = msgspec.structs.replace(outcome, duration=took)
        self.over.set()
        self.report.end(self.job.call_id, self.outcome)

    def _drain(self) -> None:
        with self._lock:
            told, self._pending = self._pending, []
        if self.outcome is None:
            for update in told:
                self.report.update(self.job.call_id, update)


def _stopped(
    returned: Outcome | None, status: Literal["cancelled", "timeout"], why: str
) -> Outcome:
    """Return the outcome of a call that was asked to stop: what the tool still returned, if that
    says anything, and why.
    """
    empty = (results.NOTHING, _STOPPED.content)
    if returned is None or returned.status not in ("ok", "cancelled") or returned.content in empty:
        return Outcome(status, why or _STOPPED.content)
    kept = returned.content if isinstance(returned.content, str) else dumps(returned.content)
    return msgspec.structs.replace(
        returned, status=status, content=f"{kept}\n[{why}]" if why else returned.content
    )


def _validated(tool: Tool, args: dict[str, Any]) -> dict[str, Any]:
    try:
        return tool.validate(args)
    except ToolError:
        raise
    except Exception as error:  # a validator that is not ours
        raise ToolError(
            f"The arguments of {tool.name!r} are not valid: {message_of(error)}"
        ) from error


async def _wind_up(tasks: Sequence[asyncio.Task[None]], seconds: float) -> None:
    """Cancel what still runs and wait a moment for it, whatever cancels us meanwhile."""
    left = [task for task in tasks if not task.done()]
    for task in left:
        task.cancel()
    if left:
        with anyio.CancelScope(shield=True), suppress(asyncio.CancelledError):
            await asyncio.wait(left, timeout=seconds)
