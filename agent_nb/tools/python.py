"""Built-in tool `python`: run code in the user's namespace, and compute with the user's variables.

In a notebook the code runs as a cell: in the user's namespace, on the main thread, with the
kernel's interrupt. Elsewhere it runs in a namespace of the run, in a worker thread. Top-level await
works in both.

The result is the output, bounded, then the value of a last expression or the message of an error;
output is reported as progress, too.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import io
import itertools
import linecache
import math
from collections.abc import Awaitable
from contextlib import suppress
from functools import partial
from typing import Any

from ..errors import Cancelled
from .base import Outcome, ToolContext, Update
from .capture import OutputCapture
from .decorator import as_tool, tool
from .failures import convert_error
from .results import convert_result
from .values import Collector

_STATE = "python"  # key in `ToolContext.state` of the run's own namespace
_FILE_NAME = "<agent code {}>"  # in tracebacks
_MOST_TEXTS = 1_000  # pieces of code whose text is kept for tracebacks
_counter = itertools.count(1)


@tool(effect="kernel", icon="python", timeout=math.inf)
def python(code: str, context: ToolContext) -> Outcome | Awaitable[Outcome]:
    """Run Python code and return what it prints and the value of its last line. Variables stay for
    the next call.

    Args:
        code: The code.
    """
    if context.host is not None:
        report = partial(_report_output, context)
        return context.host.run_cell(
            code, report, lambda index, picture: report(Update(picture=(index, picture)))
        )
    namespace = context.state.setdefault(_STATE, {"__name__": "__main__"})
    return _execute(code, namespace, context)


tools = (as_tool(python),)


def _report_output(context: ToolContext, output: str | Update) -> None:
    with suppress(Cancelled):  # the host already stops the cell: do not interrupt it here
        context.progress(output)


def _execute(code: str, namespace: dict[str, Any], context: ToolContext) -> Outcome:
    """Run `code` in `namespace`; return its outcome, with the output before the value."""
    output = Collector()

    def add_output(text: str) -> None:
        output.add(text)
        context.progress(text)  # after a stop it raises Cancelled, which ends the code

    with OutputCapture(add_output):
        try:
            outcome = convert_result(_evaluate(code, namespace))
        except BaseException as error:
            # whatever the code raises is its result, after the output; Cancelled too
            outcome = convert_error(error)
    return outcome.after(output.text)


def _evaluate(code: str, namespace: dict[str, Any]) -> Any:
    """Run `code` and return the value of its last expression, or None."""
    number = next(_counter)
    name = _FILE_NAME.format(number)
    linecache.cache.pop(_FILE_NAME.format(number - _MOST_TEXTS), None)
    # so that tracebacks show the lines; for Python, a form feed or U+2028 does not end one
    linecache.cache[name] = (len(code), None, list(io.StringIO(code, newline=None)), name)
    try:
        tree = ast.parse(code, name)
    except ValueError as fault:  # a null character, before Python 3.11.4
        raise SyntaxError(str(fault)) from None
    parts: list[tuple[Any, str]] = [(tree, "exec")]
    if tree.body and isinstance(last := tree.body[-1], ast.Expr):
        parts.append((ast.Expression(last.value), "eval"))
        tree.body.pop()
    # before any of it runs: some errors of syntax are found only here
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    compiled = [compile(part, name, mode, flags, dont_inherit=True) for part, mode in parts]
    value = None
    with asyncio.Runner() as runner:
        for program in compiled:
            value = eval(program, namespace)  # noqa: S307  (this is the tool)
            if program.co_flags & inspect.CO_COROUTINE:
                value = runner.run(value)
    return value
