"""`%agent tape`: record and replay the model calls of other libraries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...errors import UsageError
from .output import print_text

if TYPE_CHECKING:
    from ..session import Session


def switch_tape(session: Session, arguments: list[str]) -> None:
    """[off] [--rpm N] [--concurrency N]: record the model calls that the cells below make with any
    library (openai, anthropic …), and answer them from the records when the cells run again; off
    ends it; calls that are sent wait for their turn: N requests per minute, N at once
    """
    limits = dict(zip(arguments[::2], arguments[1::2], strict=False))
    fits = limits.keys() <= {"--rpm", "--concurrency"} and all(map(str.isdecimal, limits.values()))
    if arguments != ["off"] and not (fits and len(arguments) % 2 == 0):
        raise UsageError(
            "Write %agent tape, %agent tape --rpm 60 --concurrency 4, or %agent tape off."
        )
    if arguments == ["off"]:
        print_text("The tape is off." if session.stop_tape() else "The tape is not on.")
        return
    from ..cell.taping import start_tape

    start_tape(session)
    if limits and session.tape is not None:
        session.tape.limit(int(limits.get("--rpm", 0)), int(limits.get("--concurrency", 0)))
    print_text(
        "The tape is on: model calls of clients that are made from here on are recorded. %agent tape off ends it."
    )
