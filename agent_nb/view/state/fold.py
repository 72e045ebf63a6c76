"""The one fold: events in, card states out.

The live view, the static page, a reload, a rerun and the view of someone else's run are this fold
over the same events, so they cannot drift apart. It knows no node, no HTML and no widget.

Rules
- `apply` is O(1) amortised and never raises on a strange log: what it cannot place it keeps as a
  note.
- Deltas only bring forward what the stored events say later: folding a log with its deltas or
  without them ends in equal states.
- Times come from the events, never from a clock.
- Every change of a card raises its `version` and that of the cards around it, so that a redraw
  touches only what changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ...events import (
    Approval,
    Call,
    Counts,
    Delta,
    End,
    Error,
    Event,
    Execute,
    Extension,
    Interrupt,
    Metric,
    Node,
    Progress,
    Respond,
    Result,
    RunStart,
    Started,
    State,
    Think,
    Unknown,
    User,
)
from ...events.chunks import decode_chunks
from ...events.interruption import limit_in
from .cards import (
    Card,
    ErrorCard,
    InterruptCard,
    NodeCard,
    NoteCard,
    RespondCard,
    ThinkCard,
    UserCard,
)
from .json_diff import MISSING
from .plans import Plans
from .text import Text

INTERNAL_NODES = ("llm",)
INTERNAL_EXTENSIONS = ("resend",)  # a provider's own blocks, kept only to be sent back
TEXTS = frozenset({"think", "respond", "call"})  # deltas that carry pieces of a text
OWN_EXTENSIONS = {("agent_nb", "drift"): "drift"}  # those of ours that have a card of their own


class RunView(Plans):
    """The state of one run's view: `cards` in order and what the header and the footer say.

    `badge` is a remark on the whole run that is no event of it, such as "replayed from 21 Nov";
    `recorded`: its times are past.
    """

    def __init__(self, *, badge: str = "", recorded: bool = False) -> None:
        super().__init__()
        self.badge, self.recorded = badge, recorded
        self.run = ""
        self.agent = ""
        self.model = ""
        self.dialect = ""
        self.settings: dict[str, Any] = {}
        self.status = ""  # "" not begun, "running", or the status of `end`
        self.finish_reason = ""
        self.reason = ""  # of an interrupt
        self.turn = 0
        self.started = 0.0
        self.ended = 0.0
        self.last = 0.0
        self.total = Counts()
        self.step = Counts()
        self.estimated = False
        self.limit = ""  # that ended the run, in words
        self.left_out = ""  # of the conversation, in words
        self.foreign = ""  # turns of the conversation that come from records of others, in words
        # what is going on before anything can stream, such as the loading of a model: live only
        self.doing = ""
        self.streamed = 0  # characters from the model since the last metric: only while it streams
        self._previous = 0.0  # time of the event before the latest
        self._first: float | None = None
        self._outer: RunView | None = None
        self._spans: dict[str, RunView] = {}
        self._span_card: NodeCard | None = None
        self._states: dict[str, Any] = {}  # the latest state of each kind, and under "" of any

    def apply(self, event: Event) -> None:
        """Fold one event in (stored or delta)."""
        view = self._place(event)
        if view is not self:
            self._seen(event)
        view._seen(event)
        view.turn = max(view.turn, event.turn)
        view._sort(event)
        handler = HANDLERS.get(type(event))
        if handler is not None:
            handler(view, event)

    def extend(self, events: Iterable[Event]) -> RunView:
        """Fold many events in and return the view."""
        for event in events:
            self.apply(event)
        return self

    @property
    def ended_at(self) -> float:
        """Epoch seconds at which the run ended, or of the latest event."""
        return self.ended or self.last

    # --- the tree of spans

    def _place(self, event: Event) -> RunView:
        """Return the view that an event belongs to, opening one for a new span."""
        if not event.span:
            return self
        found = self._spans.get(event.span)
        if found is not None:
            return found
        outer = self._spans.get(event.parent, self)
        if not isinstance(event, Node) or event.phase != "enter" or event.name in INTERNAL_NODES:
            self._spans[event.span] = outer
            return outer
        inner = outer._open_node(event)
        self._spans[event.span] = inner
        return inner

    def _open_node(self, event: Node) -> RunView:
        self._sort(event)
        data = event.data or {}
        call = self._calls.get(str(data.get("call_id", "")))
        key = self._new_key("node")
        inner = RunView()
        card = NodeCard(key, event.name, inner)
        inner._parent = lambda: self._touch(call or card)
        inner._outer, inner._span_card = self, card
        card.data, card.started, inner.status = data, event.ts, "running"
        if call is not None:
            call.children.append(inner)
            inner.agent = event.name
        else:
            self._add(card)
        return inner

    # --- one event of this view

    def _seen(self, event: Event) -> None:
        self._settle_retry(event)
        if type(event) is not Delta:
            self.events += 1
            self.doing = ""
            self._first = event.ts if self._first is None else self._first
            self._previous, self.last = self.last or event.ts, max(self.last, event.ts)
            self.started = self.started or event.ts
            self.run = self.run or event.run
            self.status = self.status or "running"
        self._changed()

    def _run_start(self, event: RunStart) -> None:
        self.agent = event.agent or self.agent
        self.model, self.dialect, self.settings = event.model, event.dialect, dict(event.settings)
        self.started = event.ts

    def _user(self, event: User) -> None:
        card = UserCard(self._new_key("user"))
        card.text, card.attachments, card.done = event.content, event.attachments, True
        self._add(card)

    def _thought(self, event: Delta | Think) -> ThinkCard:
        """Return the open card of a thought, or a new one."""
        alias = f"think:{event.block}"
        card = self._by_key.get(alias) if event.block else None
        if isinstance(card, ThinkCard) and not card.done:
            return card
        new = ThinkCard(self._new_key("think"))
        self._add(new, alias)
        return new

    def _delta(self, event: Delta) -> None:
        self.doing = event.text if event.of == "status" else ""
        if event.of == "status":
            return
        self.streamed += len(event.text) if event.of in TEXTS else 0
        handler = {
            "think": self._think_delta,
            "respond": self._text_delta,
            "call": self._call_delta,
            "result": self._early,
            "approval": self._asked,
        }
        handler.get(event.of, lambda _: None)(event)

    def _think_delta(self, event: Delta) -> None:
        card = self._thought(event)
        card.started = card.started or event.ts
        card.text.append(event.text)
        self._touch(card)

    def _think(self, event: Think) -> None:
        card = self._thought(event)
        if str(card.text) != event.content:
            card.text = Text(event.content)
        card.attributes = dict(event.attributes or {})
        card.started = first_piece(event.chunks, self._run_began()) or self._previous
        card.seconds = max(0.0, round(event.ts - card.started, 3))
        card.incomplete, card.done = event.incomplete, True
        self._touch(card)

    def _run_began(self) -> float:
        """The time that recorded pieces count from: the first event of the whole log."""
        return self._outer._run_began() if self._outer is not None else self._first or 0.0

    def _metric(self, event: Metric) -> None:
        self.step, self.total, self.estimated = event.step, event.total, event.estimated
        self.streamed = 0

    def _node(self, event: Node) -> None:
        card = self._span_card
        if event.name in INTERNAL_NODES:
            self._request(event)
            return
        if card is None or event.phase != "exit":
            return
        card.result, card.done = event.result, True
        card.seconds = max(0.0, round(event.ts - card.started, 3))
        self.ended, self.streamed = self.ended or event.ts, 0
        if self.status in {"", "running"}:
            self.status = "ok" if event.result in {"", "ok"} else "error"
        self._touch(card)

    def _note(self, kind: str, title: str, payload: Any, before: Any = MISSING) -> None:
        last = self.cards[-1] if self.cards else None
        if not isinstance(last, NoteCard) or last.kind != kind:
            last = NoteCard(self._new_key(kind), kind)
            self._add(last)
        last.items.append((title, payload))
        last.before.append(before)
        self._touch(last)

    def _state(self, event: State) -> None:
        said = event.payload if isinstance(event.payload, dict) else {}
        if event.kind == "foreign_turns" and said:
            self.foreign = str(said.get("note") or "")
            return
        if event.kind == "window" and said:
            self.left_out = str(said.get("note") or "")
            if not said.get("text"):
                return
        before = self._states.get(event.kind, self._states.get("", MISSING))
        self._note("state", event.kind or "state", event.payload, before)
        self._states[event.kind] = self._states[""] = event.payload

    def _extension(self, event: Extension) -> None:
        if event.name not in INTERNAL_EXTENSIONS and not self._plan(event):
            kind = OWN_EXTENSIONS.get((event.namespace, event.name), "extension")
            self._note(
                kind,
                ".".join(p for p in (event.namespace, event.name) if p) or "extension",
                event.payload,
            )

    def _unknown(self, event: Unknown) -> None:
        self._note("extension", event.kind or "unknown", event.payload)

    def _error(self, event: Error) -> None:
        card = self._calls.get(event.call_id) if event.call_id else None
        if card is not None:
            card.error = event.message
            self._touch(card)
        elif event.code == "retry":
            self._failed(event)
        else:
            self._add(ErrorCard(self._new_key("error"), event))

    def _interrupt(self, event: Interrupt) -> None:
        self.reason, self.limit = (
            event.reason,
            limit_in(event.detail) if event.reason != "user" else "",
        )
        self._add(InterruptCard(self._new_key("interrupt"), event))

    def _end(self, event: End) -> None:
        self.status, self.finish_reason, self.ended = event.status, event.finish_reason, event.ts
        self.streamed = 0
        for call in self.open_calls():
            call.status, call.done = "unfinished", True
            self._touch(call)
        self._end_plans()
        self._reply(event)
        for card in self.cards:
            self._cut_off(card)

    def _cut_off(self, card: Card) -> None:
        if isinstance(card, ThinkCard | RespondCard) and not card.done:
            card.incomplete = card.incomplete or isinstance(card, ThinkCard) or card.writing
            card.done = True
            self._touch(card)


# The fold as a table; the methods are private to this file.
# ruff: noqa: SLF001
HANDLERS: dict[type[Event], Callable[[RunView, Any], None]] = {
    RunStart: RunView._run_start,
    User: RunView._user,
    Think: RunView._think,
    Call: RunView._call,
    Approval: RunView._approval,
    Execute: RunView._execute,
    Started: RunView._started,
    Progress: RunView._progress,
    Result: RunView._result,
    Respond: RunView._respond,
    Metric: RunView._metric,
    Node: RunView._node,
    State: RunView._state,
    Extension: RunView._extension,
    Unknown: RunView._unknown,
    Error: RunView._error,
    Interrupt: RunView._interrupt,
    End: RunView._end,
    Delta: RunView._delta,
}


def first_piece(chunks: str, start: float) -> float:
    """Return the epoch seconds of the first delta of a stored block, or 0 when its pieces were not
    recorded.
    """
    try:
        pair = next(decode_chunks(chunks), None)
    except ValueError:
        return 0.0
    return 0.0 if pair is None else round(start + pair[1] / 1000, 3)
