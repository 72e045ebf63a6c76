"""Call ids that are unique within one run.

Why: a result finds its call by the id, and some models leave ids out or repeat them.
"""

from __future__ import annotations


class CallIds:
    """Assigns call ids; a missing or repeated one is replaced by a synthetic id."""

    def __init__(self) -> None:
        self._used: set[str] = set()

    def take(self, model_id: str, turn: int) -> tuple[str, bool]:
        """Return the id for a call of turn number `turn`, and whether the id is synthetic.

        `model_id`: the id that the model gave the call, "" if none.
        """
        synthetic = not model_id or model_id in self._used
        number = len(self._used) + 1
        call_id = f"call_{turn}_{number}" if synthetic else model_id
        while call_id in self._used:
            number += 1
            call_id = f"call_{turn}_{number}"
        self._used.add(call_id)
        return call_id, synthetic
