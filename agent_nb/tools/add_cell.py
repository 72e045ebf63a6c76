"""Built-in tool `add_cell`: the model offers a code cell; the user decides whether it is inserted.

Why: a model that writes into the file that the user has open loses their changes, and code that
they have not read must not stand between their cells.

Rules
- A call changes nothing (`effect="none"`): it is an event with a card. The front end inserts the
  cell after the run, on the user's press (`notebook.cell.offered_cells`), and nothing runs it.
- The card shows every character of the code. What would stay unseen is refused: the model writes
  it as an escape.
"""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import Field

from ..errors import ToolError
from .base import ToolContext, current_call
from .decorator import as_tool, tool
from .offered_code import ADD_CELL, LONGEST, find_code_fault

SHORT = 4  # characters of a run's id that name it among those of a notebook
_STATE = "cells offered"
_RUN = re.compile("[0-9a-f]{12}")


def for_people(text: str) -> dict[str, str]:
    """Return what the card shows of a result: how to get the cell later."""
    return {"text/plain": f"{text[text.rindex('%agent') : text.rindex(')')]} inserts it"}


@tool(name=ADD_CELL, effect="none", icon="add_cell", render=for_people)
async def add_cell(
    code: Annotated[str, Field(max_length=LONGEST)],
    why: Annotated[str, Field(max_length=500)] = "",
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
    # a coroutine runs on the loop in the order of the calls, so their numbers are no race; those of
    # a sub-agent have no place in the run's order
    number, nested = context.state.get(_STATE, 0) + 1, current_call().count("/") > 1
    context.state[_STATE] = number
    offered = "Offered" if nested else f"Offered as cell {number}"
    command = "%agent cell" if nested else f"%agent cell {number} {_run(context)}".rstrip()
    return f"{offered}. The user inserts it if they want to (later: {command})."


def _run(context: ToolContext) -> str:
    """Return the beginning of the run's id, which is its trace's unless the agent was given one."""
    return context.trace_id[:SHORT] if _RUN.fullmatch(context.trace_id) else ""


tools = (as_tool(add_cell),)
