"""When a failed model request is worth another try, and how long to wait before it.

Why: nearly all failures under load end within seconds, a rate limit within a minute. The agent loop
asks here, so all providers are retried by one rule.

Rules
- Only a ModelError marked `retryable` is retried, and only before the first part (the loop ensures
  that).
- A wait that the server asks for is never shortened; above `LONGEST` seconds the request is given
  up.
- Other waits come from `BUSY` or `AWAY`, spread at random: many notebooks must not retry at once.
- A server that fails (500) with the same words `SAME` times has a fault that waiting does not mend.
- Pure: no clock (except as a default), no sleep.
"""

from __future__ import annotations

import math
import random
import re
import time
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime

from ...errors import ModelError

BUSY = (0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 29.5)  # seconds before each next attempt: a minute in all
AWAY = BUSY[:3]  # delays for a server that cannot be reached
SAME = 3  # failures with the same words after which a server is given up
BREAKS = frozenset({"cut", "empty"})  # codes of connections that end before the first part
LONGEST = 120.0  # seconds that a server may ask to wait
OWN = frozenset({"context", "no_tools", "no_images"})  # codes for faults of the request itself
# statuses below 500 that may pass: time-outs, conflicts, too early, too many requests
_RETRYABLE = frozenset({408, 409, 425, 429})
PASSING = frozenset({429, 503, 529})  # statuses of a server that is busy
# unit of a duration -> seconds
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
# `m(?!illi)`: the `m` of "milliseconds" does not stand for minutes
_DURATION = re.compile(r"(\d+(?:\.\d+)?) ?(ms|s|m(?!illi)|h|d)")
_ASKED = re.compile(
    r"(?:again|retry)(?: after| in) ((?:[\d.]+ ?(?:ms|s|m(?!illi)|h))+)|retryDelay\W+([\d.]+s)",
    re.IGNORECASE,
)


def retryable_status(status: int) -> bool:
    """Return whether to retry: 408, 409, 425, 429 and 5xx except 501 and 505."""
    return status in _RETRYABLE or (status >= 500 and status not in {501, 505})


class Failures:
    """Counts the failures of one request, and decides what each of them allows."""

    def __init__(self) -> None:
        self._messages: Counter[str] = Counter()

    def add(self, error: ModelError) -> bool:
        """Count a failure; return whether the server has failed with these words `SAME` times."""
        if error.status != 500:
            return False
        self._messages[str(error)] += 1
        return self._messages[str(error)] >= SAME

    @staticmethod
    def choose_delay(
        error: ModelError, attempt: int, *, spread: Callable[[], float] = random.random
    ) -> float | None:
        """Return the seconds to wait before the next attempt, or None to give up.

        `attempt`: attempts so far, 1 after the first failure. `spread` returns a number in [0, 1).
        """
        in_stream = error.status == 0 and error.code == "provider"  # reported within a stream
        # the server is there: it answered, or the connection broke
        reachable = error.status == 429 or error.status >= 500 or in_stream or error.code in BREAKS
        steps = BUSY if reachable else AWAY
        if not error.retryable or attempt > len(steps):
            return None
        requested = error.retry_after
        if requested is not None:
            return None if requested > LONGEST else max(requested, 0.0) + spread() * 0.25
        # between half and all of the delay
        return steps[attempt - 1] * (0.5 + spread() / 2)

    @staticmethod
    def is_outage(error: ModelError) -> bool:
        """Return whether to ask another model: this one is away or busy, or refuses for now.

        A fault of the request itself (`OWN`) would meet every model.
        """
        return error.code not in OWN and (
            error.retryable or error.status == 429 or error.status >= 500
        )


def retry_after(
    headers: Mapping[str, str], text: str = "", now: float | None = None
) -> float | None:
    """Return the seconds that a server asks to wait, or None.

    Read in this order: `retry-after-ms`, `retry-after` in seconds or as a date (RFC 9110), the
    reset time of an exhausted limit (`x-ratelimit-reset-…`), and `text`, the body ("Please try
    again in 7.66s", Gemini's `retryDelay`). `now`: seconds since the epoch, for dates (None: the
    present time).
    """
    now = time.time() if now is None else now
    try:
        if "retry-after-ms" in headers:
            return max(0.0, _parse_finite(headers["retry-after-ms"]) / 1000)
        value = headers.get("retry-after", "").strip()
        if value:
            seconds = re.fullmatch(r"-?\d+(\.\d+)?", value)
            return max(
                0.0,
                _parse_finite(value) if seconds else parsedate_to_datetime(value).timestamp() - now,
            )
    except (ValueError, TypeError, OverflowError):
        pass  # an unreadable header counts as missing
    resets = [
        wait for name in headers if (wait := _read_reset(name.lower(), headers, now)) is not None
    ]
    sentence = _ASKED.search(text)
    return max(resets) if resets else _duration(sentence[1] or sentence[2]) if sentence else None


def _parse_finite(text: str) -> float:
    """Return a finite number. Raises ValueError."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is not a time")
    return number


def _read_reset(name: str, headers: Mapping[str, str], now: float) -> float | None:
    """Return the seconds until an exhausted limit is reset, if `name` is the header of one."""
    if (
        "ratelimit" not in name
        or "reset" not in name
        or headers.get(name.replace("reset", "remaining"), "").strip() != "0"
    ):
        return None
    value = headers[name].strip()
    try:
        if "T" in value:
            return max(0.0, datetime.fromisoformat(value).timestamp() - now)
        number = _parse_finite(value)
    except ValueError:
        return _duration(value)
    # above 1e11 it is a date in milliseconds, above 1e9 (the year 2001) one in seconds, else a wait
    epoch = number / 1000 if number > 1e11 else number
    return max(0.0, epoch - now if epoch > 1e9 else number)


def _duration(text: str) -> float | None:
    """Return the seconds of a duration such as `7.66s`, `6m0s` or `850ms`, else None."""
    quantities = _DURATION.findall(text)
    seconds = sum(float(number) * _UNITS[unit] for number, unit in quantities)
    return seconds if quantities and math.isfinite(seconds) else None
