"""Describes failures of an executed notebook as text: which cell, which line, which error.

Why: a reader of a CI log has no notebook open, and must find the place at once. The text of a
kernel is untrusted: errors of cells are made printable here, the output of a dead kernel by the
caller.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from ..notebook import make_printable, name_cell

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_LINE = re.compile(r"Cell In\[\d+\], line (\d+)")


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """One failure: an error of a cell, a dead kernel or a timeout."""

    kind: Literal["error", "kernel", "timeout"] = "error"
    cell: int = 0  # from 1; 0: no cell ran
    title: str = ""  # the cell in words; "": no cell ran
    line: int = 0  # in the cell; 0: unknown
    error: str = ""  # class of the exception; "": a dead kernel or a timeout
    message: str = ""

    def __str__(self) -> str:
        line = f", line {self.line}" if self.line else ""
        cell = f"{self.title}{line}: " if self.title else ""
        error = f"{self.error}: " if self.error else ""
        return f"{cell}{error}{self.message}"


def describe_failed_cell(number: int, cell: Mapping[str, Any], error: str, message: str) -> Failure:
    """Return the failure of a cell that raised an exception; `number` counts from 1."""
    outputs = cell.get("outputs") or []
    tracebacks = [o.get("traceback") or [] for o in outputs if o.get("output_type") == "error"]
    last_traceback = "\n".join(map(str, tracebacks[-1])) if tracebacks else ""
    # the first match: further ones may be of functions that other cells define
    line_match = _LINE.search(_COLOURS.sub("", last_traceback))
    return Failure(
        cell=number,
        title=name_cell(number, cell),
        line=int(line_match[1]) if line_match else 0,
        error=make_printable(error),
        message=make_printable(message),
    )


def describe_dead_kernel(number: int, cell: Mapping[str, Any] | None, message: str) -> Failure:
    """Return the failure of a kernel that died; `message` is the end of its output, printable.

    `cell`: the one that ran (None: the kernel did not start).
    """
    name = name_cell(number, cell) if cell is not None else ""
    reason = "the kernel died." if cell is not None else "The kernel did not start."
    return Failure(kind="kernel", cell=number, title=name, message=f"{reason}\n{message}".strip())


def describe_timeout(number: int, cell: Mapping[str, Any] | None, seconds: float) -> Failure:
    """Return the failure of a cell that took longer than `seconds`."""
    name = name_cell(number, cell) if cell is not None else ""
    reason = f"it took longer than {seconds:g} s and was stopped. Give it more time: --timeout S (pytest: --agent-nb-timeout S)."
    return Failure(kind="timeout", cell=number, title=name, message=reason)
