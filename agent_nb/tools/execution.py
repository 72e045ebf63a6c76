"""Run one tool call on the right thread, and convert its result or exception to an Outcome.

Why: a tool may be a plain function, a coroutine or a generator, may print, and may never return.

Rules
- `call_tool` raises only the cancellation that its caller asked for.
- What a generator yields is progress. Its result is its return value, else the last item that is
  not a fraction. A generator of tool events marks the result itself (`events.is_tool_event`).
- A conversion that may take long (repr, to_html, savefig …) is not done on the event loop.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import aclosing, suppress
from functools import partial
from typing import Any, Literal

import msgspec

from ..errors import Cancelled
from ..events import Result, adapt_tool_event, is_tool_event
from ..host import mark_foreign
from ..wire import Redaction
from .base import Outcome, Tool, ToolContext, Update
from .call_displays import CallDisplays
from .capture import OutputCapture
from .decorator import is_async
from .failures import convert_error
from .figures import Figures
from .results import convert_result
from .running_call import convert_update
from .threads import Caught, Worker, catch_outcome
from .values import LIMIT

MOST_PRINTED = 1_000_000  # characters of what a tool prints
# types of values whose conversion takes no time
_CONVERTED_ON_LOOP = (str, int, float, bool, type(None), Outcome)


class _Conversion(msgspec.Struct, frozen=True):
    """How the value of one call becomes its outcome; the fields are those of `convert_result`."""

    limit: int
    render: Callable[[Any], dict[str, Any]] | None
    figures: Figures

    def convert(self, value: Any) -> Outcome:
        """Return the outcome of a call that returned `value`."""
        return convert_result(value, self.limit, self.render, self.figures)

    def needs_worker(self, value: Any) -> bool:
        """Return whether the conversion may take too long for the event loop."""
        draws = self.render is not None or self.figures.has_chart
        return draws or not isinstance(value, _CONVERTED_ON_LOOP)


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
    conversion = _Conversion(limit, tool.render, prints.displays.figures)
    outcome = await _call_and_convert(tool, call, context, conversion, prints)
    return prints.displays.add_to(outcome)


async def _call_and_convert(
    tool: Tool,
    call: Callable[[], Any],
    context: ToolContext,
    conversion: _Conversion,
    prints: _PrintedOutput,
) -> Outcome:
    """Call a tool, await or iterate what it returned, and return its outcome."""
    try:
        # a Tool that `as_tool` has not made may be async with another `thread`
        if tool.thread == "loop" or is_async(tool.invoke):
            with prints.captured():
                return await _finish_on_loop(call(), context, conversion)
        sync_call = partial(_call_sync, call, context, conversion, prints)
        caught = await _run_on_thread(tool, sync_call, context)
        if caught.error is not None:
            return convert_error(caught.error)
        if isinstance(caught.value, Outcome):
            return caught.value
        with prints.captured():
            return await _finish_on_loop(caught.value, context, conversion)
    except BaseException as error:  # a KeyboardInterrupt that leaves a task would end the loop
        if isinstance(error, asyncio.CancelledError) and _cancel_requested():
            raise
        return convert_error(error)


async def _run_on_thread(tool: Tool, function: Callable[[], Any], context: ToolContext) -> Caught:
    """Run `function` on the kernel's main thread or in a worker."""
    if tool.thread == "main" and context.host is not None:
        caught: Caught = await context.host.call(partial(catch_outcome, function))
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
    """Reports what one call prints and displays as its progress; `through`: see `OutputCapture`."""

    def __init__(self, context: ToolContext, redaction: Redaction, *, through: bool) -> None:
        self._context = context
        self._redaction = redaction
        self._through = through
        self._characters_left = MOST_PRINTED
        self._cut = False  # the mark that no more is shown has been reported
        write = partial(self._report_text, "stdout")
        self.displays = CallDisplays(write, self._report_picture, redaction.value, through=through)

    def captured(self) -> OutputCapture:
        """Return a capture of what this context prints.

        Entered where the tool runs, so that an abandoned tool prints nothing below the cell.
        """
        return OutputCapture(
            partial(self._report_text, "stdout"),
            partial(self._report_text, "stderr"),
            through=self._through,
            redaction=self._redaction,
            displays=self.displays,
        )

    def _report_picture(self, index: int, shown: dict[str, Any] | None) -> None:
        """Report a new picture, or (None) that earlier ones are removed; see `Update`."""
        with suppress(Cancelled):  # code that displays does not expect it
            self._context.progress(Update(picture=(index, shown)))

    def _report_text(self, stream: Literal["stdout", "stderr"], text: str) -> None:
        """Report printed text as progress, up to `MOST_PRINTED` characters in all."""
        if self._cut:
            return
        self._cut = len(text) > self._characters_left
        if self._cut:
            mark = f"[… no more is shown after {MOST_PRINTED:,} characters …]"
            text = f"{text[: self._characters_left]}\n{mark}\n"
        self._characters_left -= len(text)
        with suppress(Cancelled):  # code that prints does not expect it
            self._context.progress(Update(text=text, printed=stream == "stdout"))


@mark_foreign
def _call_sync(
    call: Callable[[], Any], context: ToolContext, conversion: _Conversion, prints: _PrintedOutput
) -> Any:
    """Call a synchronous tool; return its Outcome, or an awaitable or async generator that it gave.

    `_finish_on_loop` runs such a value to its end. Raises Cancelled after a stop.
    """
    with prints.captured():
        value = call()
        if inspect.isgenerator(value):
            return conversion.convert(_run_generator(value, context))
        if not (inspect.isasyncgen(value) or inspect.isawaitable(value)):
            return conversion.convert(value)
    if context.cancelled and inspect.iscoroutine(value):
        value.close()  # else Python warns that it was never awaited
        raise Cancelled
    return value


@mark_foreign
def _run_generator(generator: Generator[Any, Any, Any], context: ToolContext) -> Any:
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
async def _finish_on_loop(value: Any, context: ToolContext, conversion: _Conversion) -> Outcome:
    """Await or iterate a value on the event loop, if it is unfinished, and return its outcome."""
    if inspect.isasyncgen(value):
        value = await _run_async_generator(value, context)
    elif inspect.isawaitable(value):
        value = await value
    if not conversion.needs_worker(value):
        return conversion.convert(value)
    caught = await _run_in_worker(partial(conversion.convert, value), "tool result")
    if caught.error is not None:
        raise caught.error
    outcome: Outcome = caught.value
    return outcome


@mark_foreign
async def _run_async_generator(generator: AsyncGenerator[Any, Any], context: ToolContext) -> Any:
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
    reported = convert_update(item)
    context.progress(reported)
    # an object such as {"percent": 65} has a fraction too, but may be the result
    if reported.fraction is not None and isinstance(item, float | int | Update):
        return last
    if not isinstance(item, Update):
        return item
    return reported.text if reported.data is None else reported.data


def _cancel_requested() -> bool:
    """Return whether this task is being cancelled; a tool may raise CancelledError itself."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
