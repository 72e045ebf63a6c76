"""What some runs need before a model answers: its name from its server, its loaded weights, a free
place at its endpoint, the MCP servers of the tools.

Rules: a run that needs none of it does not wait at all.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from .. import events
from ..errors import ModelError
from ..events import EventLog
from ..host import read_launch
from ..models import Failures, Limiter, Model, is_script
from .run_spec import Plan


def refuse_unless_live(model: Model) -> None:
    """Raise ModelError if nothing runs live in this process and `model` is not a script."""
    if (why := read_launch().why_not_live) and not is_script(model):
        raise ModelError(
            f"{getattr(model, 'name', '') or 'The model'} is not asked. {why}", code="not_live"
        )


async def name_of(plan: Plan) -> str:
    """Return the name that a model with `named` gets from its server, else "".

    Raises ModelError, unless another model of the plan may answer in its place.
    """
    named = getattr(plan.model, "named", None)
    try:
        return "" if named is None else str(await named())
    except ModelError as fault:
        if plan.spares and Failures.is_outage(fault):
            return ""
        raise


async def open_late_tools(plan: Plan, log: EventLog) -> Plan:
    """Return the plan with its late tools; log what is waited for.

    Raises UsageError and ToolError for a server that cannot be used.
    """
    if plan.late is None:
        return plan
    return await plan.late(lambda text: log.append(events.Delta(of="status", text=text)))


@asynccontextmanager
async def wait_for_place(model: Model, log: EventLog) -> AsyncGenerator[None, None]:
    """Log, in words, that a request waits for its place at a limited endpoint; wait here for a
    model that does not do so itself.
    """
    async with Limiter.wait_for_slot(
        model, lambda text: log.append(events.Delta(of="status", text=text))
    ):
        yield


@contextmanager
def loading_shown(model: Model, log: EventLog) -> Iterator[None]:
    """Log the progress of a model that must load first: one with `loading`.

    `loading` may report from any thread.
    """
    loading = getattr(model, "loading", None)
    if loading is None or loading.now.state == "ready":
        yield
        return
    here = asyncio.get_running_loop()

    def report(progress: Any) -> None:
        text = f"loading the model {progress.fraction:.0%}" if progress.state == "loading" else ""
        here.call_soon_threadsafe(log.append, events.Delta(of="status", text=text))

    detach = loading.subscribe(report)
    try:
        yield
    finally:
        detach()
