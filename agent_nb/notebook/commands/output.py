"""Helpers of the commands: they write to the cell's output, and make a cell's agent to inspect it.

Rule: all text is made printable before it is written, since a model or a tool may have chosen it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..notices import format_table, make_printable

if TYPE_CHECKING:
    from ...rows import Agent
    from ..options import Options
    from ..session import Session

Command = Callable[["Session", list[str]], Any]
Rows = Sequence[Sequence[str]]  # a table; its first row names the columns


def print_text(text: str) -> None:
    """Write a text to the cell's output, escaped where it is not printable."""
    sys.stdout.write(make_printable(text) + "\n")


def make_agent(session: Session, options: Options) -> Agent:
    """Return the agent that a cell with these options would have, to inspect, not to run."""
    from ...rows import Agent
    from ..cell.cell_tools import choose_tools
    from ..output_option import wanted_type

    return Agent(
        options.model,
        choose_tools(options, session.shell.user_ns),
        system=options.system,
        dialect=options.dialect,
        settings=options.settings,
        namespace=session.shell.user_ns,
        late=True,
        output=wanted_type(options, session.shell.user_ns),
    )


def show_parts(session: Session, *parts: str | Rows) -> None:
    """Show texts and tables one below another, as HTML in a notebook, as text in a terminal."""
    text = make_printable(
        "\n\n".join(part if isinstance(part, str) else format_table(part) for part in parts)
    )
    if getattr(session.shell, "kernel", None) is None:
        print_text(text)
        return
    from ...view import Node, Page, Row, Section, T, Table, draw_html
    from ..cell.publish import publish_display

    def make_node(part: str | Rows) -> Node:
        if isinstance(part, str):
            return Row((T(make_printable(part), tone="muted"),), wrap=True)
        names, *rows = [tuple(make_printable(value) for value in row) for row in part]
        return Table(names, tuple(rows))

    sections = tuple(Section(str(number), make_node(part)) for number, part in enumerate(parts))
    page = Page("Agents of this notebook", sections)
    publish_display({"text/html": draw_html(page), "text/plain": text}, {}, {}, False)
