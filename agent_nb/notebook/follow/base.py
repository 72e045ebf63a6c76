"""The base of cells that follow runs of another system: `%agent attach`, `%%agent --from`.

Both are stopped alike, keep unsigned records of the runs, and replay only such records.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from ...agent import Run
from ...errors import AgentStopped
from ...events import EventLog
from ...record import Provenance, Record, log_of
from ..cell.interrupts import Interrupts
from ..cell.kernel_interrupts import cell_interrupts
from ..identity import Cell
from ..options import Options
from ..session import Session
from .cards import Cards


class FollowRun(ABC):
    """One cell that follows runs; call `follow` once. Subclasses define `_follow`."""

    def __init__(self, session: Session, cell: Cell) -> None:
        self.session, self.cell = session, cell

    async def follow(self) -> Run | None:
        """Follow, show and record the runs; return the last one, None if no event came.

        Raises AgentStopped when the user stopped the cell, and what `_follow` raises.
        """
        with cell_interrupts(self.session.shell) as interrupts:
            last = await self._follow(interrupts)
        if interrupts.stopped:
            raise AgentStopped(interrupts.by, last)
        return last

    @abstractmethod
    async def _follow(self, interrupts: Interrupts) -> Run | None:
        """Follow the runs and return the last one, None if no event came."""

    def _list_records(self) -> list[Record]:
        """Return this cell's records of followed runs, in the order to try them."""
        return [
            r
            for r in self.session.library.rank_records(self.cell)
            if r.get("conversation") == Provenance.NO_CONVERSATION
        ]

    def _close_cards(self, cards: Cards, options: Options, detached: str = "") -> list[Run]:
        """Close the cards, and keep their runs and records in the session; return the runs.

        `detached`: see `Cards.close`.
        """
        runs = cards.close(detached)
        for run in runs:
            self.session.keep_run(self.cell, run, options.output)
        for record in cards.records:
            self.session.library.keep_record(self.cell.key, record)
        return runs


def find_replayable(records: Sequence[Record]) -> EventLog | None:
    """Return the log of the first of the `records` that was not interrupted, else None."""
    complete = (log_of(r) for r in records if r.get("status") != "interrupted")
    return next(complete, None)
