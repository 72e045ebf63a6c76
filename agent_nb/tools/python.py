"""Built-in tool `python`: run code in the user's namespace.

In a notebook the code runs as a cell: in the user's namespace, on the main thread, with the
kernel's interrupt. Elsewhere it runs in a namespace of the run, in a worker thread. Top-level await
works in both.

Why: a model then computes with the user's variables, as the user does.

Rules
- The value of a last expression is part of the result, as at a prompt.
- Output is reported as progress, and is the first part of the result, bounded; the value or the
  message of an error follows.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
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

    def take(text: str) -> None:
        output.add(text)
        context.progress(text)  # after a stop it raises Cancelled, which ends the code

    with OutputCapture(take):
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
    # so that tracebacks show the lines
    linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
    try:
        tree = ast.parse(code, name)
    except ValueError as fault:  # a null character, before Python 3.11.4
        raise SyntaxError(str(fault)) from None
    expression = None
    if tree.body and isinstance(last := tree.body[-1], ast.Expr):
        expression = ast.Expression(last.value)
        tree.body.pop()
    with asyncio.Runner() as runner:
        _run(tree, "exec", name, namespace, runner)
        return _run(expression, "eval", name, namespace, runner) if expression else None


def _run(tree: Any, mode: str, name: str, namespace: dict[str, Any], runner: asyncio.Runner) -> Any:
    compiled = compile(tree, name, mode, flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    value = eval(compiled, namespace)  # noqa: S307  (this is the tool)
    return runner.run(value) if compiled.co_flags & inspect.CO_COROUTINE else value
