"""The state of each card: plain mutable objects that only the modules of `view.state` change.

Why apart from the drawing: one state is drawn as widgets, a static page, markdown and text. Times
are epoch seconds (0: unknown), durations seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ...events import Approval, Error, Interrupt, Meaning
from .growing_object import GrowingObject
from .text import Output, Text

_SOFT_CODES = """
    no_images no_picture shortened malformed_execute forged_results unknown_tool incomplete
    no_schema answer_not_alone store unplayable
"""
#: Codes of errors (`Error.code`) after which a run continues by itself: they are shown as remarks.
SOFT = frozenset(_SOFT_CODES.split())


def seconds_between(start: float, end: float) -> float:
    """Return the seconds from `start` to `end`; 0 if one is unknown, or the clock was set back."""
    return max(0.0, round(end - start, 3)) if start and end else 0.0


@dataclass(eq=False)
class Card:
    """State of one card.

    `kind` names the file in `view.cards` that draws it. `key` is unique within its list. `version`
    grows with every change. `done`: a terminal may print the card, which may still grow after that.
    """

    kind = ""
    key: str
    version: int = field(default=0, init=False)
    done: bool = field(default=False, init=False)


@dataclass(eq=False)
class UserCard(Card):
    """A prompt of the user."""

    kind = "user"
    text: str
    attachments: tuple[dict[str, Any], ...]
    done: bool = field(default=True, init=False)


@dataclass(eq=False)
class ThinkCard(Card):
    """A thought. `seconds`: how long the model wrote it; `attributes`: those of its event."""

    kind = "think"
    text: Text = field(default_factory=Text)
    attributes: dict[str, Any] = field(default_factory=dict)
    started: float = 0.0
    seconds: float = 0.0
    incomplete: bool = False


@dataclass(eq=False)
class RespondCard(Card):
    """A text of the answer, of one block or several (see `agent_nb.events.text`)."""

    kind = "respond"
    text: Text = field(default_factory=Text)
    block_start: int = 0  # the length of the text before its newest block
    writing: bool = False  # that block is still being written
    incomplete: bool = False  # the text was cut off
    typed: str = ""  # the name of the type of which the text is JSON; "": another text
    field_order: tuple[str, ...] = ()  # of that type
    expects_type: bool = False  # the run asked for a type: this may be JSON that is not (yet) valid

    @property
    def is_json_code(self) -> bool:
        """Whether to show the text as code: it begins as JSON, and the run asked for a type."""
        return self.expects_type and not self.typed and self.text.begins() in ("{", "[")


class Mark(NamedTuple):
    """The progress of a call at the time when its output had `output_length` characters."""

    output_length: int
    fraction: float
    message: str


@dataclass(eq=False)
class CallCard(Card):
    """A tool call from its first letter to its result. Cards of other packages read it.

    `status`: `writing` (arguments still stream), `queued`, `waiting` (for approval), `running`,
    `finished` (its result waits for its place in call order), `ok`, `error`, `denied`, `cancelled`,
    `timeout`, `unfinished` (the run ended without its result).
    """

    kind = "call"
    call_id: str = ""
    name: str = ""
    server: str = ""  # the MCP server that the tool belongs to
    args: dict[str, Any] = field(default_factory=dict)  # {} until all have come; see `known`
    raw: Text = field(default_factory=Text)  # the arguments as the model writes them
    incomplete: bool = False  # the model was cut off inside the call
    status: str = "writing"
    early: str = ""  # of a `finished` call: the status that its result will have
    asked: Approval | None = None  # the question whether the call may run
    approval: Approval | None = None  # the answer to it, or what a policy decided
    batch: Batch | None = None  # the calls that run together with this one
    started: float = 0.0
    ended: float = 0.0
    duration: float = 0.0
    fraction: float | None = None  # of the work that is done, 0 to 1
    first: tuple[float, float] | None = None  # the first fraction and its time
    latest: float = 0.0  # time of the latest fraction
    message: str = ""  # the latest message about the progress
    data: Any = None  # the latest progress data, as the tool sent it
    beside: Meaning = field(default_factory=Meaning)  # of data that came with the latest fraction
    marks: list[Mark] = field(default_factory=list)  # the bar at each quarter, for other views
    output: Output = field(default_factory=Output)  # what the call printed
    content: Any = ""  # the result: a text or a JSON value
    display: dict[str, Any] | None = None  # the result as a mime bundle
    attachments: tuple[dict[str, Any], ...] = ()  # pictures of the call or of its result
    error: str = ""  # the message of an error event about the call
    children: list[CardList] = field(default_factory=list)  # runs inside it (sub-agents), in order

    @property
    def known(self) -> dict[str, Any]:
        """The arguments; of unfinished ones, those that can be read already."""
        partial = self.incomplete or self.status in {"writing", "unfinished"}
        if self.args or not partial:
            return self.args
        # `raw` keeps the reader, which reads only what is new
        return self.raw.memo(GrowingObject).read(self.raw)

    @property
    def open(self) -> bool:
        """Whether the call has no result yet, so that its elapsed time may still move."""
        return self.status in {"running", "waiting", "queued", "writing", "finished"}


class ErrorCard(Card):
    """An error of the run. `soft`: the run continues by itself; `raw`: the text behind it."""

    kind = "error"

    def __init__(self, key: str, event: Error) -> None:
        super().__init__(key)
        self.code, self.message, self.raw = event.code, event.message, event.raw
        self.soft = event.code in SOFT or (event.code == "invalid_output" and event.retryable)
        self.done = True


@dataclass(eq=False)
class RetryCard(Card):
    """All tries of one request that failed and was made again, `done` once that is over."""

    kind = "retry"
    # why each request failed, in a few words, and the announced seconds until the next (0: unknown)
    failures: list[tuple[str, float]] = field(default_factory=list)
    raw: str = ""  # the server's last reply
    since: float = 0.0  # when the current wait began (0: none, a request is on its way)
    waited: float = 0.0  # the seconds of all waits before
    tries: int = 0  # the number of requests, once the card is done

    def end_wait(self, now: float) -> None:
        """End the current wait, if there is one."""
        if self.since:
            self.waited, self.since = round(self.waited + max(0.0, now - self.since), 3), 0.0


class InterruptCard(Card):
    """A stop of the run; `mapped`: it stopped a map, which a rerun of the cell continues."""

    kind = "interrupt"

    def __init__(self, key: str, event: Interrupt, *, mapped: bool = False) -> None:
        super().__init__(key)
        self.mapped, self.reason, self.detail = mapped, event.reason, event.detail
        self.done = True


@dataclass(eq=False)
class NodeCard(Card):
    """A span: a sub-agent's run or a foreign graph's node, with its cards `inside`."""

    kind = "node"
    name: str
    inside: CardList
    started: float
    result: str = ""  # how the span ended (`ok`, `error: …`), as its last event says
    seconds: float = 0.0
    left: bool = False  # the run ended before the span did

    def end(self, now: float) -> None:
        """Close the span."""
        self.done, self.seconds = True, seconds_between(self.started, now)


@dataclass(eq=False)
class NoteCard(Card):
    """Consecutive events that are shown as one line: states, extensions, unknown events."""

    kind: str
    items: list[tuple[str, Any]] = field(default_factory=list)  # title and payload of each event
    before: list[Any] = field(default_factory=list)  # what each payload replaced, or `MISSING`
    done: bool = field(default=True, init=False)


@dataclass(eq=False)
class Batch:
    """Calls that run together; `calls` are their ids."""

    calls: tuple[str, ...]
    started: float = 0.0
    ended: float = 0.0

    @property
    def parallel(self) -> bool:
        """True if there is more than one call."""
        return len(self.calls) > 1


class CardList:
    """Cards in order, some with an alias (such as the id of their block) by which they are found.

    `on_change` is called when a card here changes, so that the card around this list changes too.
    """

    def __init__(self) -> None:
        self.cards: list[Card] = []
        self.events = 0  # stored events folded in
        self.on_change: Callable[[], None] | None = None
        self._by_alias: dict[str, Card] = {}
        self._number = 0

    def report_change(self) -> None:
        """Call `on_change`, if there is one."""
        if self.on_change is not None:
            self.on_change()

    def touch(self, card: Card) -> None:
        """Note that `card` changed."""
        card.version += 1
        self.report_change()

    def new_key(self, kind: str) -> str:
        """Return a key that no card of this list has."""
        self._number += 1
        return f"{kind}{self._number}"

    def add(self, card: Card, alias: str = "") -> None:
        """Append `card`; `find(alias)` returns it from now on."""
        self.cards.append(card)
        if alias:
            self.add_alias(card, alias)
        self.touch(card)

    def add_alias(self, card: Card, alias: str) -> None:
        """Let `find(alias)` return `card` from now on."""
        self._by_alias[alias] = card

    def find(self, alias: str) -> Card | None:
        """Return the card of an alias, or None."""
        return self._by_alias.get(alias)
