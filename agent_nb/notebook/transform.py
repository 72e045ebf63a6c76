"""The input transformer: a cell that begins with `%%agent` becomes an awaited call of the magic.

Why: IPython never awaits the coroutine that a magic returns. Rewritten to `await
get_ipython().run_cell_magic(…)` the cell is an async cell, so that messages (clicks) arrive while
it runs and tools with top-level await can run beside it.

Rules
- The body reaches the magic exactly as typed, with all quotes, backslashes, braces and line ends.
- `rewrite` is installed twice: before IPython's clean-up, which strips `>>>` from prompts, and
  after it, for indented cells and a pasted `In [1]: %%agent`.
- An `%%agent` below other lines is an error in words: IPython's own speaks of a line magic. Below a
  magic such as `%%time` it is found here, since the magic would compile the awaited call as plain
  Python, and `%%capture` would hide that error.
- `await_attach` runs after IPython has parsed line magics, so `%agent attach` in a string stays.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Coroutine
from typing import Any, NoReturn

from ..record import agent_cell

MAGIC = "agent"
BARE = ("--from", "--fix")  # options of cells that need no body; IPython refuses an empty one
_ATTACH = re.compile(
    r"^([\w.]+(?:\[[^=\]]*\][\w.]*)*\s*=\s*)?(get_ipython\(\)\.run_line_magic\('agent', ['\"]attach\b)"
)
_AS_LINE_MAGIC = "get_ipython().run_line_magic('%agent',"  # an `%%agent` below other lines

# an `%%agent` below a magic that takes the rest of its cell for Python
_BELOW_MAGIC = (
    r"\s*(%%(?:time|timeit|capture|prun)(?!\S)[^\n]*)\n(?:[^\S\n]*(?:#[^\n]*)?\n)*%%agent(?=\s|$)"
)


def rewrite(lines: list[str]) -> list[str]:
    """Return an `%%agent` cell rewritten to one awaited call, other cells unchanged."""
    text = "".join(lines)
    parts = agent_cell(text)
    if parts is None:
        _check_above(text)
        return lines
    line, body = parts
    body = body or ("\n" if any(option in line for option in BARE) else "")
    return [f"await get_ipython().run_cell_magic({MAGIC!r}, {line!r}, {body!r})\n"]


# While a cell is typed in a terminal, IPython runs transformers without side effects to check
# whether it is complete. Rewritten, the first line alone would look complete; unchanged, IPython's
# rule applies (a blank line ends a cell magic).
rewrite.has_side_effects = True  # type: ignore[attr-defined]


def _check_above(text: str) -> None:
    """Raise IPython's UsageError if an `%%agent` stands below a magic such as `%%time`."""
    if "%%agent" in text and (below := re.match(_BELOW_MAGIC, text)) is not None:
        _refuse(f", not below {below[1].rstrip()!r}. The card of a run shows its time and cost.")


def _refuse(reason: str) -> NoReturn:
    from IPython.core.error import UsageError as ShellError

    raise ShellError(f"%%agent must be the first line of its cell{reason}")


def await_attach(lines: list[str]) -> list[str]:
    """Return the lines of a cell with `%agent attach` awaited; IPython has parsed its magics.

    An indented one does not change: `await` in a plain function is an error. A semicolon keeps
    IPython from displaying the run as the line's value: the cell shows the run's cards already.
    Raises IPython's UsageError for an `%%agent` below other lines.
    """
    if any(line.lstrip().startswith(_AS_LINE_MAGIC) for line in lines):
        _refuse(". Move what is above it to another cell.")
    return [_await_attach(line) for line in lines]


def _await_attach(line: str) -> str:
    matched = _ATTACH.match(line)
    if matched is None:
        return line
    name, call = matched[1] or "", line[matched.start(2) :]
    return f"{name}await {call}" if name else f"await {call.rstrip()};\n"


def await_or_run(work: Coroutine[Any, Any, Any]) -> Any:
    """Return `work` where an event loop runs, for the caller to await; else run it to its end."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    return work


def install_transformer(shell: Any) -> None:
    """Add the transformer to an IPython shell; installing twice changes nothing."""
    if rewrite not in shell.input_transformers_cleanup:
        shell.input_transformers_cleanup.insert(0, rewrite)
        shell.input_transformers_cleanup.append(rewrite)
        shell.input_transformers_post.append(await_attach)


def uninstall_transformer(shell: Any) -> None:
    """Remove the transformer from an IPython shell."""
    for transformers in (shell.input_transformers_cleanup, shell.input_transformers_post):
        transformers[:] = [t for t in transformers if t not in (rewrite, await_attach)]
