"""The part of the fold that handles failed requests which are made again (see `fold`).

Why: a provider under load refuses several times in a row, with an event each; the reader needs one
row that counts down. So the failures of one request are one card, up to its outcome.
"""

from __future__ import annotations

from typing import Any

from ...events import Delta, End, Error, Event, Interrupt, Node
from .cards import CardList, RetryCard

# the message of a retry goes on so after the reason
AGAIN = " Trying again in "
LONGEST_WAIT = 86_400.0  # seconds; a longer announced wait is ignored


class Retries:
    """Makes the cards of failed model requests in one view, one at a time."""

    def __init__(self, cards: CardList) -> None:
        self._cards = cards
        self._retry: RetryCard | None = None  # the card that is not done
        self._pause = 0.0  # announced seconds until the next request, 0: unknown

    @property
    def waiting(self) -> RetryCard | None:
        """The card of a request that waits to be made again, or None."""
        return self._retry if self._retry is not None and self._retry.since else None

    def take_request(self, event: Node) -> None:
        """Take the start or the end of a request to the model."""
        if event.phase == "exit":
            seconds: Any = (event.data or {}).get("retry_in")
            is_valid = isinstance(seconds, int | float) and 0 < seconds <= LONGEST_WAIT
            self._pause = float(seconds) if is_valid else 0.0
        elif self._retry is not None:
            self._retry.end_wait(event.ts)
            self._cards.touch(self._retry)

    def take_failure(self, event: Error) -> None:
        """Take a failure after which the request is made again."""
        card = self._retry
        if card is None:
            card = self._retry = RetryCard(self._cards.new_key("retry"))
            self._cards.add(card)
        card.end_wait(event.ts)
        card.failures.append((event.message.partition(AGAIN)[0].rstrip("."), self._pause))
        card.raw, card.since = event.raw, event.ts
        self._cards.touch(card)

    def end_at_outcome(self, event: Event) -> None:
        """Finish the card at an event that shows the outcome: an answer, or something else begins.

        Every event shows it, except nodes (a request is a node), the failure itself, and deltas
        during the wait.
        """
        card = self._retry
        if card is None or isinstance(event, Node):
            return
        is_failure = isinstance(event, Error) and event.code == "retry"
        # only stored events end a wait, so that a replay measures the same one
        if is_failure or (isinstance(event, Delta) and card.since):
            return
        stopped_while_waiting = card.since and isinstance(event, Interrupt | End)
        card.tries = len(card.failures) + (0 if stopped_while_waiting else 1)
        card.end_wait(event.ts)
        card.done, self._retry = True, None
        self._cards.touch(card)
