"""The part of the fold that handles tool calls (see `fold`).

Why apart: many kinds of events and deltas change one card, and in foreign logs some are missing. A
call without its `Call` event gets a card from its other events.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec

from ... import events as e
from ...wire import as_dict, as_list, cut_end
from ..format import count_noun
from .cards import Batch, CallCard, CardList, Mark
from .text import Text

LONGEST_DATA = 400  # characters of progress data that are shown, as one line of JSON
# errors of decoding a text of unknown origin
_UNREADABLE = (msgspec.DecodeError, RecursionError, UnicodeEncodeError)
QUARTERS = 4  # a bar is marked at each, for views that cannot draw it


class Calls:
    """Makes the cards of calls. `deltas`: kind of delta (`Delta.of`) → the method that takes it."""

    def __init__(self, cards: CardList) -> None:
        self._cards = cards
        self._calls: dict[str, CallCard] = {}  # by the id of the call
        self.deltas: dict[str, Callable[[e.Delta], None]] = {
            "call": self.take_letters,
            "result": self.take_early_end,
            "approval": self.take_live_approval,
            "picture": self.take_picture,
        }
        self._servers: dict[str, str] = {}  # name of a tool → its MCP server

    def get(self, call_id: str) -> CallCard | None:
        """Return the card of a call, or None."""
        return self._calls.get(call_id)

    def list_open(self) -> list[CallCard]:
        """Return the cards of calls without a result, but for those still being written."""
        return [c for c in self._calls.values() if c.open]

    def add_server(self, payload: dict[str, Any]) -> None:
        """Take the list of an MCP server's tools: the cards of their calls name the server."""
        for tool in as_list(payload.get("tools")):
            self._servers[str(as_dict(tool).get("name"))] = str(payload.get("server") or "")

    def take_error(self, event: e.Error) -> bool:
        """Take an error of a call; return False if it belongs to no call of this view."""
        card = self._calls.get(event.call_id) if event.call_id else None
        if card is not None:
            card.error = event.message
            self._cards.touch(card)
        return card is not None

    def end(self) -> None:
        """Close the cards of calls without a result: the run has ended."""
        for card in self._cards.cards:  # not `_calls`: a call that was cut off has no id yet
            if isinstance(card, CallCard) and card.open:
                card.status, card.done = "unfinished", True
                self._cards.touch(card)

    def take_letters(self, event: e.Delta) -> None:
        """Append a piece of the arguments."""
        card = self._cards.find(f"call:{event.block}")
        if not isinstance(card, CallCard):
            card = CallCard(self._cards.new_key("call"))
            self._cards.add(card, f"call:{event.block}")
        card.name = event.name or card.name
        card.raw.append(event.text)
        self._cards.touch(card)

    def take_early_end(self, event: e.Delta) -> None:
        """Take the status of the ended call `block`, whose result follows in call order."""
        card = self._calls.get(event.block)
        if card is not None and card.open:
            card.status, card.early = "finished", event.text
            card.ended = event.ts
            self._cards.touch(card)

    def take_picture(self, event: e.Delta) -> None:
        """Take a picture that a running call shows: `[index, picture]` as JSON.

        It replaces the picture with that index; null removes all pictures.
        """
        card = self._calls.get(event.block)
        try:
            index, picture = msgspec.json.decode(event.text, type=tuple[int, dict[str, Any] | None])
        except _UNREADABLE:
            return
        if card is not None and card.open:
            pictures = card.attachments
            replaced = (*pictures[:index], picture, *pictures[index + 1 :]) if picture else ()
            card.attachments = replaced
            self._cards.touch(card)

    def take_call(self, event: e.Call) -> None:
        """Take the whole call, for the card of its deltas or for a new one."""
        streamed = self._cards.find(f"call:{event.block}") if event.block else None
        if isinstance(streamed, CallCard) and not streamed.call_id:
            card = streamed
        else:
            card = CallCard(self._cards.new_key("call"))
            self._cards.add(card)
        card.call_id = event.call_id or event.block or card.key
        card.name, card.args = event.name, event.args
        card.server = self._servers.get(event.name, "")
        card.raw = Text(event.raw_args)
        card.incomplete, card.status = event.incomplete, "queued"
        self._calls[card.call_id] = card
        self._cards.touch(card)

    def _find_or_add(self, call_id: str, name: str = "") -> CallCard:
        """Return the card of a call, a new one if no `Call` came before, as in imported logs."""
        card = self._calls.get(call_id)
        if card is None:
            card = CallCard(self._cards.new_key("call"))
            card.call_id, card.name, card.status = call_id, name or "tool", "queued"
            self._calls[call_id] = card
            self._cards.add(card)
        return card

    def take_approval(self, event: e.Approval) -> None:
        """Take a question about a call, or its answer."""
        card = self._find_or_add(event.call_id)
        if event.stage == "requested":
            card.asked, card.status = event, "waiting"
        else:
            card.approval = event
            card.status = "queued" if card.status == "waiting" else card.status
            if event.args is not None:
                card.args = event.args
        self._cards.touch(card)

    def take_live_approval(self, event: e.Delta) -> None:
        """Take a question that a replay asks live, or its answer: an `Approval` as JSON.

        It belongs to the call that the delta names, not to the call in the recorded event.
        """
        try:
            approval = e.decode_event(event.text)
        except _UNREADABLE:
            return
        if isinstance(approval, e.Approval):
            self.take_approval(msgspec.structs.replace(approval, call_id=event.block))

    def take_execute(self, event: e.Execute) -> None:
        """Take the start of a batch."""
        batch = Batch(event.calls, event.ts)
        for call_id in event.calls:
            card = self._calls.get(call_id)
            if card is not None:
                card.batch = batch
                self._cards.touch(card)

    def take_started(self, event: e.Started) -> None:
        """Take the start of a call."""
        card = self._find_or_add(event.call_id, event.name)
        card.status, card.started = "running", event.ts
        self._cards.touch(card)

    def take_progress(self, event: e.Progress) -> None:
        """Take output and progress of a running call."""
        card = self._find_or_add(event.call_id)
        if card.status in {"queued", "waiting"}:  # some formats do not report the start of a call
            card.status, card.started = "running", event.ts
        means = e.meaning(event.data)
        if text := event.text or means.text:
            card.output.append(text)
        fraction = event.fraction if event.fraction is not None else means.fraction
        if event.data is not None:
            card.data = event.data
            # data that moves no bar and holds more than a text or a message is shown as it is
            if fraction is None and not text and (means.rest or not means.message):
                card.output.append(format_data(event.data, fresh=card.output.last(1) in {"", "\n"}))
        card.message = event.message or means.message or card.message
        if fraction is not None:
            _move_bar(card, fraction, means, event.ts)
        self._cards.touch(card)

    def take_result(self, event: e.Result) -> None:
        """Take the result of a call."""
        card = self._find_or_add(event.call_id, event.name)
        card.status, card.content, card.display = event.status, event.content, event.display
        card.duration, card.early, card.attachments = event.duration, "", event.attachments
        # results come in call order, so this one may be later than the end of its call
        card.ended = card.started + event.duration if card.started and event.duration else event.ts
        card.done = True
        if card.batch is not None:
            card.batch.ended = max(card.batch.ended, card.ended)
        self._cards.touch(card)


def _move_bar(card: CallCard, fraction: float, progress: e.Meaning, now: float) -> None:
    """Move the bar of a call to `fraction` at the time `now`; mark the quarters that it passes."""
    fraction = max(0.0, min(1.0, fraction))
    # a full bar needs no mark: the result follows
    if QUARTERS > int(fraction * QUARTERS) > int((card.fraction or 0.0) * QUARTERS):
        card.marks.append(Mark(len(card.output), fraction, card.message))
    card.fraction, card.latest, card.beside = fraction, now, progress
    card.first = card.first or (fraction, now)


def format_data(data: Any, *, fresh: bool) -> str:
    """Return progress data as one bounded line of JSON; `fresh`: the line before has ended."""
    text = json.dumps(data, ensure_ascii=False, default=str)
    more = count_noun(len(text) - LONGEST_DATA, "more character")
    text = cut_end(text, LONGEST_DATA, f"… {more}")
    return f"{text}\n" if fresh else f"\n{text}\n"
