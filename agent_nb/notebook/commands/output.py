"""What the commands print: texts and tables in the cell's output.

Rule: all text is made printable before it is written, since a model or a tool may have chosen it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..notices import format_table, make_printable

if TYPE_CHECKING:
    from ..session import Session

Rows = Sequence[Sequence[str]]  # a table; its first row names the columns


def print_text(text: str) -> None:
    """Write a text to the cell's output, escaped where it is not printable."""
    sys.stdout.write(make_printable(text) + "\n")


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
    page = Page("Output of %agent", sections)
    data = {"text/html": draw_html(page), "text/plain": text}
    publish_display(data, metadata={}, transient={}, update=False)
