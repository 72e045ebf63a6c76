"""The final state of a map: computed from its results before its log ends, and so recorded.

Why: an evaluation adds its scores to the record in this way, and maps need not know about scores.

Rules
- It is not computed for a map that was stopped, or that failed.
- A replay in a test computes it anew from the recorded results and compares; any other replay only
  plays the recorded state.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import msgspec

from ...agent import Checked, Played, Player
from ...errors import Cancelled
from ...events import Event, State
from .known_rows.map_player import MapPlayer, combine_checks


class FinalState(msgspec.Struct, frozen=True):
    """A state at the end of the log: its kind, its payload, and how two payloads compare.

    `compare` takes the recorded payload (None: not recorded) and the fresh one.
    """

    kind: str
    payload: Mapping[str, Any]
    compare: Callable[[Any, Mapping[str, Any]], Checked]


class FinishedPlayer:
    """Plays a recorded map. In a test, it first computes the final state and compares it.

    `finish` computes the state from the recorded results. `recorded_events`: what it is compared
    with (None: nothing).
    """

    def __init__(
        self,
        player: Player | MapPlayer,
        finish: Callable[[], Awaitable[FinalState]],
        recorded_events: Sequence[Event] | None,
    ) -> None:
        self._player, self._finish, self._recorded_events = player, finish, recorded_events
        self._checked: Checked | None = None

    async def run(self) -> None:
        """Play to the end."""
        if self._recorded_events is not None:
            fresh = await self._finish()
            states = (e for e in self._recorded_events if isinstance(e, State) and not e.span)
            recorded = next((e.payload for e in states if e.kind == fresh.kind), None)
            self._checked = fresh.compare(recorded, fresh.payload)
        await self._player.run()

    def cancel(self, why: Cancelled) -> None:
        """Stop the replay."""
        self._player.cancel(why)

    @property
    def played(self) -> Played:
        """The outcome so far."""
        assert isinstance(self._player, Player | MapPlayer)
        played = self._player.played
        checks = [each for each in (played.checked, self._checked) if each is not None]
        return msgspec.structs.replace(played, checked=combine_checks(checks))
