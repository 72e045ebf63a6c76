"""Run one tool call on the right thread, and convert its result or exception to an Outcome.

Why: a tool may be a plain function, a coroutine or a generator, may print, and may never return.

Rules
- `call_tool` raises only the cancellation that its caller asked for.
- What a generator yields is progress. Its result is its return value, else the last item that is
  not a fraction. A generator of tool events marks the result itself (`events.is_tool_event`).
- Values are rendered (repr, to_html, savefig …) on the thread where the tool ran. Those of async
  tools are rendered in a worker, not on the event loop, unless they are cheap (`_CHEAP`), the tool
  has no `render` and the call has shown no chart.
- Printed output is progress too, up to `SHOWN` characters. If no view shows the run, as in a
  script, stdout and stderr get it as well.
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
from .call_displays import CallDisplays
from .capture import OutputCapture
from .decorator import is_async
from .threads import Caught, Worker, catch_outcome
from .values import LIMIT

SHOWN = 1_000_000  # characters of what a tool prints
# types whose values are converted on the event loop: that takes no time
_CHEAP = (str, int, float, bool, type(None), Outcome)


async def call_tool(
    tool: Tool,
    values: dict[str, Any],
    context: ToolContext,
    limit: int = LIMIT,
    redaction: Redaction | None = None,
) -> Outcome:
    """Call `tool` with validated `values` and return its outcome, without the duration.

    `limit`: characters of the result that the model reads. Cancelling this coroutine abandons the
    tool's thread; `context.cancel()` asks it to stop.
    """
    context_argument = {tool.context_parameter: context} if tool.context_parameter else {}
    call = partial(tool.invoke, **values, **context_argument)
    prints = _PrintedOutput(context, redaction or Redaction(), through=not OutputCapture.is_shown())
    finish = partial(
        results.convert_result, limit=limit, render=tool.render, figures=prints.displays.figures
    )
    outcome = await _call_to_end(tool, call, context, finish, prints)
    return prints.displays.add_to(outcome)


async def _call_to_end(
    tool: Tool,
    call: Callable[[], Any],
    context: ToolContext,
    finish: partial[Outcome],
    prints: _PrintedOutput,
) -> Outcome:
    """Call a tool and return its outcome; `finish` converts what it returned."""
    try:
        # a Tool that `as_tool` has not made may be async with another `thread`
        if tool.thread == "loop" or is_async(tool.invoke):
            with prints.captured():
                return await _finish_on_loop(call(), context, finish)
        caught = await _on_thread(tool, partial(_call_sync, call, context, finish, prints), context)
        if caught.error is not None:
            return results.convert_error(caught.error)
        if isinstance(caught.value, Outcome):
            return caught.value
        with prints.captured():
            return await _finish_on_loop(caught.value, context, finish)
    except BaseException as error:
        # a KeyboardInterrupt that leaves a task would end the event loop
        if isinstance(error, asyncio.CancelledError) and _cancel_requested():
            raise
        return results.convert_error(error)


async def _on_thread(tool: Tool, function: Callable[[], Any], context: ToolContext) -> Caught:
    """Run `function` on the kernel's main thread or in a worker."""
    if tool.thread == "main" and context.host is not None:
        caught = await context.host.call(partial(catch_outcome, function))
        assert isinstance(caught, Caught)
        return caught
    return await _run_in_worker(function, f"tool {tool.name}")


async def _run_in_worker(function: Callable[[], Any], name: str) -> Caught:
    """Run `function` in a thread of its own; a cancelled caller stops it and does not wait."""
    worker = Worker(function, name)
    try:
        return await worker.future
    except asyncio.CancelledError:
        worker.stop()
        raise


class _PrintedOutput:
    """Reports what one call prints and displays as its progress."""

    def __init__(self, context: ToolContext, redaction: Redaction, *, through: bool) -> None:
        self._context = context
        self._redaction = redaction
        self._through = through
        self._room = SHOWN
        self.displays = CallDisplays(
            partial(self._report, True), self._announce, redaction.value, through=through
        )

    def captured(self) -> OutputCapture:
        """Return a capture of what this context prints.

        Entered where the tool runs, so that an abandoned tool prints nothing below the cell.
        """
        return OutputCapture(
            partial(self._report, True),
            partial(self._report, False),
            through=self._through,
            redaction=self._redaction,
            displays=self.displays,
        )

    def _announce(self, index: int, shown: dict[str, Any] | None) -> None:
        with suppress(Cancelled):
            self._context.progress(Update(picture=(index, shown)))

    def _report(self, out: bool, text: str) -> None:
        """Report printed text as progress, up to `SHOWN` characters in all."""
        if self._room < 0:  # the mark that no more is shown has been reported
            return
        if len(text) > self._room:
            text = f"{text[: self._room]}\n[… no more is shown after {SHOWN:,} characters …]\n"
            self._room = -1
        else:
            self._room -= len(text)
        with suppress(Cancelled):  # code that prints does not expect it
            self._context.progress(Update(text=text, printed=out))


@mark_foreign
def _call_sync(
    call: Callable[[], Any],
    context: ToolContext,
    finish: Callable[[Any], Outcome],
    prints: _PrintedOutput,
) -> Any:
    """Call a synchronous tool; return its Outcome, or an awaitable or async generator that it gave.

    `_finish_on_loop` runs such a value to its end. Raises Cancelled after a stop.
    """
    with prints.captured():
        value = call()
        if inspect.isgenerator(value):
            return finish(_exhaust(value, context))
        if not (inspect.isasyncgen(value) or inspect.isawaitable(value)):
            return finish(value)
    if context.cancelled and inspect.iscoroutine(value):
        value.close()  # else Python warns that it was never awaited
        raise Cancelled
    return value


@mark_foreign
def _exhaust(generator: Generator[Any, Any, Any], context: ToolContext) -> Any:
    """Report the items of a generator and return its result. Raises Cancelled after a stop."""
    last = None
    try:
        while not context.cancelled:
            item = next(generator)
            last = _report_item(item, context, last)
    except StopIteration as stop:
        return last if stop.value is None else stop.value
    finally:
        generator.close()
    raise Cancelled


@mark_foreign
async def _finish_on_loop(value: Any, context: ToolContext, finish: partial[Outcome]) -> Outcome:
    """Await or iterate a value on the event loop, if it is unfinished, and return its outcome."""
    if inspect.isasyncgen(value):
        value = await _exhaust_async(value, context)
    elif inspect.isawaitable(value):
        value = await value
    needs_drawing = finish.keywords["render"] is not None or finish.keywords["figures"].has_chart
    if isinstance(value, _CHEAP) and not needs_drawing:
        return finish(value)
    caught = await _run_in_worker(partial(finish, value), "tool result")
    if caught.error is not None:
        raise caught.error
    outcome = caught.value
    assert isinstance(outcome, Outcome)
    return outcome


@mark_foreign
async def _exhaust_async(generator: AsyncGenerator[Any, Any], context: ToolContext) -> Any:
    """Report the items of an async generator and return its result."""
    last = None
    async with aclosing(generator):
        async for item in generator:
            last = _report_item(item, context, last)
    return last


def _report_item(item: Any, context: ToolContext, last: Any) -> Any:
    """Report an item of a generator; return the generator's result so far, which was `last`."""
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
    # an object such as {"percent": 65} has a fraction too, but may be the result
    if news.fraction is not None and isinstance(item, float | int | Update):
        return last
    return (news.text if news.data is None else news.data) if isinstance(item, Update) else item


def _cancel_requested() -> bool:
    """Return whether this task is being cancelled; a tool may raise CancelledError itself."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
