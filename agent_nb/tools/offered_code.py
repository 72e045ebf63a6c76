"""The code of a cell that an agent offers: which code may be offered, and inserted.

Why beside `add_cell`: the notebook checks an offer of a record before it inserts it, without
making the tool, for which pydantic is loaded.

Rules: the card shows every character of the code; what would stay unseen is refused.
"""

from __future__ import annotations

from ..wire import find_hidden

ADD_CELL = "add_cell"  # of the tool
LONGEST = 20_000  # characters of a cell; a card shows that many


def find_code_fault(code: str) -> str:
    """Return why a code cannot be offered as a cell and how to correct it, or ""."""
    if not code.strip():
        return "The cell is empty. Give its code."
    if len(code) > LONGEST:
        return (
            f"The cell has {len(code):,} characters; the limit is {LONGEST:,}. Offer several cells."
        )
    if hidden := find_hidden(code):
        return f"The code holds the hidden character {hidden}. Write it as an escape in a string, or leave it out."
    return ""
