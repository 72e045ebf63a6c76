"""A cell of an executed notebook that failed, in words: which cell, at which line, what happened.

Rules
- Text of a kernel is printable here; a line number comes from the cell's own frame of the
  traceback.
- The kernel's end and a time-out belong to the cell that ran.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from ...record.agent_cells import agent_cell
from ...record.ipynb import source_of
from ..notices import printable

LONGEST = 60  # characters of a text that names a cell
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_LINE = re.compile(r"Cell In\[\d+\], line (\d+)")


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """One failure. `cell` is the number of the cell, from 1 (0: none ran), `title` names it, `line`
    is the line in it (0: unknown), `error` the class of the exception, `message` what it says;
    `kind` is a cell's error, the end of the kernel or a time-out.
    """

    kind: Literal["error", "kernel", "timeout"] = "error"
    cell: int = 0
    title: str = ""
    line: int = 0
    error: str = ""
    message: str = ""

    def __str__(self) -> str:
        place = f"{self.title}{f', line {self.line}' if self.line else ''}: " if self.title else ""
        return f"{place}{f'{self.error}: ' if self.error else ''}{self.message}"


def title(number: int, cell: Mapping[str, Any]) -> str:
    """Return the name of a cell: its number, its id and, of an agent cell, the first line of its
    prompt.
    """
    parts = agent_cell(source_of(cell))
    first = " ".join((parts[1] if parts else "").strip().partition("\n")[0].split())
    said = f' "{first[:LONGEST]}{"…" if len(first) > LONGEST else ""}"' if first else ""
    place = f" ({cell['id']})" if cell.get("id") else ""
    return f"cell {number}{place}{said}"


def of_cell(number: int, cell: Mapping[str, Any], error: str, message: str) -> Failure:
    """Return the failure of a cell that raised an exception."""
    tracebacks = [
        o.get("traceback") or []
        for o in cell.get("outputs") or []
        if o.get("output_type") == "error"
    ]
    found = (
        _LINE.search(_COLOURS.sub("", "\n".join(map(str, tracebacks[-1])))) if tracebacks else None
    )
    line = int(found[1]) if found else 0
    return Failure(
        cell=number,
        title=title(number, cell),
        line=line,
        error=printable(error),
        message=printable(message),
    )


def of_kernel(number: int, cell: Mapping[str, Any] | None, said: str) -> Failure:
    """Return the failure of a kernel that ended; `said` is what its process wrote last."""
    name = title(number, cell) if cell is not None else ""
    words = "the kernel died" if cell is not None else "The kernel did not start"
    return Failure(
        kind="kernel",
        cell=number,
        title=name,
        message=f"{words}.\n{said}".strip() if said else f"{words}.",
    )


def of_time(number: int, cell: Mapping[str, Any] | None, seconds: float) -> Failure:
    """Return the failure of a cell that took longer than `seconds`."""
    name = title(number, cell) if cell is not None else ""
    words = f"it took longer than {seconds:g} s and was stopped. Give it more time: --timeout S."
    return Failure(kind="timeout", cell=number, title=name, message=words)
