"""Positions in a run's stream of events: the ids by which a reader resumes.

Rules: a stored event's id is its `seq`; the n-th delta after it has the id `seq.epoch.n`, with the
server's epoch. A format that writes several frames for one event gives each but the last the id of
the event and `.part`, the number of frames of it that are still to come. The ids of events are
ordered like their numbers.
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


def split_part(text: str) -> tuple[str, int]:
    """Return the id of the event in an id, and how many of its frames are still to come."""
    event, _, part = text.rpartition(".")
    inner = text.count(".") in (1, 3) and part.isdecimal() and part.isascii() and len(part) < 16
    return (event, int(part)) if inner else (text, 0)


Position = tuple[int, int, int]  # seq, epoch, n; a stored event has no epoch and no n


START: Position = (0, 0, 0)
