"""`%agent tape`: record and replay the model calls of other libraries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...errors import UsageError
from .output import print_text

if TYPE_CHECKING:
    from ..session import Session


def switch_tape(session: Session, arguments: list[str]) -> None:
    """[off]: record the model calls that the cells below make with any library (openai, anthropic
    …), and answer them from the records when the cells run again; off ends it
    """
    if arguments not in ([], ["off"]):
        raise UsageError("Write %agent tape, or %agent tape off.")
    if arguments:
        print_text("The tape is off." if session.stop_tape() else "The tape is not on.")
        return
    from ..cell.taping import start_tape

    start_tape(session)
    print_text(
        "The tape is on: model calls of clients that are made from here on are recorded. %agent tape off ends it."
    )
