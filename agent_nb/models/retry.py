"""When a failed model request is worth another try, and how long to wait before it.

Why: providers refuse under load and connections break; nearly all of that is over within seconds. The agent loop asks
here, so that every provider is retried by the same rule.

Rules
- Only a ModelError that says `retryable` is tried again, and only before the first part (the loop sees to that).
- A wait the server asked for (`Retry-After`) is never shortened; beyond `LONGEST` seconds the request is given up.
- Otherwise the wait doubles with each attempt and is spread at random, so that many notebooks do not come back at once.
- Pure: no clock, no sleep.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from ..errors import ModelError

ATTEMPTS = 4
FIRST = 0.5
CAP = 8.0
LONGEST = 120.0
STATUSES = frozenset({408, 409, 425, 429})


def retryable_status(status: int) -> bool:
    """Return whether the same request may succeed later: 408, 409, 425, 429 and all of 5xx but 501 and 505."""
    return status in STATUSES or (status >= 500 and status not in {501, 505})


def delays(error: ModelError, attempt: int, *, spread: Callable[[], float] = random.random) -> float | None:
    """Return the seconds to wait before the next attempt, or None to give up.

    `attempt` is how many attempts were made so far (1 after the first failure); `spread` returns a number in [0, 1).
    """
    if not error.retryable or attempt >= ATTEMPTS:
        return None
    asked = error.retry_after
    if asked is not None:
        return None if asked > LONGEST else max(asked, 0.0) + spread() * 0.25
    step = min(CAP, FIRST * 2.0 ** (attempt - 1))
    return step * (0.5 + spread() / 2)
