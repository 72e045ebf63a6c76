"""The part of the fold that is about the model's texts (see `state`).

Why: a text comes in blocks, with thoughts and notes in between; a list marker and its words, or two
halves of a sentence, must not be two pieces of markdown.

Rules
- A text is one card, whatever number of blocks it came in (see `agent_nb.events.text`); thoughts
  that came within it stand after it.
- Only where a thought stands between two paragraphs is the text two cards, with the thought in
  between.
"""

from __future__ import annotations

from ...events import Delta, End, Event, Respond
from ...events.text import Step, Texts, reply_of
from .cards import CardList, RespondCard, ThinkCard
from .text import Text, between_paragraphs


class TextCards:
    """Texts as they are written. `answer` is the newest one."""

    def __init__(self, cards: CardList) -> None:
        self._cards = cards
        self.answer: RespondCard | None = None
        self._pieces: list[RespondCard] = []  # its cards
        self._blocks = Texts()
        self._step: Step = ""  # how the newest block stands to the texts before it

    def sort(self, event: Event) -> None:
        """See how an event stands to the texts so far; a text that is parted from what comes is
        done.
        """
        self._step = self._blocks.add(event)
        if self.answer is not None and self._blocks.over:
            self._finish(self.answer)

    def _finish(self, card: RespondCard) -> None:
        if not card.done and not card.writing:
            card.done = True
            self._cards.touch(card)

    def _text(self, event: Delta | Respond) -> RespondCard:
        """Return the card of the text that a block belongs to, ready for the block."""
        alias, last = f"respond:{event.block}", self.answer
        if self._step == "same" and isinstance(card := self._cards.find(alias), RespondCard):
            return card
        aside = (
            last is not None
            and isinstance(self._cards.cards[-1], ThinkCard)
            and between_paragraphs(last.text)
        )
        if last is None or self._step == "begin" or (self._step == "go_on" and aside):
            last = self._new_text(begins=self._step == "begin")
        elif self._step == "instead":
            self._blank()
        elif last.done:
            last.text = Text(str(last.text))  # whoever draws it has closed the one before
        last.at, last.writing, last.done = len(last.text), True, False
        self._cards.name(last, alias)
        return last

    def _new_text(self, *, begins: bool) -> RespondCard:
        if self.answer is not None:
            self._finish(self.answer)
        self.answer = RespondCard(self._cards.new_key("respond"))
        self._pieces = [self.answer] if begins else [*self._pieces, self.answer]
        self._cards.add(self.answer)
        return self.answer

    def _blank(self) -> None:
        """The newest text is told anew: take it out of its cards."""
        for card in self._pieces:
            card.text = Text()
            self._cards.touch(card)

    def delta(self, event: Delta) -> None:
        """Append a piece of a text."""
        card = self._text(event)
        card.text.append(event.text)
        self._cards.touch(card)

    def respond(self, event: Respond) -> None:
        """Take a whole text block."""
        card, text = self._text(event), event.content
        if len(card.text) == card.at:
            card.text.append(text)
        elif len(card.text) != card.at + len(text) or card.text.tail(len(text)) != text:
            card.text = Text(str(card.text)[: card.at] + text)
        card.incomplete, card.writing = event.incomplete, False
        card.done = self._blocks.over or card is not self.answer
        self._cards.touch(card)

    def reply(self, event: End) -> None:
        """Show the reply that the end of an imported run gives, unless it has been shown."""
        reply = reply_of(event)
        if not reply or "".join(reply.split()) in "".join(
            "".join(str(c.text).split()) for c in self._cards.cards if isinstance(c, RespondCard)
        ):
            return
        self._step = "instead" if self.answer is not None and not self._blocks.over else "begin"
        self.respond(Respond(content=reply))
