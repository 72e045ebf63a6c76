"""One tool call in progress: its job, its context and what it reports.

Why: a tool reports from any thread, and views and logs expect ordered reports from one thread.
Reports run in the context of the batch, not in that of the tool, whose prints may be captured.
"""

from __future__ import annotations

import asyncio
import contextvars
import math
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import InitVar, dataclass
from typing import Any, NamedTuple

import msgspec

from ..errors import Cancelled
from ..wire import replace_surrogates
from .base import Outcome, Report, Tool, ToolContext, Update, update
from .values import convert_to_json

_BACKLOG = 10_000  # unreported updates; with more, the tool's thread waits for the event loop


class Job(NamedTuple):
    """A call to run; one with a `fault` does not run, and the fault is its result."""

    call_id: str
    name: str
    args: dict[str, Any]
    fault: str = ""


@dataclass(eq=False, repr=False)
class RunningCall:
    """One call of a batch.

    `make_context` takes `emit`, for its progress, and `relay`, for events of its sub-agent.
    `previous_ended`: set when the previous call that uses the kernel has ended (None: this call
    need not wait). `ended`: set when this call has ended. `outcome`: None until then.
    `returned_after_stop`: what the tool still returned after it was asked to stop, else None.
    """

    job: Job
    tool: Tool | None
    report: Report
    make_context: InitVar[Callable[..., ToolContext]]
    previous_ended: asyncio.Event | None

    def __post_init__(self, make_context: Callable[..., ToolContext]) -> None:
        self.context = make_context(emit=self.emit, relay=self.relay)
        self.ended = asyncio.Event()
        self.outcome: Outcome | None = None
        self.returned_after_stop: Outcome | None = None
        self._start = 0.0
        self._home = contextvars.copy_context()  # the context of the batch, in which reports run
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._lock = threading.Lock()
        self._pending: list[Update] = []

    def begin(self) -> None:
        """Report that the tool starts now."""
        self.report.started(self.job.call_id)
        self._start = time.monotonic()

    def emit(self, progress: Update) -> None:
        """Report progress, from any thread. Raises Cancelled if the call must stop or has ended."""
        if self.context.cancelled or self.outcome is not None:
            raise Cancelled
        news = convert_update(progress)
        if news == Update():
            return
        with self._lock:
            self._pending.append(news)
            backlog = len(self._pending)
        if threading.get_ident() == self._thread:
            self._home.copy().run(self._drain)
        elif backlog == 1:  # the first update orders a drain, which also takes those after it
            with suppress(RuntimeError):  # the loop is closed and nothing listens any more
                self._loop.call_soon_threadsafe(self._drain, context=self._home.copy())
        elif backlog > _BACKLOG:
            time.sleep(0.001)  # slow a tool down that reports faster than reports are shown

    def relay(self, event: Any) -> None:
        """Relay an event of the sub-agent behind this tool until the call has ended.

        Called on the loop's thread.
        """
        if self.outcome is None:
            self._home.copy().run(self.report.relay, self.job.call_id, event)

    def finish(self, outcome: Outcome) -> None:
        """End the call with `outcome`, unless it has ended."""
        if self.outcome is not None:
            return
        self._drain()
        took = time.monotonic() - self._start if self._start else 0.0
        self.outcome = msgspec.structs.replace(outcome, duration=took)
        self.ended.set()
        self.report.end(self.job.call_id, self.outcome)

    def _drain(self) -> None:
        """Report the pending updates, on the event loop's thread."""
        with self._lock:
            pending, self._pending = self._pending, []
        if self.outcome is None:
            for news in pending:
                self.report.update(self.job.call_id, news)


def convert_update(value: Any) -> Update:
    """Convert a value that a tool reported or yielded to a clean Update."""
    try:
        report = update(value)
    except (TypeError, ValueError, RecursionError, OverflowError):
        report = update(convert_to_json(value))
    data = None if report.data is None else convert_to_json(report.data)
    has_fraction = report.fraction is not None and math.isfinite(report.fraction)
    return Update(
        text=replace_surrogates(report.text),
        fraction=report.fraction if has_fraction else None,
        data=data,
        message=replace_surrogates(report.message),
        printed=report.printed,
        picture=_check_picture(report.picture),
    )


def _check_picture(picture: Any) -> tuple[int, dict[str, Any] | None] | None:
    """Return the picture of an update, None if it has another form."""
    try:
        return msgspec.convert(picture, tuple[int, dict[str, Any] | None])
    except msgspec.ValidationError:
        return None
