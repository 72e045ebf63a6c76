"""What model calls of other libraries cost, and the budget that they share.

Rules
- A call begins if what was spent, the calls under way at their estimates and its own estimate stay
  within the budget; else it waits for those under way, in the order of arrival. A call alone begins
  if what it sends costs less than is left: its answer may go beyond, and is not cut.
- Of an answer without usage, one that broke off or was streamed without it, the texts are counted.
- Only what is sent costs. An answer with an error is free, and so is a request that no model
  answers (`_FREE`), such as an upload.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import Any

import msgspec

from ..agent import AnswerReader
from ..events import Counts, Delta
from ..models import Tariff, format_dollars, make_decoder
from ..wire import as_dict
from .exchange import Exchange, Refusal, Request
from .prices import find_model

_FREE = (
    "/count_tokens", ":countTokens", "/input_tokens", "/moderations", "/files", "/uploads",
    "/cancel", "/conversations", "/items", "/vector_stores",
)  # fmt: skip  # how paths end that cost nothing
_CHOICES = ("n", "candidateCount")  # fields with the number of answers
_CAPS = ("max_tokens", "max_completion_tokens", "max_output_tokens", "maxOutputTokens")
_UNLIMITED = 4_000  # tokens of an answer that its request does not limit
_PICTURE_TOKENS = 1_000  # of an encoded picture or file
_LONGEST_WORD = 4_000  # characters; a text with more before its first space is such a file
_CHARACTERS_PER_TOKEN = 4
_UNPRICED_SHARE = 0.1  # of the budget, for a call whose price comes with its answer


class Charge(msgspec.Struct, frozen=True, eq=False):
    """What a call may cost, in dollars; `eq=False`, since two calls may cost the same."""

    cost: float = 0.0  # the estimate; 0: nothing is counted
    cost_sent: float = 0.0  # the part of it for what is sent
    sent: int = 0  # tokens
    tariff: Tariff = Tariff()  # how the answer is priced


class Spending:
    """What a kernel's calls have `spent` under a `budget`, in dollars; 0: they are not counted."""

    def __init__(self) -> None:
        self.budget = 0.0
        self.spent = 0.0
        self._under_way: set[Charge] = set()
        self._waiting: list[Charge] = []  # in the order of arrival
        self._lock = threading.Lock()
        # done when a call ends, a waiting one begins or leaves, or the budget changes
        self._changed: Future[None] = Future()

    def change_budget(self, budget: float) -> None:
        """Set the budget, also for the calls that wait."""
        with self._lock:
            self.budget = budget
        self._notify()

    async def begin(self, charge: Charge) -> Refusal | None:
        """Count a call as under way once there is room; return a refusal if there is none."""
        if not charge.cost:
            return None
        with self._lock:
            self._waiting.append(charge)
        try:
            while True:
                with self._lock:
                    if self._waiting[0] is charge and self._fits_now(charge):
                        self._under_way.add(charge)
                        return None
                    if not self._fits_alone(charge):
                        return Refusal(self._explain(charge), 429)
                    changed = self._changed
                # shielded: others wait for it, too
                await asyncio.shield(asyncio.wrap_future(changed))
        finally:
            with self._lock:
                self._waiting.remove(charge)
            self._notify()

    def end(self, charge: Charge, exchange: Exchange | None) -> None:
        """Count what a call cost; None: no answer began."""
        if not charge.cost:
            return
        cost = 0.0
        if exchange is not None and exchange.response.status < 400:
            cost = _measure_cost(charge, exchange)
        with self._lock:
            self._under_way.discard(charge)
            self.spent += cost
        self._notify()

    def _notify(self) -> None:
        """Let the calls that wait look again."""
        with self._lock:
            changed, self._changed = self._changed, Future()
        changed.set_result(None)

    def estimate(self, request: Request) -> Charge:
        """Return what a request may cost. Raises UsageError if a budget needs its price."""
        is_free = request.path.endswith(_FREE) or "/uploads/" in request.path
        if not self.budget or request.method != "POST" or is_free:
            return Charge()
        model = find_model(request)
        tariff = model.tariff
        tariff.check_budget(model.name, self.budget)
        sent = _count_sent(request.body.value)
        cost = tariff.cost(Counts(input=sent, output=_count_allowed(request.body.value)))
        if cost is None:
            cost = self.budget * _UNPRICED_SHARE
        return Charge(cost, tariff.cost(Counts(input=sent)) or 0.0, sent, tariff)

    def _fits_now(self, charge: Charge) -> bool:
        """Return whether a call may begin now."""
        if not self.budget or not self._under_way:
            return self._fits_alone(charge)
        under_way = sum(each.cost for each in self._under_way)
        return under_way + charge.cost <= self.budget - self.spent + 1e-9

    def _fits_alone(self, charge: Charge) -> bool:
        """Return whether a call may begin while no other is under way."""
        return not self.budget or self.spent + charge.cost_sent < self.budget

    def _explain(self, charge: Charge) -> str:
        reason = "is used up"
        if self.spent < self.budget:
            reason = (
                f"has no room for this call: it sends about {charge.sent:,} tokens, which cost"
                f" {format_dollars(charge.cost_sent)}"
            )
        return (
            f"The tape's budget of {format_dollars(self.budget)} {reason}."
            f" {format_dollars(self.spent)} were spent. Nothing was sent. Raise the budget"
            " with %agent tape --budget USD (0: none); calls with a record cost nothing."
        )


def _measure_cost(charge: Charge, exchange: Exchange) -> float:
    """Return what an answer cost, the estimate if that cannot be read."""
    response = exchange.response
    decoder = make_decoder(exchange.request.path, response.status)
    if decoder is None or response.body.kind not in ("json", "stream"):
        return charge.cost
    reader = AnswerReader(decoder)
    events = [event for piece in response.body.pieces() for event in reader.feed(piece)]
    texts = (e.text for e in events + reader.close() if isinstance(e, Delta))
    turn, written = reader.turn, sum(map(len, texts)) // _CHARACTERS_PER_TOKEN
    counts, _ = turn.count_usage(charge.sent, written, complete=response.complete)
    cost = charge.tariff.cost(counts, turn.head.model) if counts.cost is None else counts.cost
    return charge.cost if cost is None else cost


def _count_sent(value: Any) -> int:
    """Return the estimated tokens of a request's body."""
    if isinstance(value, dict | list):
        return sum(map(_count_sent, value.values() if isinstance(value, dict) else value))
    text = value if isinstance(value, str) else str(value)
    if len(text) > _LONGEST_WORD and " " not in text[:_LONGEST_WORD]:
        return _PICTURE_TOKENS
    return len(text) // _CHARACTERS_PER_TOKEN + 1


def _count_allowed(body: Any) -> int:
    """Return the most tokens that a request allows, in all choices; else `_UNLIMITED`."""
    fields = as_dict(body)
    objects = (fields, as_dict(fields.get("generationConfig")))
    tokens = _find_number(objects, _CAPS) or _UNLIMITED
    return tokens * (_find_number(objects, _CHOICES) or 1)


def _find_number(objects: Sequence[Mapping[str, Any]], names: Sequence[str]) -> int:
    """Return the first positive number in fields of these names, 0 for none."""
    values = (each.get(name) for each in objects for name in names)
    return next((n for n in values if isinstance(n, int) and n > 0), 0)
