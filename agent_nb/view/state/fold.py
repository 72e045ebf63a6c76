"""The one fold: events in, card states out.

Why: the live view, the static page, a reload, a rerun and the view of a foreign run are this fold
over the same events, so they cannot differ.

Rules
- Deltas only bring forward what the stored events say later. If those of a span follow its `Node`,
  a log folded with or without its deltas ends in equal states, but for `MapCard.quarters`.
- Times come from the events, never from a clock; no event raises, however strange.
- Every change of a card goes through `CardList.touch`, so that a redraw touches only what changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

import msgspec

from ... import events as e
from ...events import Event, Interrupt
from ...wire import as_dict
from .calls import Calls
from .cards import CallCard, Card, CardList, ErrorCard, InterruptCard, NodeCard, UserCard
from .map import MapCardBuilder
from .notes import Notes
from .overview import RunOverview
from .plans import Plans
from .retries import Retries
from .text_cards import TextCards
from .think_cards import ThinkCards

MOST_LEVELS = 40  # of nested spans; a record may hold thousands, and drawing recurses
INTERNAL_NODES = ("llm",)  # spans without a card: the requests to the model
TEXTS = frozenset({"think", "respond", "call"})  # `of` of deltas that carry pieces of a text


class Span(NamedTuple):
    """The position of a nested view: the view around it, and the card that holds its cards.

    `id`: the `span` of its events.
    """

    outer: RunView
    card: NodeCard
    id: str


class RunView(RunOverview):
    """The state of a run as people see it: its `cards`, and its overview.

    `span`: its position, if it shows a span of another view. A `LiveView` displays a `RunView`.
    """

    def __init__(
        self, *, badge: str = "", recorded: bool = False, span: Span | None = None
    ) -> None:
        super().__init__(badge=badge, recorded=recorded)
        if span is not None:
            self.status = "running"
        self.level: int = 0 if span is None else span.outer.level + 1  # spans around this view
        self._span = span
        self._views: dict[str, RunView] = {}  # the views of the spans inside, by span
        cards = self._list = CardList() if span is None else span.card.inside
        # the parts, each of which makes one kind of card
        self._thoughts = ThinkCards(cards)
        self.texts = TextCards(cards)
        self.calls = Calls(cards)
        self.retries = Retries(cards)
        self._plans = Plans(cards)
        self.map = MapCardBuilder(cards)
        self._notes = Notes(cards)
        self._handlers: dict[type[Event], Callable[[Any], None]] = {  # by type
            e.Delta: self._take_delta,
            e.RunStart: self._take_run_start,
            e.User: self._take_user,
            e.Think: self._take_think,
            e.Node: self._take_node,
            e.State: self._take_state,
            e.Extension: self._take_extension,
            e.Error: self._take_error,
            e.Interrupt: self._take_interrupt,
            e.End: self._take_end,
            # one part handles each of these alone
            e.Call: self.calls.take_call,
            e.Approval: self.calls.take_approval,
            e.Execute: self.calls.take_execute,
            e.Started: self.calls.take_started,
            e.Progress: self.calls.take_progress,
            e.Result: self.calls.take_result,
            e.Respond: self.texts.take_block,
            e.Metric: self.usage.take_metric,
            e.Unknown: self._notes.add_unknown,
        }
        # by `of`
        self._delta_handlers: dict[str, Callable[[e.Delta], None]] = {
            "think": self._thoughts.take_delta,
            "respond": self.texts.take_delta,
            "map": self.map.take_delta,
            **self.calls.deltas,
        }

    def apply(self, event: Event) -> None:
        """Fold in one event, stored or delta, of this run or of a span inside it."""
        view = self._find_view(event) if event.span else self
        if view is not self:
            self.count(event)  # the outermost view counts the events of all spans
            if type(event) is e.Metric:
                self.usage.note_price(event)
        view.take(event)

    def extend(self, events: Iterable[Event]) -> RunView:
        """Fold in many events; return this view."""
        for event in events:
            self.apply(event)
        return self

    @property
    def cards(self) -> list[Card]:
        """The cards in order."""
        return self._list.cards

    @property
    def events(self) -> int:
        """The number of stored events folded in."""
        return self._list.events

    def call(self, call_id: str) -> CallCard | None:
        """Return the card of a call of this view, or None."""
        return self.calls.get(call_id)

    @property
    def log_start(self) -> float:
        """Epoch seconds of the whole log's first event; recorded deltas count from it."""
        return self.first or 0.0 if self._span is None else self._span.outer.log_start

    # --- the tree of spans

    def _find_view(self, event: Event) -> RunView:
        """Return the view of an event's span; a span that begins gets a view of its own.

        A request to the model, a span whose beginning is missing, and one below `MOST_LEVELS`
        belong to the view around.
        """
        if (existing := self._views.get(event.span)) is not None:
            return existing
        view = self._views.get(event.parent, self)
        node = event if isinstance(event, e.Node) and event.name not in INTERNAL_NODES else None
        if node is not None and node.phase == "enter" and view.level < MOST_LEVELS:
            view = view.open_node(node)
        if type(event) is not e.Delta:  # which may come before the beginning of its span
            self._views[event.span] = view
        return view

    def open_node(self, event: e.Node) -> RunView:
        """Return a view for the span that `event` opens, inside a call or a card of this view."""
        self.texts.note_event(event)
        data = event.data or {}
        call = self.calls.get(str(data.get("call_id", "")))
        card = NodeCard(self._list.new_key("node"), event.name, CardList(), event.ts)
        # a change inside the span is a change of the card around it: of its call, else of its own
        card.inside.on_change = partial(self._list.touch, call or card)
        if call is not None:
            call.children.append(card.inside)
        else:
            self._list.add(card)
        return RunView(span=Span(self, card, event.span))

    # --- one event of this view

    def count(self, event: Event) -> None:
        """Note the time of an event of this view or of a span inside it, and count it if stored."""
        self.retries.end_at_outcome(event)
        if type(event) is not e.Delta:
            self._list.events += 1
            self.note_stored(event)
        self._list.report_change()

    def take(self, event: Event) -> None:
        """Fold in an event of this view itself."""
        self.count(event)
        self.turn = max(self.turn, event.turn)
        self.texts.note_event(event)
        if (handler := self._handlers.get(type(event))) is not None:
            handler(event)

    def _take_delta(self, event: e.Delta) -> None:
        self.doing = event.text if event.of == "status" else ""
        if event.of in TEXTS:
            self.usage.streamed += len(event.text)
        if (handler := self._delta_handlers.get(event.of)) is not None:
            handler(event)

    def _take_run_start(self, event: e.RunStart) -> None:
        self.note_start(event)
        self.texts.begin(self.settings)

    def _take_user(self, event: e.User) -> None:
        key = self._list.new_key("user")
        self._list.add(UserCard(key, event.content, event.attachments))

    def _take_think(self, event: e.Think) -> None:
        self._thoughts.take_thought(event, self.log_start, self.previous)

    def _take_node(self, event: e.Node) -> None:
        """Take the start or end of a request, or the end of the span that this view shows."""
        if event.name in INTERNAL_NODES:
            self.retries.take_request(event)
            self.note_request(event)
        elif self._span is not None and event.span == self._span.id and event.phase == "exit":
            self._end_span(event, self._span.card)

    def _end_span(self, event: e.Node, card: NodeCard) -> None:
        card.result = event.result
        card.end(event.ts)
        self.ended, self.usage.streamed = self.ended or event.ts, 0
        if self.running:
            self.status = "ok" if event.result in {"", "ok"} else "error"
        self._list.touch(card)

    def _take_state(self, event: e.State) -> None:
        self.note_state(event)
        if event.kind == "mcp":
            self.calls.add_server(as_dict(event.payload))
        elif not self.map.take_state(event):
            self._notes.add_state(event)

    def _take_extension(self, event: e.Extension) -> None:
        if not self._plans.take_extension(event):
            self._notes.add_extension(event)

    def _take_error(self, event: e.Error) -> None:
        if self.calls.take_error(event):
            return
        if event.code == "retry":
            self.retries.take_failure(event)
        else:
            self._list.add(ErrorCard(self._list.new_key("error"), event))

    def _take_interrupt(self, event: e.Interrupt) -> None:
        self.limit = Interrupt.limit_in(event.detail) if event.reason != "user" else ""
        mapped = self.map.card is not None
        self._list.add(InterruptCard(self._list.new_key("interrupt"), event, mapped=mapped))

    def _take_end(self, event: e.End) -> None:
        for view in self._views.values():
            view.cut_off(event)
        self.texts.take_reply(event)
        self._close(event)

    def _close(self, event: e.End) -> None:
        """Close what is open in this view: the run has ended."""
        self.status, self.ended = event.status, event.ts
        self.usage.streamed = 0
        self.calls.end()
        self._plans.end()
        self.map.end()
        self._thoughts.end(event.ts)
        self.texts.end()

    def cut_off(self, event: e.End) -> None:
        """Close a span that is still open at the end of its run."""
        if self._span is None or self._span.card.done:
            return
        card = self._span.card
        card.left = True
        card.end(event.ts)
        # the span did not end by itself, even if the status of the run is `ok`
        self._close(msgspec.structs.replace(event, status="interrupted"))
        self._list.touch(card)
