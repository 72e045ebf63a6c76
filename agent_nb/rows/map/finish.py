"""The final state of a map: computed from its results before its log ends, and so recorded.

An evaluation adds its scores to the record in this way; maps need not know about scores. A replay
in a test computes the state anew and compares it, any other replay plays the recorded one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from ...agent import Checked
from ...events import Event, State


class FinalState(msgspec.Struct, frozen=True):
    """A state at the end of the log: its kind, its payload, and how two payloads compare.

    `compare` takes the recorded payload (None: not recorded) and the fresh one.
    """

    kind: str
    payload: Mapping[str, Any]
    compare: Callable[[Any, Mapping[str, Any]], Checked]

    def check(self, recorded_events: Sequence[Event]) -> Checked:
        """Return how this fresh state differs from the state of its kind in a recorded log."""
        states = (e for e in recorded_events if isinstance(e, State) and not e.span)
        recorded = next((e.payload for e in states if e.kind == self.kind), None)
        return self.compare(recorded, self.payload)
