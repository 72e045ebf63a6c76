"""The outcome of a replay: its log, the first difference, and how to continue live from there.

Why apart from `replay`: the loop continues from these values without importing the player.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ..events import Call, Event, EventLog, State
from ..record import SideBySide
from ..tools import Outcome, Update
from .context import replace_context
from .replay_check import Checked


class Drift(msgspec.Struct, frozen=True, kw_only=True):
    """The first difference of a replay: a call that ran again with another result.

    `seq`: the number of the recorded result. `name`: of the tool. `recorded`, `fresh`: the results
    as text. `reads`: the notebook variables that made an undeclared function run again. `how`: the
    difference in words, if the texts do not show it.
    """

    seq: int
    call_id: str
    name: str
    recorded: str
    fresh: str
    reads: list[str] = []
    how: str = ""

    def __str__(self) -> str:
        """Return the difference as lines, recorded and fresh side by side."""
        head = f"{self.name} returned something else than in the record (event {self.seq}, call {self.call_id})"
        if self.how:
            return f"{head}: {self.how}"
        return f"{head}\n{SideBySide(self.recorded, self.fresh).columns()}"


class Resume(msgspec.Struct, frozen=True, kw_only=True):
    """What the loop needs to continue live: the events so far, the open batch, and the drift.

    `calls`: the calls of the batch. `outcomes`, `updates`: their results and progress, by call id.
    """

    events: Sequence[Event]
    calls: Sequence[Call]
    outcomes: Mapping[str, Outcome]
    updates: Mapping[str, Sequence[Update]]
    drift: Drift

    def rebase_events(self, run: str, now: float, context: State | None = None) -> list[Event]:
        """Return the events as the start of run `run`, moved in time so that the last is at `now`.

        `now`: epoch seconds. `context`: the event with the context of run `run`, which replaces the
        recorded one; None removes the recorded one.
        """
        events = replace_context(self.events, context)
        shift = round((now - events[-1].ts) * 1000) if events else 0
        times = [round(e.ts * 1000) + shift for e in events]
        return [
            msgspec.structs.replace(e, run=run, ts=ms / 1000, seq=seq)
            for seq, (e, ms) in enumerate(zip(events, times, strict=True), 1)
        ]


class Played(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a replay: its log, the first difference, and how to continue live.

    `checked`: the result of the stricter check of a test. `unrecorded`: pictures and displays of
    calls that ran again, which the record lacks because older versions left them in the cell.
    """

    log: EventLog
    drift: Drift | None = None
    resume: Resume | None = None
    checked: Checked | None = None
    unrecorded: tuple[Mapping[str, Any], ...] = ()
