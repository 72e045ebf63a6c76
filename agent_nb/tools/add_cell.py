"""Built-in tool `add_cell`: the model offers a code cell; the user decides whether it is inserted.

Why not write the notebook's file: the user has it open and would lose changes, and code that they
have not read must not stand between their cells. So a call changes nothing: the user chooses the
cell by the card's button, and the front end inserts it when the run has ended well
(`notebook.cell.offered_cells`).
"""

from __future__ import annotations

import re
from typing import Annotated

from annotated_types import MaxLen

from ..errors import ToolError
from .base import ToolContext, current_call
from .decorator import as_tool, tool
from .offered_code import ADD_CELL, LONGEST, find_code_fault

SHORT = 4  # characters of a run's id that distinguish it from the other runs of a notebook
_COUNT = "cells offered"  # key in `ToolContext.state` of how many cells the run has offered
_find_command = re.compile(r"\(later: (%agent cell[^)\n]*)\)").search
_RUN_ID = re.compile("[0-9a-f]{12}")  # an id that the package has made, not the user's trace id


def for_people(text: str) -> dict[str, str]:
    """Return what the card shows of the result `text`: the command that inserts the cell later.

    Return {} if `text` does not name the command, so that the card shows the text itself.
    """
    command = _find_command(text)
    return {"text/plain": f"{command[1]} inserts it"} if command else {}


@tool(name=ADD_CELL, effect="none", icon="add_cell", render=for_people)
async def add_cell(
    code: Annotated[str, MaxLen(LONGEST)],
    why: Annotated[str, MaxLen(500)] = "",
    *,
    context: ToolContext,
) -> str:
    """Offer the user a code cell to insert into their notebook. It is shown, and neither inserted
    nor run until they want it. Do not repeat its code in the answer.

    Args:
        code: The whole code of the cell.
        why: What the cell is good for, in one sentence.
    """
    if fault := find_code_fault(code):
        raise ToolError(fault)
    # this is a coroutine, not a thread's function, so that the calls of a batch are counted in
    # their order; the cells of a sub-agent (a call inside a call) have no number in the run
    number, nested = context.state.get(_COUNT, 0) + 1, current_call().count("/") > 1
    context.state[_COUNT] = number
    offered = "Offered" if nested else f"Offered as cell {number}"
    run = context.trace_id[:SHORT] if _RUN_ID.fullmatch(context.trace_id) else ""
    command = "%agent cell" if nested else f"%agent cell {number} {run}".rstrip()
    return f"{offered}. The user inserts it if they want to (later: {command})."


tools = (as_tool(add_cell),)
