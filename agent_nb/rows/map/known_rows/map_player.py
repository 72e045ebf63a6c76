"""Plays the record of a map, after the rows whose tools touch the kernel.

The events of a map do not include those of its rows. A row that set a variable must set it again,
as the replay of any run does; the other rows are only read.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial

import msgspec
from anyio import CancelScope

from ....agent import (
    Checked,
    Configuration,
    Played,
    Player,
    RecordedTurns,
    ReplayStrictness,
    make_player,
)
from ....errors import Cancelled
from ....events import EventLog
from ....record import InnerRecords, Record, UserKey
from ....wire import Redaction
from ..row import Row

#: Plays the record of a row as far as it is trusted; returns its drift in words, or "".
PlayRow = Callable[[Record, bool | frozenset[str]], Awaitable[str]]


class MapPlayer:
    """Plays the `rows` that touch the kernel, in the order of the data, then the `whole` map.

    `check`: what a test checks before anything is played (None: nothing).
    """

    def __init__(
        self,
        whole: Player | MapPlayer,
        rows: Sequence[Player] = (),
        check: Callable[[], Awaitable[Checked]] | None = None,
    ) -> None:
        self._whole, self._rows, self._check = whole, rows, check
        self._checked: list[Checked] = []
        self._stopped = False

    async def run(self) -> None:
        """Play to the end; see `Player.run`."""
        if self._check is not None:
            self._checked.append(await self._check())
        for row in self._rows:
            if not self._stopped:
                await row.run()
        await self._whole.run()

    def cancel(self, why: Cancelled) -> None:
        """Stop the replay."""
        self._stopped = True
        for each in (*self._rows, self._whole):
            each.cancel(why)

    @property
    def played(self) -> Played:
        """The outcome so far; its drift is that of the map, else the first one of a row."""
        parts = [self._whole.played, *(row.played for row in self._rows)]
        drift = next((part.drift for part in parts if part.drift is not None), None)
        checks = [part.checked for part in parts if part.checked is not None]
        checked = combine_checks([*checks, *self._checked])
        return msgspec.structs.replace(parts[0], drift=drift, checked=checked)


def make_map_player(
    turns: RecordedTurns,
    strictness: ReplayStrictness | None,
    *,
    agent: Configuration,
    log: EventLog,
    redaction: Redaction,
    rows: Sequence[Row],
) -> Callable[[CancelScope], Player | MapPlayer]:
    """Return a function that makes the player of `turns`, a record of the map of `rows`.

    `strictness`: how strictly a test compares (None: as in any replay).
    """
    make_whole = make_player(agent, turns, strictness, log=log, redaction=redaction)
    records = InnerRecords.of_log(turns.events) if len(agent.tools) else {}
    row_records = (records[row.key] for row in rows if row.key in records)
    # each row is trusted as the record of its map is
    all_turns = (RecordedTurns.of(record, trust=turns.trusted) for record in row_records)
    all_rows = [msgspec.structs.replace(row_turns, own=turns.own) for row_turns in all_turns]
    # made before the map is played, so that a faulty policy is reported at once
    make_rows = [
        make_player(agent, row, strictness, log=EventLog(row.run), redaction=redaction)
        for row in all_rows
        if row.calls_to_rerun(agent.tools)
    ]
    if not make_rows:
        return make_whole
    return lambda scope: MapPlayer(make_whole(scope), [make(CancelScope()) for make in make_rows])


def prepare_row_player(agent: Configuration, redaction: Redaction) -> PlayRow | None:
    """Return a function that plays a known row.

    None if no tool of the agent touches the kernel or is an agent, whose tools may touch it. Where
    nothing runs live, rows that others signed are known too; their calls run only if trusted.
    """
    if any(tool.agent is not None or RecordedTurns.touches_kernel(tool) for tool in agent.tools):
        return partial(_play_row, agent, redaction)
    return None


async def _play_row(
    agent: Configuration, redaction: Redaction, record: Record, trust: bool | frozenset[str]
) -> str:
    """Play a row as far as it is trusted; return its drift in words, or ""."""
    turns = RecordedTurns.of(record, key=UserKey.read(), trust=trust)
    if not turns.calls_to_rerun(agent.tools):
        return ""
    log = EventLog(turns.run)
    row = make_player(agent, turns, None, log=log, redaction=redaction)(CancelScope())
    await row.run()
    return "" if row.played.drift is None else str(row.played.drift)


def combine_checks(checks: Sequence[Checked]) -> Checked | None:
    """Return the outcome of several checks as one; None if there are no checks."""
    if not checks:
        return None
    return Checked(
        changes=tuple(dict.fromkeys(c for each in checks for c in each.changes)),
        masked=tuple(dict.fromkeys(m for each in checks for m in each.masked)),
        unseen=tuple(dict.fromkeys(u for each in checks for u in each.unseen)),
        ran=sum(each.ran for each in checks),
    )
