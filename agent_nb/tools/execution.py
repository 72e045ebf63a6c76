"""Run one tool call: any kind of function, on the thread it belongs to, to an Outcome.

Rules
- `call_tool` raises only the cancellation that its caller asked for; whatever a tool raises becomes
  an Outcome.
- What a generator yields is progress. Its result is its return value, else the last item that is
  not a fraction. With ToolEvents (seed 003), the generator itself marks the result.
- A synchronous generator runs and is closed on one thread; it is checked for cancellation between
  steps.
- Values are rendered (repr, to_html, savefig …) where the tool ran, not on the event loop, unless
  they are cheap.
- Printed output is progress too, up to `SHOWN` characters. If no view shows the run, as in a
  script, it also goes to the streams.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import aclosing, suppress
from functools import partial
from typing import Any

from ..errors import Cancelled
from ..events import Result, adapt_tool_event, is_tool_event
from ..host import mark_foreign
from ..wire import Redaction
from . import results
from .base import Outcome, Tool, ToolContext, Update
from .capture import OutputCapture
from .decorator import is_async
from .threads import Caught, Worker, catch_outcome
from .values import LIMIT

SHOWN = 1_000_000  # characters of what a tool prints
_CHEAP = (str, int, float, bool, type(None), Outcome)


async def call_tool(
    tool: Tool,
    values: dict[str, Any],
    context: ToolContext,
    limit: int = LIMIT,
    redaction: Redaction | None = None,
) -> Outcome:
    """Call `tool` with validated `values` and return its outcome, without the duration.

    `limit`: characters of the result that the model reads. `redaction`: the filter for output to
    the streams. Cancelling this coroutine abandons the tool's thread; `context.cancel()` asks it to
    stop.
    """
    own = {tool.context_parameter: context} if tool.context_parameter else {}
    call = partial(tool.invoke, **values, **own)
    finish = partial(results.convert_result, limit=limit, render=tool.render)
    prints = _Prints(context, redaction or Redaction(), through=not OutputCapture.is_shown())
    try:
        if tool.thread == "loop" or is_async(tool.invoke):
            with prints.heard():
                return await _resolve(call(), context, finish)
        caught = await _elsewhere(tool, partial(_drive, call, context, finish, prints), context)
        if caught.error is not None:
            return results.convert_error(caught.error)
        if isinstance(caught.value, Outcome):
            return caught.value
        with prints.heard():
            return await _resolve(caught.value, context, finish)
    except BaseException as error:
        # a KeyboardInterrupt that leaves a task would end the event loop
        if isinstance(error, asyncio.CancelledError) and _cancel_requested():
            raise
        return results.convert_error(error)


async def _elsewhere(tool: Tool, function: Callable[[], Any], context: ToolContext) -> Caught:
    """Run `function` on the kernel's main thread or in a worker."""
    if tool.thread == "main" and context.host is not None:
        caught = await context.host.call(partial(catch_outcome, function))
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


class _Prints:
    """Reports what one call prints as its progress."""

    def __init__(self, context: ToolContext, redaction: Redaction, *, through: bool) -> None:
        self._context = context
        self._redaction = redaction
        self._through = through
        self._room = SHOWN

    def heard(self) -> OutputCapture:
        """Capture what this context prints; entered where the tool runs, so that an abandoned
        tool prints nothing below the cell.
        """
        return OutputCapture(
            partial(self._take, True),
            partial(self._take, False),
            through=self._through,
            redaction=self._redaction,
        )

    def _take(self, out: bool, text: str) -> None:
        if self._room < 0:
            return
        if len(text) > self._room:
            text, self._room = (
                f"{text[: self._room]}\n[… no more is shown after {SHOWN:,} characters …]\n",
                -1,
            )
        else:
            self._room -= len(text)
        with suppress(Cancelled):  # code that prints does not expect it
            self._context.progress(Update(text=text, printed=out))


@mark_foreign
def _drive(
    call: Callable[[], Any], context: ToolContext, finish: Callable[[Any], Outcome], prints: _Prints
) -> Any:
    """Call a synchronous tool; return its Outcome, or what the event loop must finish.

    That is an awaitable or an async generator.
    """
    with prints.heard():
        value = call()
        if inspect.isgenerator(value):
            return finish(_step(value, context))
        if not (inspect.isasyncgen(value) or inspect.isawaitable(value)):
            return finish(value)
    if context.cancelled and inspect.iscoroutine(value):
        value.close()
        raise Cancelled
    return value


@mark_foreign
def _step(generator: Generator[Any, Any, Any], context: ToolContext) -> Any:
    last = None
    try:
        while not context.cancelled:
            item = next(generator)
            last = _reported(item, context, last)
    except StopIteration as stop:
        return last if stop.value is None else stop.value
    finally:
        generator.close()
    raise Cancelled


@mark_foreign
async def _resolve(value: Any, context: ToolContext, finish: partial[Outcome]) -> Outcome:
    """Await or iterate an unfinished value on the event loop."""
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


@mark_foreign
async def _iterate(generator: AsyncGenerator[Any, Any], context: ToolContext) -> Any:
    last = None
    async with aclosing(generator):
        async for item in generator:
            last = _reported(item, context, last)
    return last


def _reported(item: Any, context: ToolContext, last: Any) -> Any:
    """Report an item of a generator; return the result if it ends now."""
    if is_tool_event(item):
        event = adapt_tool_event(item)
        if isinstance(event, Result):
            return Outcome(event.status, event.content)
        context.progress(
            Update(text=event.text, fraction=event.fraction, data=event.data, message=event.message)
        )
        return last
    news = results.convert_update(item)
    context.progress(news)
    if news.fraction is not None and isinstance(item, float | int | Update):
        return last
    return (news.text if news.data is None else news.data) if isinstance(item, Update) else item


def _cancel_requested() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
