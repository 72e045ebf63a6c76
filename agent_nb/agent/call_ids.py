"""Call ids that are unique within one run.

Why: a result finds its call by the id, and some models leave ids out or repeat them.
"""

from __future__ import annotations


class CallIds:
    """Assigns call ids; a missing or repeated one is replaced by a synthetic id."""

    def __init__(self) -> None:
        self._used: set[str] = set()

    def take(self, wanted: str, turn: int) -> tuple[str, bool]:
        """Return the id for a call of turn number `turn` and whether it is synthetic.

        `wanted`: the id that the model gave, "" if none.
        """
        synthetic = not wanted or wanted in self._used
        number = len(self._used) + 1
        call_id = f"call_{turn}_{number}" if synthetic else wanted
        while call_id in self._used:
            number += 1
            call_id = f"call_{turn}_{number}"
        self._used.add(call_id)
        return call_id, synthetic
