"""The part of the fold that handles states, extensions and unknown events (see `fold`).

Why: an event without a card of its own must be visible too, but hundreds in a row must not bury
the answers. So consecutive events with the same kind of card share one card.
"""

from __future__ import annotations

from typing import Any

from ...events import RESEND, Extension, State, Unknown
from ...record import PackedExchange
from ...wire import as_dict
from .cards import CardList, NoteCard
from .json_diff import MISSING

_TAPED = (PackedExchange.NAMESPACE, PackedExchange.EVENT["name"])
_CARD_KINDS = {("agent_nb", "drift"): "drift"}  # our extensions that have a card
# kind of state with a card of its own -> the field that must hold a text; else it is a note
_SPECIAL_STATES = {"context": "text", "model": "model"}


class Notes:
    """Makes the cards of events that are shown as notes."""

    def __init__(self, cards: CardList) -> None:
        self._cards = cards
        # kind of state: its latest payload; under "" the latest payload of all kinds
        self._states: dict[str, Any] = {}

    def add_state(self, event: State) -> None:
        """Add a state, unless the header alone shows it.

        A note has the payload that it replaces: the latest of its kind, else of any.
        """
        kind, payload = event.kind, event.payload
        fields = as_dict(payload)
        # a window of the conversation has a card if it has a summary of what was left out
        if fields and (kind == "foreign_turns" or (kind == "window" and not fields.get("text"))):
            return
        if kind in _SPECIAL_STATES and isinstance(fields.get(_SPECIAL_STATES[kind]), str):
            self._add(kind, kind, payload)
            return
        before = self._states.get(kind, self._states.get("", MISSING))
        self._add("state", kind or "state", payload, before)
        self._states[kind] = self._states[""] = payload

    def add_extension(self, event: Extension) -> None:
        """Add an extension, except a provider's opaque block and the bytes of a taped call."""
        if event.name != RESEND and (event.namespace, event.name) != _TAPED:
            card_kind = _CARD_KINDS.get((event.namespace, event.name), "extension")
            title = ".".join(p for p in (event.namespace, event.name) if p) or "extension"
            self._add(card_kind, title, event.payload)

    def add_unknown(self, event: Unknown) -> None:
        """Add an event of a type that a newer version wrote."""
        self._add("extension", event.kind or "unknown", event.payload)

    def _add(self, card_kind: str, title: str, payload: Any, before: Any = MISSING) -> None:
        """Add an event to the last card if it has this kind, else to a new card."""
        card = self._cards.cards[-1] if self._cards.cards else None
        if not isinstance(card, NoteCard) or card.kind != card_kind:
            card = NoteCard(self._cards.new_key(card_kind), card_kind)
            self._cards.add(card)
        card.items.append((title, payload))
        card.before.append(before)
        self._cards.touch(card)
