"""The part of the fold that handles states, extensions and unknown events (see `fold`).

Why: an event without a card of its own must be visible too, but hundreds in a row must not bury
the answers.

Rules
- Consecutive events of one kind are one card.
- Two extensions are not shown: opaque blocks, which a later request only sends back to their
  provider, and the bytes of taped calls.
"""

from __future__ import annotations

from typing import Any

from ...events import RESEND, Extension, State, Unknown
from .cards import CardList, NoteCard
from .json_diff import MISSING

# namespace and name of a taped call; joined, since it is a value in records and no module path
TAPED = (".".join(("agent_nb", "tape")), "exchange")
OWN_EXTENSIONS = {("agent_nb", "drift"): "drift"}  # our extensions that have a card


class Notes:
    """Makes the cards of events that are shown as notes."""

    def __init__(self, cards: CardList) -> None:
        self._cards = cards
        # kind of state: its latest payload; under "" the latest payload of all kinds
        self._states: dict[str, Any] = {}

    def add_state(self, event: State) -> None:
        """Add a state, with the payload that it replaces: the latest of its kind, else of any."""
        before = self._states.get(event.kind, self._states.get("", MISSING))
        self._add("state", event.kind or "state", event.payload, before)
        self._states[event.kind] = self._states[""] = event.payload

    def add_card_of_own(self, event: State) -> None:
        """Add a state whose kind has a card of its own: the notebook's context, another model."""
        self._add(event.kind, event.kind, event.payload)

    def add_extension(self, event: Extension) -> None:
        """Add an extension, except a provider's opaque block and the bytes of a taped call."""
        if event.name != RESEND and (event.namespace, event.name) != TAPED:
            kind = OWN_EXTENSIONS.get((event.namespace, event.name), "extension")
            title = ".".join(p for p in (event.namespace, event.name) if p) or "extension"
            self._add(kind, title, event.payload)

    def add_unknown(self, event: Unknown) -> None:
        """Add an event of a type that a newer version wrote."""
        self._add("extension", event.kind or "unknown", event.payload)

    def _add(self, kind: str, title: str, payload: Any, before: Any = MISSING) -> None:
        """Add an event to the last card if it has this kind, else to a new card."""
        card = self._cards.cards[-1] if self._cards.cards else None
        if not isinstance(card, NoteCard) or card.kind != kind:
            card = NoteCard(self._cards.new_key(kind), kind)
            self._cards.add(card)
        card.items.append((title, payload))
        card.before.append(before)
        self._cards.touch(card)
