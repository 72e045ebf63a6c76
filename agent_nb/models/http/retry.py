"""When a failed model request is worth another try, and how long to wait before it.

Nearly all failures under load end within seconds, a rate limit within a minute. A wait that the
server asks for is never shortened; above `LONGEST_WAIT` seconds the request is given up. Other
waits are spread at random, so that many notebooks do not retry at once.
"""

from __future__ import annotations

import math
import random
import re
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from email.utils import parsedate_to_datetime

from ...errors import ModelError

# seconds before each next attempt: a minute in all
BUSY_DELAYS = (0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 29.5)
AWAY_DELAYS = BUSY_DELAYS[:3]  # delays for a server that cannot be reached
_MOST_ALIKE = 3  # failures with the same words after which a server is given up
_CUT_CODES = frozenset({"cut", "empty"})  # of connections that end before the first part
LONGEST_WAIT = 120.0  # seconds that a server may ask to wait
_REQUEST_CODES = frozenset({"context", "no_tools", "no_images"})  # the request itself is at fault
# statuses below 500 that may pass: time-outs, conflicts, too early, too many requests
_RETRYABLE = frozenset({408, 409, 425, 429})
BUSY_STATUSES = frozenset({429, 503, 529})  # statuses of a server that is busy
# unit of a duration -> seconds
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
# `m(?!illi)`: the `m` of "milliseconds" does not stand for minutes
_DURATION = re.compile(r"(\d+(?:\.\d+)?) ?(ms|s|m(?!illi)|h|d)")
# a wait in the words of a body
_WAIT = re.compile(
    r"(?:again|retry)(?: after| in) ((?:[\d.]+ ?(?:ms|s|m(?!illi)|h))+)|retryDelay\W+([\d.]+s)",
    re.IGNORECASE,
)


def is_retryable_status(status: int) -> bool:
    """Return whether to retry: 408, 409, 425, 429 and 5xx except 501 and 505."""
    return status in _RETRYABLE or (status >= 500 and status not in {501, 505})


class Failures:
    """Counts the failures of one request, and decides what each of them allows."""

    def __init__(self) -> None:
        self._messages: Counter[str] = Counter()

    def add(self, error: ModelError) -> bool:
        """Count a failure; return whether the server has failed too often with these words.

        Failing (500) `_MOST_ALIKE` times alike is a fault that stays.
        """
        if error.status != 500:
            return False
        self._messages[str(error)] += 1
        return self._messages[str(error)] >= _MOST_ALIKE

    @staticmethod
    def choose_delay(
        error: ModelError, attempt: int, *, spread: Callable[[], float] = random.random
    ) -> float | None:
        """Return the seconds to wait before the next attempt, or None to give up.

        `attempt`: attempts so far, 1 after the first failure. `spread` returns a number in [0, 1).
        """
        in_stream = error.status == 0 and error.code == "provider"  # reported within a stream
        # the server is there: it answered, or the connection broke
        answers = error.status == 429 or error.status >= 500 or in_stream
        delays = BUSY_DELAYS if answers or error.code in _CUT_CODES else AWAY_DELAYS
        if not error.retryable or attempt > len(delays):
            return None
        requested = error.retry_after
        if requested is None:  # between half and all of the delay
            return delays[attempt - 1] * (0.5 + spread() / 2)
        return None if requested > LONGEST_WAIT else max(requested, 0.0) + spread() * 0.25

    @staticmethod
    def is_outage(error: ModelError) -> bool:
        """Return whether to ask another model: this one is away or busy, or refuses for now.

        A fault of the request itself would meet every model.
        """
        busy = error.retryable or error.status == 429 or error.status >= 500
        return busy and error.code not in _REQUEST_CODES


def read_retry_after(
    headers: Mapping[str, str], text: str = "", now: float | None = None
) -> float | None:
    """Return the seconds that a server asks to wait, or None.

    Read in this order: `retry-after-ms`, `retry-after` in seconds or as a date (RFC 9110), the
    reset time of an exhausted limit (`x-ratelimit-reset-…`), and `text`, the body ("Please try
    again in 7.66s", Gemini's `retryDelay`). `now`: seconds since the epoch, for dates (None: the
    present time).
    """
    now = time.time() if now is None else now
    # an unreadable header counts as missing
    with suppress(ValueError, TypeError, OverflowError):
        if "retry-after-ms" in headers:
            return max(0.0, _parse_finite(headers["retry-after-ms"]) / 1000)
        value = headers.get("retry-after", "").strip()
        if re.fullmatch(r"-?\d+(\.\d+)?", value):
            return max(0.0, _parse_finite(value))
        if value:
            return max(0.0, parsedate_to_datetime(value).timestamp() - now)
    resets = [_read_reset(name.lower(), headers, now) for name in headers]
    waits = [wait for wait in resets if wait is not None]
    if waits:
        return max(waits)
    sentence = _WAIT.search(text)
    return _parse_duration(sentence[1] or sentence[2]) if sentence else None


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
        return _parse_duration(value)
    # above 1e11 it is a date in milliseconds, above 1e9 (the year 2001) one in seconds, else a wait
    epoch = number / 1000 if number > 1e11 else number
    return max(0.0, epoch - now if epoch > 1e9 else number)


def _parse_duration(text: str) -> float | None:
    """Return the seconds of a duration such as `7.66s`, `6m0s` or `850ms`, else None."""
    quantities = _DURATION.findall(text)
    seconds = sum(float(number) * _UNITS[unit] for number, unit in quantities)
    return seconds if quantities and math.isfinite(seconds) else None
