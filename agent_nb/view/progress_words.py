"""The progress of a running call in words: how much is done, how fast, and the time left."""

from __future__ import annotations

from .call_line import describe_fields
from .format import format_count, format_duration, is_number, join_parts
from .state.cards import CallCard


def progress_words(state: CallCard) -> str:
    """Return the progress of a call in words.

    For example `62 % · 11,286 of 18,204 rows · 3.6k/s · 2 s left · message · file=a.csv`. The
    last part shows the other fields of the progress data.
    """
    fraction = state.fraction or 0.0
    # the fields of the progress data besides output, fraction and message
    fields = dict(state.beside.rest)
    done, total, unit = fields.pop("done", None), fields.pop("total", None), fields.pop("unit", "")
    counted = ""
    if is_number(done) and is_number(total):
        counted = f"{done:,} of {total:,} {unit}".rstrip()
    speed, left = _measure_pace(state, total if counted else None)
    return join_parts(
        f"{fraction * 100:.0f} %", counted, speed, left, state.message, describe_fields(fields, 100)
    )


def _measure_pace(state: CallCard, total: float | None) -> tuple[str, str]:
    """Return the speed and the time that is left, "" each if unknown.

    Both come from the first and the latest fraction; `total` is the number of units of the work.
    """
    # within 0.2 s, two fractions give no reliable speed
    if state.first is None or state.fraction is None or state.latest - state.first[1] < 0.2:
        return "", ""
    rate = (state.fraction - state.first[0]) / (state.latest - state.first[1])
    if rate <= 0 or state.fraction >= 1:
        return "", ""
    left = (1 - state.fraction) / rate  # seconds; an estimate of a day or more is not shown
    return (
        f"{format_count(rate * total)}/s" if total else "",
        f"{format_duration(max(1, round(left)))} left" if left < 86_400 else "",
    )
