"""How commands write to the cell's output.

Rule: everything written is plain printable text, since a model or a tool may have chosen it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..notices import printable, table

if TYPE_CHECKING:
    from ...rows.agent import Agent
    from ..options import Options
    from ..session import Session

Command = Callable[["Session", list[str]], Any]
Rows = Sequence[Sequence[str]]


def say(text: str) -> None:
    """Write a text to the cell's output, escaped where it is not printable."""
    sys.stdout.write(printable(text) + "\n")


def agent_of(session: Session, options: Options) -> Agent:
    """Return the agent that a cell with these options would have; its model is not looked for."""
    from ...rows.agent import Agent
    from ..output_option import wanted

    return Agent(
        options.model,
        options.tools,
        system=options.system,
        dialect=options.dialect,
        settings=options.settings,
        namespace=session.shell.user_ns,
        late=True,
        output=wanted(options, session.shell.user_ns),
    )


def show(session: Session, *parts: str | Rows) -> None:
    """Show texts and tables one below another, as HTML in a notebook, as text in a terminal.

    The first row of a table names its columns.
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
