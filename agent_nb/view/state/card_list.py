"""The list of cards that the fold fills (see `state`)."""

from __future__ import annotations

from collections.abc import Callable

from .cards import Card


class CardList:
    """Cards in order, with their versions. `_parent` is told of every change."""

    def __init__(self) -> None:
        self.version = 0
        self.cards: list[Card] = []
        self._parent: Callable[[], None] | None = None
        self._by_key: dict[str, Card] = {}
        self._number = 0

    def _changed(self) -> None:
        self.version += 1
        if self._parent is not None:
            self._parent()

    def _touch(self, card: Card) -> None:
        card.version += 1
        self._changed()

    def _new_key(self, kind: str) -> str:
        self._number += 1
        return f"{kind}{self._number}"

    def _add(self, card: Card, alias: str = "") -> None:
        self.cards.append(card)
        if alias:
            self._by_key[alias] = card
        self._touch(card)
