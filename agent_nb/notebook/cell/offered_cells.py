"""The cells that an agent offers (tool `add_cell`), and the one that the user chose to insert.

Why a choice: an agent may suggest code, but only the user adds it to the notebook. The front end
inserts the cell, as for `%load`: we never write the user's open file. Code that is empty, too long
or has hidden characters is not inserted: a record may be hostile.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from ...errors import UsageError
from ...events import Call, Event, Result
from ...tools import ADD_CELL, find_code_fault


class Offer(msgspec.Struct, frozen=True):
    """A cell that an agent offered."""

    code: str
    why: str = ""


class ChosenCell:
    """The offered cell that the user chose by a button, to be inserted after the run."""

    def __init__(self) -> None:
        self.code = ""

    def choose(self, code: str = "") -> None:
        """Choose the cell with this code ("": none) in place of an earlier one; from any thread."""
        self.code = code

    def insert(self, shell: Any) -> None:
        """Insert the chosen cell, if any, below the running cell; drop it if its code is unsafe."""
        code, self.code = self.code, ""
        # only a hostile record has unsafe code; an error would fail a good run
        if code and not find_code_fault(code):
            shell.set_next_input(code, replace=False)


def list_offers(log: Iterable[Event]) -> list[Offer]:
    """Return the cells that a run's successful calls offered, those of sub-agents last."""
    of_tool = [e for e in log if isinstance(e, Call | Result) and e.name == ADD_CELL]
    ok = {(e.span, e.call_id) for e in of_tool if isinstance(e, Result) and e.status == "ok"}
    calls = [e for e in of_tool if isinstance(e, Call) and (e.span, e.call_id) in ok]
    calls.sort(key=lambda call: bool(call.span))
    return [Offer(_clean_text(c.args.get("code")), _clean_text(c.args.get("why"))) for c in calls]


def insert_offer(shell: Any, offer: Offer, *, replace: bool) -> None:
    """Put an offered cell below the running one, or in its place. Raises UsageError if unsafe."""
    if fault := find_code_fault(offer.code):
        raise UsageError(f"This cell is not inserted. {fault}")
    shell.set_next_input(offer.code, replace=replace)


def _clean_text(value: Any) -> str:
    return value.replace("\r\n", "\n") if isinstance(value, str) else ""
