"""The part of the fold that handles the model's thoughts (see `fold`).

A thought may come as deltas, whole, or both, and its card shows how long the model thought. A whole
one starts at its first delta; without recorded `chunks`, at the event before it, even if it was
streamed: a replay has the record alone, and must show the same.
"""

from __future__ import annotations

from ...events import Delta, Think, decode_chunks
from .cards import CardList, ThinkCard, seconds_between
from .text import Text


class ThinkCards:
    """Makes the cards of the model's thoughts, one for each block."""

    def __init__(self, cards: CardList) -> None:
        self._cards = cards

    def take_delta(self, event: Delta) -> None:
        """Append a piece of a thought."""
        card = self._find_or_add(event)
        card.started = card.started or event.ts
        card.text.append(event.text)
        self._cards.touch(card)

    def take_thought(self, event: Think, log_start: float, previous: float) -> None:
        """Take a whole thought.

        The times of its deltas count from `log_start`; `previous` is the time of the event before.
        Both are epoch seconds.
        """
        card = self._find_or_add(event)
        if str(card.text) != event.content:
            card.text = Text(event.content)
        card.attributes = dict(event.attributes or {})
        delta = first_delta(event.chunks)
        start = 0.0 if delta is None else round(log_start + delta, 3)
        card.started = start or previous  # 0: unknown
        card.seconds = seconds_between(card.started, event.ts)
        card.incomplete, card.done = event.incomplete, True
        self._cards.touch(card)

    def end(self, now: float) -> None:
        """Close the thoughts that the end of the run, at the time `now`, cut off."""
        for card in self._cards.cards:
            if isinstance(card, ThinkCard) and not card.done:
                card.incomplete = card.done = True
                card.seconds = seconds_between(card.started, now)
                self._cards.touch(card)

    def _find_or_add(self, event: Delta | Think) -> ThinkCard:
        """Return the open card of a thought, or a new one."""
        alias = f"think:{event.block}"
        card = self._cards.find(alias) if event.block else None
        if isinstance(card, ThinkCard) and not card.done:
            return card
        new = ThinkCard(self._cards.new_key("think"))
        self._cards.add(new, alias)
        return new


def first_delta(chunks: str) -> float | None:
    """Return the seconds from the start of the log to a block's first delta, None if unknown.

    `chunks` is the field of an event that records the deltas of its block.
    """
    try:
        pair = next(decode_chunks(chunks), None)
    except ValueError:
        return None
    return None if pair is None else pair[1] / 1000  # recorded in ms
