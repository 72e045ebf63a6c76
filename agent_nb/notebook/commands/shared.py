"""What the commands share: how they speak, and the run they mean.

Rule: whatever is written is plain printable text; a model or a tool may have chosen the words.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ...errors import UsageError
from ..notices import printable, table

if TYPE_CHECKING:
    from ...agent.run import Run
    from ..session import Session

Command = Callable[["Session", list[str]], Any]
Rows = Sequence[Sequence[str]]


def say(text: str) -> None:
    """Write a text to the cell's output, harmless whatever it quotes."""
    sys.stdout.write(printable(text) + "\n")


def show(session: Session, *parts: str | Rows) -> None:
    """Show texts and tables (their first row names the columns) below one another: as HTML in a
    notebook, as text in a terminal.
    """
    text = printable("\n\n".join(part if isinstance(part, str) else table(part) for part in parts))
    if getattr(session.shell, "kernel", None) is None:
        say(text)
        return
    from ...view.draw.html import draw
    from ...view.nodes import Node, Page, Row, Section, T, Table
    from ..cell.publish import publish

    def node(part: str | Rows) -> Node:
        if isinstance(part, str):
            return Row((T(printable(part), tone="muted"),), wrap=True)
        names, *rows = [tuple(printable(value) for value in row) for row in part]
        return Table(names, tuple(rows))

    page = Page(
        "Agents of this notebook",
        tuple(Section(str(i), node(part)) for i, part in enumerate(parts)),
    )
    publish({"text/html": draw(page), "text/plain": text}, {}, {}, False)


def the_run(session: Session, arguments: list[str]) -> Run:
    """Return the run whose id begins with the argument, or the latest. Raises UsageError."""
    runs = [run for listed in session.runs.values() for run in listed]
    if not runs:
        raise UsageError("No run yet in this session.")
    if not arguments:
        latest = session.latest
        assert latest is not None
        return latest
    found = [run for run in runs if run.id.startswith(arguments[0])]
    if not found:
        raise UsageError(
            f"No run of this session begins with {arguments[0]!r}. Known: {', '.join(r.id for r in runs)}."
        )
    return found[0]


def elsewhere(work: Callable[[], Any]) -> Any:
    """Run a coroutine function to its end on a loop of another thread and return its value: a magic
    is synchronous.
    """
    import asyncio
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(lambda: asyncio.run(work())).result()
