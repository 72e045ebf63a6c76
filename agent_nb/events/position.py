"""Positions in a run's stream of events: the ids by which a reader resumes.

Rules: a stored event's id is its `seq`; that of the n-th delta after it is `seq.epoch.n`, where the
epoch is the server's. Ids of one run are in order as their numbers are.
"""

from __future__ import annotations


def parse_id(text: str) -> Position | None:
    """Return the place that an id names, None if it is no id."""
    parts = text.split(".")
    if len(parts) not in (1, 3) or not all(
        p.isdecimal() and p.isascii() and len(p) < 16 for p in parts
    ):
        return None
    numbers = [int(p) for p in parts]
    return (numbers[0], 0, 0) if len(numbers) == 1 else (numbers[0], numbers[1], numbers[2])


Position = tuple[int, int, int]  # seq, epoch, n; a stored event has no epoch and no n


START: Position = (0, 0, 0)
