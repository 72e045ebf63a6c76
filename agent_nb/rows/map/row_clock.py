"""The clock of a row's time limit: it stops while the row waits for a rate limit or a slot.

With many rows at once most time is waiting, and rows would time out without having been asked.
"""

from __future__ import annotations

from collections.abc import Callable

import anyio


class RowClock:
    """Extends the deadline of `scope` by each wait; waits, as those of sub-agents, may overlap.

    `waited`: seconds during which at least one wait was under way. `now` returns seconds, on the
    clock of the scope's deadline.
    """

    def __init__(
        self, scope: anyio.CancelScope, now: Callable[[], float] = anyio.current_time
    ) -> None:
        self.waited = 0.0
        self._scope = scope
        self._now = now
        self._waits = 0  # waits under way
        # when the clock stopped, and the seconds that were left until the deadline then
        self._since = self._left = 0.0

    def __call__(self, begins: bool) -> None:
        """Stop the clock when the first wait begins; start it again when the last one ends."""
        now = self._now()
        self._waits += 1 if begins else -1
        if begins and self._waits == 1:
            self._since, self._left = now, self._scope.deadline - now
            self._scope.deadline = float("inf")
        elif not self._waits:
            self._scope.deadline = now + self._left
            self.waited += now - self._since
