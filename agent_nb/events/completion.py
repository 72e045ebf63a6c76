"""Completes a run of ours that broke off: answers its open calls, and ends it as interrupted.

A process may die during a run, and a record is valid only if each call has a result and each run an
end. (`settler` does the same for runs of other formats.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from .types import Call, End, Event, Interrupt, Result

ABANDONED = "abandoned: the run did not stop when it was asked to"
LOST = "The recording stops here: the kernel or the page ended before the run did."
_UNFINISHED = "Not finished: the recording stops here."


def complete_log(log: Sequence[Event], detail: str = LOST) -> list[Event]:
    """Return the events of a run, followed by those that it lacks; see `list_missing_events`."""
    events = list(log)
    return [*events, *list_missing_events(events, detail)]


def list_missing_events(log: Sequence[Event], detail: str = LOST) -> list[Event]:
    """Return what a run lacks to a valid end: a result for each open call, `interrupt` and `end`.

    `detail`: why the run did not end itself; any but LOST means that the user stopped it. Returns
    [] for a run that has ended or not begun.
    """
    if not len(log) or (isinstance(log[-1], End) and not log[-1].span):
        return []
    envelope: dict[str, Any] = {"ts": log[-1].ts, "run": log[0].run}
    answered = {e.call_id for e in log if isinstance(e, Result)}
    calls = [e for e in log if isinstance(e, Call) and e.call_id not in answered]
    reason = "lost" if detail == LOST else "user"
    added = [
        *(make_cancelled_result(call, _UNFINISHED, **envelope) for call in calls),
        # any reason but "user" would mean that the run met a limit
        Interrupt(reason="user", detail=detail, turn=log[-1].turn, **envelope),
        End(status="interrupted", finish_reason=reason, **envelope),
    ]
    return [msgspec.structs.replace(e, seq=n) for n, e in enumerate(added, len(log) + 1)]


def make_cancelled_result(call: Call, content: str, **fields: Any) -> Result:
    """Return the result of a call that was never answered."""
    return Result(
        call_id=call.call_id,
        name=call.name,
        status="cancelled",
        content=content,
        turn=call.turn,
        span=call.span,
        parent=call.parent,
        **fields,
    )
