"""The part of the fold that handles the model's texts (see `fold`).

A text arrives in blocks, whose border may be inside a sentence, or between a list marker and its
item. So it is one card, whatever the number of its blocks (see `agent_nb.events.text`), and a
thought between its blocks stands below it. Only a thought between two paragraphs divides the card.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ... import events as e
from .cards import CardList, RespondCard, ThinkCard
from .text import Text, between_paragraphs


class TextCards:
    """Makes the cards of the model's texts. `answer` is the newest one."""

    def __init__(self, cards: CardList) -> None:
        self._cards = cards
        self.answer: RespondCard | None = None
        self._pieces: list[RespondCard] = []  # the cards of the newest text
        self._blocks = e.Texts()  # sorts blocks into texts
        self.expects_type = False  # the run asks for answers of a type
        self.field_order: tuple[str, ...] = ()  # of that type
        self._step: e.Step = ""  # how the newest block relates to the text before it

    def begin(self, settings: Mapping[str, Any]) -> None:
        """Read from the settings of the run whether it asks for a type, and its field order."""
        self.expects_type, self.field_order = "output" in settings, e.read_field_order(settings)

    def note_event(self, event: e.Event) -> None:
        """Note how an event continues the texts; finish the newest card if its text is complete.

        Call this before `take_delta`, `take_block` or `take_reply` takes the event.
        """
        self._step = self._blocks.add(event)
        if self.answer is not None and self._blocks.over:
            self._finish(self.answer)

    def _finish(self, card: RespondCard) -> None:
        if not card.done and not card.writing:
            card.done = True
            self._cards.touch(card)

    def _open_card(self, event: e.Delta | e.Respond) -> RespondCard:
        """Return the card that a block belongs to, an old or a new one, ready to take the block."""
        alias, last = f"respond:{event.block}", self.answer
        card = self._cards.find(alias)
        if self._step == "same" and isinstance(card, RespondCard):
            return card
        if last is None or self._step == "begin" or self._parted_by_thought(last):
            last = self._add_card(begins=self._step == "begin")
        elif self._step == "instead":
            for card in self._pieces:  # the newest text is repeated from its beginning
                card.text = Text()
                self._cards.touch(card)
        elif last.done:
            last.text = Text(str(last.text))  # the text's stream is closed; a copy gets a new one
        last.block_start, last.writing, last.done = len(last.text), True, False
        self._cards.add_alias(last, alias)
        return last

    def _parted_by_thought(self, last: RespondCard) -> bool:
        """Return whether the text goes on after a thought between two of its paragraphs."""
        return (
            self._step == "go_on"
            and isinstance(self._cards.cards[-1], ThinkCard)
            and between_paragraphs(last.text)
        )

    def _add_card(self, *, begins: bool) -> RespondCard:
        """Add a card for a text that `begins`, or for the next piece of the newest text."""
        if self.answer is not None:
            self._finish(self.answer)
        self.answer = RespondCard(self._cards.new_key("respond"))
        self.answer.expects_type, self.answer.field_order = self.expects_type, self.field_order
        self._pieces = [self.answer] if begins else [*self._pieces, self.answer]
        self._cards.add(self.answer)
        return self.answer

    def take_delta(self, event: e.Delta) -> None:
        """Append a piece of a text."""
        card = self._open_card(event)
        card.text.append(event.text)
        self._cards.touch(card)

    def take_block(self, event: e.Respond) -> None:
        """Take a whole text block, whose deltas may be in the card already."""
        card, text = self._open_card(event), event.content
        if name := e.read_answer_type(event):
            card.typed, card.text, card.block_start = name, Text(text), 0
        elif len(card.text) == card.block_start:
            card.text.append(text)
        elif len(card.text) != card.block_start + len(text) or card.text.tail(len(text)) != text:
            # the deltas differ from the block: the block counts
            card.text = Text(str(card.text)[: card.block_start] + text)
        card.incomplete, card.writing = event.incomplete, False
        card.done = self._blocks.over or card is not self.answer
        self._cards.touch(card)

    def end(self) -> None:
        """Close the texts: the run has ended."""
        for card in self._cards.cards:
            if isinstance(card, RespondCard) and not card.done:
                card.incomplete, card.done = card.incomplete or card.writing, True
                self._cards.touch(card)

    def take_reply(self, event: e.End) -> None:
        """Show the reply in the end of an imported run, unless it only repeats what is shown.

        A reply that differs from the newest text replaces it if that text is not complete.
        """
        reply = e.reply_of(event)
        if not reply or self._shows("".join(reply.split())):
            return
        self._step = "instead" if self.answer is not None and not self._blocks.over else "begin"
        self.take_block(e.Respond(content=reply))

    def _shows(self, reply: str) -> bool:
        """Return whether a reply, without its white space, is shown already.

        It may be one text, several texts in a row, or the last block of a text.
        """
        shown, edges = "", {0}  # where texts and their last blocks begin and end in `shown`
        for card in self._cards.cards:
            if isinstance(card, RespondCard):
                text = str(card.text)
                for piece in (text[: card.block_start], text[card.block_start :]):
                    shown += "".join(piece.split())
                    edges.add(len(shown))
        return any(e + len(reply) in edges and shown.startswith(reply, e) for e in edges)
