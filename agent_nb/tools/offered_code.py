"""Check the code that an agent offers as a cell: at the call, and again before it is inserted."""

from __future__ import annotations

from ..wire import find_hidden

ADD_CELL = "add_cell"  # the name of the tool
LONGEST = 20_000  # most characters of a cell, and as many as a card shows


def find_code_fault(code: str) -> str:
    """Return why the code cannot be a cell and how the model corrects it; "" if it can."""
    if not code.strip():
        return "The cell is empty. Give its code."
    if len(code) > LONGEST:
        return (
            f"The cell has {len(code):,} characters; the limit is {LONGEST:,}. Offer several cells."
        )
    if hidden := find_hidden(code):
        return f"The code holds the hidden character {hidden}. Write it as an escape in a string, or leave it out."
    return ""
