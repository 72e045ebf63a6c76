"""`%agent tape`: record and replay the model calls of other libraries (`cell.taping`)."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import TYPE_CHECKING

from ...errors import UsageError
from .output import print_text

if TYPE_CHECKING:
    from ..session import Session

_USAGE = (
    "Write %agent tape, %agent tape --budget 1.00 --rpm 60 --concurrency 4, or %agent tape off."
)
OFF = "The tape is off. Clients that were made while it was on reach no server: make them anew."
# option -> the function that reads its value
_LIMITS: dict[str, Callable[[str], float]] = {"--rpm": int, "--concurrency": int, "--budget": float}


def switch_tape(session: Session, arguments: list[str]) -> None:
    """[off] [--budget USD] [--rpm N] [--concurrency N]: record the model calls that the cells below
    make with any library (openai, anthropic …), and answer them from the records when the cells run
    again; off ends it; calls that are sent have a budget in US dollars, and wait for their turn: N
    requests per minute, N at once; 0: no limit
    """
    if arguments == ["off"]:
        print_text(OFF if session.stop_tape() else "The tape is not on.")
        return
    limits = _read_limits(arguments)
    from ..cell.taping import start_tape

    start_tape(session)
    if limits and session.tape is not None:
        session.tape.limit(limits.get("--rpm"), limits.get("--concurrency"), limits.get("--budget"))
    on = "The tape is on: model calls of clients that are made from here on are recorded. %agent tape off ends it."
    print_text(on)


def _read_limits(arguments: list[str]) -> dict[str, float]:
    """Return the limits that the arguments name. Raises UsageError."""
    try:
        pairs = zip(arguments[::2], arguments[1::2], strict=True)
        limits = {name: _LIMITS[name](value) for name, value in pairs}
    except (KeyError, ValueError):
        raise UsageError(_USAGE) from None
    if not all(0 <= limit < inf for limit in limits.values()):
        raise UsageError(_USAGE)
    return limits
