"""Positions in a run's stream of events: the ids by which a reader resumes.

Rules: a stored event's id is its `seq`; the n-th delta after it has the id `seq.epoch.n`, with the
server's epoch. The ids of one run are ordered like their numbers.
"""

from __future__ import annotations


def parse_id(text: str) -> Position | None:
    """Return the position of an id, or None if it is malformed."""
    parts = text.split(".")
    if len(parts) not in (1, 3) or not all(
        p.isdecimal() and p.isascii() and len(p) < 16 for p in parts
    ):
        return None
    numbers = [int(p) for p in parts]
    return (numbers[0], 0, 0) if len(numbers) == 1 else (numbers[0], numbers[1], numbers[2])


Position = tuple[int, int, int]  # seq, epoch, n; a stored event has no epoch and no n


START: Position = (0, 0, 0)
