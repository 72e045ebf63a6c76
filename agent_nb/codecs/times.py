"""Converts times of other protocols: ISO 8601 texts as JavaScript writes them, epoch milliseconds.

Rules
- Our times are epoch seconds rounded to milliseconds; 0.0 is an invalid or absent one.
- `format_iso(read_epoch(text)) == text` for a text of `Date.toISOString`, from 1970 to 9999.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

_LATEST = 253402300799.999  # the last millisecond of the year 9999


def read_epoch(value: Any) -> float:
    """Return an ISO 8601 text (UTC without a zone) or epoch ms as epoch seconds; 0.0 if invalid."""
    if isinstance(value, str):
        try:
            at = datetime.fromisoformat(value)
        except ValueError:
            return 0.0
        return _valid_or_zero(at.replace(tzinfo=at.tzinfo or UTC).timestamp())
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _valid_or_zero(value / 1000 if abs(value) < _LATEST * 1000 else 0.0)
    return 0.0


def _valid_or_zero(seconds: float) -> float:
    return round(seconds, 3) if math.isfinite(seconds) and 0 <= seconds <= _LATEST else 0.0


def format_iso(seconds: float) -> str:
    """Return epoch seconds as `2026-01-31T12:00:00.000Z`, clamped to the valid range."""
    seconds = min(max(seconds, 0.0), _LATEST) if math.isfinite(seconds) else 0.0
    ms = round(seconds * 1000)  # `isoformat` would cut off what a float lacks of a millisecond
    whole = datetime.fromtimestamp(ms // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{whole}.{ms % 1000:03}Z"


def shift_iso(value: Any, _lines: int, ms: int) -> Any:
    """Return an ISO time later by `ms` milliseconds; a text of another form unchanged."""
    at = read_epoch(value)
    if at and isinstance(value, str) and format_iso(at) == value:
        return format_iso(at + ms / 1000)
    return value


def shift_time(value: Any, lines: int, ms: int) -> Any:
    """Return epoch milliseconds or an ISO time later by `ms` milliseconds."""
    return value + ms if type(value) is int else shift_iso(value, lines, ms)
