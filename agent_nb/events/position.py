"""Positions in a run's stream of events: the ids from which a reader that reconnects resumes.

Rules
- The id of a stored event (any but a delta) is its `seq`: `12`. The n-th delta after it has the id
  `seq.epoch.n`: `12.1.3`. Each start of a server has its own epoch, so that no id is used twice.
- If an event is sent in several frames, each but the last has the event's id and `.part`: how many
  of its frames are still to come.
"""

from __future__ import annotations

from typing import NamedTuple


class Position(NamedTuple):
    """The position after the event or delta of these numbers; `Position()` is the start.

    The position of a stored event has no `epoch` and no `delta`.
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
