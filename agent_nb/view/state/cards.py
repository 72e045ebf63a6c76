"""The state of each card: plain mutable objects that only the modules of `view.state` change.

Why apart from the drawing: one state is drawn as widgets, a static page, markdown and text.

Rules
- A card keeps fields of events, not the events; only an `Approval` is kept whole.
- Times are epoch seconds (0: unknown), durations seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ...events import Approval, Error, Interrupt, Meaning
from .growing_object import GrowingObject
from .text import Output, Text

_SOFT_CODES = """
    no_images no_picture shortened malformed_execute forged_results unknown_tool incomplete
    no_schema answer_not_alone store unplayable
"""
#: Codes of errors after which a run continues by itself.
SOFT = frozenset(_SOFT_CODES.split())


def seconds_between(start: float, end: float) -> float:
    """Return the seconds from `start` to `end`; 0 if one is unknown, or the clock was set back."""
    return max(0.0, round(end - start, 3)) if start and end else 0.0


class Card:
    """State of one card.

    `kind` names the file in `view.cards` that draws it. `key` is unique within its list. `version`
    grows with every change. `done`: a terminal may print it. Notes and plans are done at once, and
    still grow; a text that was done may go on.
    """

    kind = ""

    def __init__(self, key: str) -> None:
        self.key = key
        self.version = 0
        self.done = False


class UserCard(Card):
    """A prompt of the user."""

    kind = "user"

    def __init__(self, key: str, text: str, attachments: tuple[dict[str, Any], ...]) -> None:
        super().__init__(key)
        self.text = text
        self.attachments = attachments
        self.done = True


class ThinkCard(Card):
    """A thought. `seconds`: how long the model wrote it; `attributes`: those of its event."""

    kind = "think"

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.text = Text()
        self.attributes: dict[str, Any] = {}
        self.started = 0.0
        self.seconds = 0.0
        self.incomplete = False

    def cut_off(self, now: float) -> None:
        """Close a thought that the end of the run cut off."""
        self.incomplete = self.done = True
        self.seconds = seconds_between(self.started, now)


class RespondCard(Card):
    """A text of the answer, of one block or several (see `agent_nb.events.text`).

    - `block_start`: the length of the text before its newest block
    - `writing`: whether that block is still being written; `incomplete`: the text was cut off
    - `typed`: the name of the type of which the text is JSON, "" for other text
    - `field_order`: the order of that type's fields
    - `expects_type`: the run asked for a type, so the text may be JSON that is not (yet) valid
    """

    kind = "respond"

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.text = Text()
        self.block_start = 0
        self.writing = False
        self.incomplete = False
        self.typed = ""
        self.field_order: tuple[str, ...] = ()
        self.expects_type = False

    @property
    def is_json_code(self) -> bool:
        """Whether to show the text as code: it begins as JSON, and the run asked for a type."""
        return self.expects_type and not self.typed and self.text.begins() in ("{", "[")

    def cut_off(self) -> None:
        """Close a text at the end of the run."""
        self.incomplete, self.done = self.incomplete or self.writing, True


class Mark(NamedTuple):
    """The progress of a call at the time when its output had `output_length` characters."""

    output_length: int
    fraction: float
    message: str


class CallCard(Card):
    """A tool call from its first letter to its result. Cards of other packages read it.

    `status`: `writing` (arguments still stream), `queued`, `waiting` (for approval), `running`,
    `finished` (its result waits for its place in call order), `ok`, `error`, `denied`, `cancelled`,
    `timeout`, `unfinished` (the run ended without its result).
    """

    kind = "call"

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.call_id = ""
        self.name = ""
        self.server = ""  # the MCP server that the tool belongs to
        self.args: dict[str, Any] = {}  # {} until the whole call has come; see `known`
        self.raw = Text()  # the arguments as the model writes them
        self.incomplete = False  # the model was cut off inside the call
        self.status = "writing"
        self.early = ""  # of a `finished` call: the status that its result will have
        self.asked: Approval | None = None  # the question whether the call may run
        self.approval: Approval | None = None  # the answer to it, or what a policy decided
        self.batch: Batch | None = None  # the calls that run together with this one
        self.started = 0.0
        self.ended = 0.0
        self.duration = 0.0
        self.fraction: float | None = None  # of the work that is done, 0 to 1
        self.first: tuple[float, float] | None = None  # the first fraction and its time
        self.latest = 0.0  # time of the latest fraction
        self.message = ""  # the latest message about the progress
        self.data: Any = None  # the latest progress data, as the tool sent it
        self.beside = Meaning()  # what the data that came with the latest fraction means
        self.marks: list[Mark] = []  # the bar at each quarter, for views that cannot draw one
        self.output = Output()  # what the call printed
        self.content: Any = ""  # the result: a text or a JSON value
        self.display: dict[str, Any] | None = None  # the result as a mime bundle
        self.attachments: tuple[dict[str, Any], ...] = ()  # pictures of the call or of its result
        self.error = ""  # the message of an error event about the call
        self.children: list[CardList] = []  # runs inside the call (sub-agents), in order

    @property
    def known(self) -> dict[str, Any]:
        """The arguments; of unfinished ones, those that can be read already."""
        partial = self.incomplete or self.status in {"writing", "unfinished"}
        # `raw` keeps the reader, which reads only what is new
        return (
            self.raw.memo(GrowingObject).read(self.raw) if partial and not self.args else self.args
        )

    @property
    def open(self) -> bool:
        """Whether the call has no result yet, so that its elapsed time may still move."""
        return self.status in {"running", "waiting", "queued", "writing", "finished"}


class ErrorCard(Card):
    """An error of the run. `soft`: the run continues by itself; `raw`: the text behind it."""

    kind = "error"

    def __init__(self, key: str, event: Error) -> None:
        super().__init__(key)
        self.code = event.code
        self.message = event.message
        self.raw = event.raw
        self.soft = event.code in SOFT or (event.code == "invalid_output" and event.retryable)
        self.done = True


class RetryCard(Card):
    """All tries of one request that failed and was made again.

    - `done`: it succeeded or was given up
    - `failures`: why each request failed, in a few words, and the announced seconds until the next
      request (0: unknown)
    - `raw`: the server's last reply
    - `since`: when the current wait began (0: none, a request is on its way)
    - `waited`: the seconds of all waits before
    - `tries`: the number of requests, once the card is done
    """

    kind = "retry"

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.failures: list[tuple[str, float]] = []
        self.raw = ""
        self.since = 0.0
        self.waited = 0.0
        self.tries = 0

    def end_wait(self, now: float) -> None:
        """End the current wait, if there is one."""
        if self.since:
            self.waited, self.since = round(self.waited + max(0.0, now - self.since), 3), 0.0


class InterruptCard(Card):
    """A stop of the run; `mapped`: it stopped a map, which a rerun of the cell continues."""

    kind = "interrupt"

    def __init__(self, key: str, event: Interrupt, *, mapped: bool = False) -> None:
        super().__init__(key)
        self.mapped = mapped
        self.reason = event.reason
        self.detail = event.detail
        self.done = True


class NodeCard(Card):
    """A span: a sub-agent's run or a foreign graph's node, with its cards `inside`.

    `result`: how the span ended (`ok`, `error: …`), as its last event says; "" before that.
    """

    kind = "node"

    def __init__(self, key: str, name: str, inside: CardList, started: float) -> None:
        super().__init__(key)
        self.name = name
        self.result = ""
        self.inside = inside
        self.started = started
        self.seconds = 0.0
        self.left = False  # the run ended before the span did

    def end(self, now: float) -> None:
        """Close the span."""
        self.done, self.seconds = True, seconds_between(self.started, now)


class NoteCard(Card):
    """Consecutive events that are shown as one line: states, extensions, unknown events.

    `items`: (title, payload) of each event; `before`: for each item the payload that it replaced,
    `MISSING` if there was none.
    """

    def __init__(self, key: str, kind: str) -> None:
        super().__init__(key)
        self.kind = kind
        self.items: list[tuple[str, Any]] = []
        self.before: list[Any] = []
        self.done = True


class Batch:
    """Calls that run together; `calls` are their ids."""

    def __init__(self, calls: tuple[str, ...]) -> None:
        self.calls = calls
        self.started = 0.0
        self.ended = 0.0

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
