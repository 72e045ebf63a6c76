"""Positions in a run's stream of events: the ids by which a reader resumes.

Why: a reader that reconnects sends the last id that it has, and receives only what came after.

Rules: a stored event's id is its `seq`; the n-th delta after it has the id `seq.epoch.n`, with the
server's epoch. A format that writes several frames for one event gives each but the last the id of
the event and `.part`, the number of frames of it that are still to come. The ids of events are
ordered like their numbers.
"""

from __future__ import annotations

from typing import NamedTuple


class Position(NamedTuple):
    """A place in the stream of one run, after the event or delta of these numbers.

    A stored event has no `epoch` and no `delta`; `Position()` is the start.
    """

    seq: int = 0
    epoch: int = 0
    delta: int = 0

    @classmethod
    def parse(cls, text: str) -> Position | None:
        """Return the position of an id, or None if it is malformed."""
        parts = text.split(".")
        if len(parts) not in (1, 3) or not all(map(_is_number, parts)):
            return None
        return cls(*map(int, parts))

    @staticmethod
    def split_part(text: str) -> tuple[str, int]:
        """Split the id of a frame: the event's id, and how many of its frames are still to come."""
        event, _, part = text.rpartition(".")
        has_part = text.count(".") in (1, 3) and _is_number(part)
        return (event, int(part)) if has_part else (text, 0)


def _is_number(text: str) -> bool:
    return text.isdecimal() and text.isascii() and len(text) < 16
