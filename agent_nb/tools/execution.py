"""Run one tool once: wherever it belongs, whatever kind of function it is, to an Outcome.

Why: the runner has calls to supervise; how a generator is stepped in a thread or a coroutine awaited is a matter of its own.

Rules
- `perform` raises nothing but the cancellation that its caller asked for; everything a tool raises becomes an Outcome.
- What a generator yields is progress. Its result is what it returns, else the last thing it yielded that is not a fraction.
- A synchronous generator is stepped on one thread from first to last, and closed there; between steps it is asked to stop if cancelled.
- Values are described (repr, to_html, savefig …) where the tool ran, never on the event loop unless that costs nothing.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AbstractContextManager, aclosing, nullcontext
from functools import partial
from typing import Any

from ..errors import Cancelled
from ..folder.imports import theirs
from . import results
from .base import Outcome, Tool, ToolContext, Update
from .decorator import is_async
from .threads import Caught, Worker, catch
from .values import LIMIT

Quiet = Callable[[], AbstractContextManager[None]]
_CHEAP = (str, int, float, bool, type(None), Outcome)


async def perform(
    tool: Tool, values: dict[str, Any], context: ToolContext, limit: int = LIMIT, quiet: Quiet = nullcontext
) -> Outcome:
    """Call `tool` with validated `values` and return how it ended (its duration not yet set).

    `limit` bounds what the model reads of the result, in characters; what the tool prints passes `quiet`. Cancelling this coroutine
    leaves a thread behind that may still run; `context.cancel()` asks it to stop.
    """
    own = {tool.context_parameter: context} if tool.context_parameter else {}
    call = partial(tool.invoke, **values, **own)
    finish = partial(results.success, limit=limit, render=tool.render)
    try:
        if tool.thread == "loop" or is_async(tool.invoke):
            with quiet():
                return await _resolve(call(), context, finish)
        caught = await _elsewhere(tool, partial(_quietly, quiet, partial(_drive, call, context, finish)), context)
        if caught.error is not None:
            return results.failure(caught.error)
        if isinstance(caught.value, Outcome):
            return caught.value
        with quiet():
            return await _resolve(caught.value, context, finish)
    except BaseException as error:  # a KeyboardInterrupt that leaves a task would end the event loop
        if isinstance(error, asyncio.CancelledError) and _cancel_requested():
            raise
        return results.failure(error)


async def _elsewhere(tool: Tool, function: Callable[[], Any], context: ToolContext) -> Caught:
    """Run `function` on the kernel's main thread or in a worker."""
    if tool.thread == "main" and context.host is not None:
        caught = await context.host.call(partial(catch, function))
        assert isinstance(caught, Caught)
        return caught
    return await _work(function, f"tool {tool.name}")


async def _work(function: Callable[[], Any], name: str) -> Caught:
    worker = Worker(function, name)
    try:
        return await worker.future
    except asyncio.CancelledError:
        worker.stop()
        raise


def _quietly(quiet: Quiet, function: Callable[[], Any]) -> Any:
    with quiet():
        return function()


@theirs
def _drive(call: Callable[[], Any], context: ToolContext, finish: Callable[[Any], Outcome]) -> Any:
    """Call a synchronous tool; return its Outcome, or an awaitable or async generator that the event loop has to finish."""
    value = call()
    if inspect.isgenerator(value):
        return finish(_step(value, context))
    if not _unfinished(value):
        return finish(value)
    if context.cancelled and inspect.iscoroutine(value):
        value.close()
        raise Cancelled
    return value


@theirs
def _step(generator: Generator[Any, Any, Any], context: ToolContext) -> Any:
    last = None
    try:
        while not context.cancelled:
            item = next(generator)
            last = _told(item, context, last)
    except StopIteration as stop:
        return last if stop.value is None else stop.value
    finally:
        generator.close()
    raise Cancelled


@theirs
async def _resolve(value: Any, context: ToolContext, finish: partial[Outcome]) -> Outcome:
    """Await or iterate what is not finished, on the event loop."""
    if inspect.isasyncgen(value):
        value = await _iterate(value, context)
    elif inspect.isawaitable(value):
        value = await value
    if isinstance(value, _CHEAP) and finish.keywords["render"] is None:
        return finish(value)
    caught = await _work(partial(finish, value), "tool result")
    if caught.error is not None:
        raise caught.error
    outcome = caught.value
    assert isinstance(outcome, Outcome)
    return outcome


@theirs
async def _iterate(generator: AsyncGenerator[Any, Any], context: ToolContext) -> Any:
    last = None
    async with aclosing(generator):
        async for item in generator:
            last = _told(item, context, last)
    return last


def _told(item: Any, context: ToolContext, last: Any) -> Any:
    """Report what a generator yielded; return what would be its result if nothing else came."""
    told = results.news(item)
    context.progress(told)
    if told.fraction is not None:
        return last
    return (told.text if told.data is None else told.data) if isinstance(item, Update) else item


def _unfinished(value: Any) -> bool:
    return inspect.isasyncgen(value) or inspect.isawaitable(value)


def _cancel_requested() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
