"""The state of each card, as plain mutable objects that only this room changes.

Rules
- Of the event types, only `Approval` is kept whole. No node, no HTML, no widget.
- Times are epoch seconds, durations seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ...events import Approval, Error, Interrupt, Meaning
from .text import Output, Text

#: Errors after which a run continues without help.
SOFT = frozenset(
    {
        "no_images",
        "no_picture",
        "shortened",
        "malformed_execute",
        "forged_results",
        "unknown_tool",
        "incomplete",
        "no_schema",
        "answer_not_alone",
        "store",
        "unplayable",
    }
)


class Card:
    """State of one card.

    `key` is unique within its list; `done`: no later event changes it.
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
    """A thought; `seconds`: how long the model took over it."""

    kind = "think"

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.text = Text()
        self.attributes: dict[str, Any] = {}
        self.started = 0.0
        self.seconds = 0.0
        self.incomplete = False

    def cut_off(self) -> None:
        """Close a thought that the end of the run cut off."""
        self.incomplete = self.done = True


class RespondCard(Card):
    """A text of one block or several (see `agent_nb.events.text`).

    `at`: where the newest block begins; `writing`: whether it is still being written; `typed`: the
    name of the type of which the text is JSON, `order` that of its fields; `expects_type`: whether
    the run asked for a type, so that text may be JSON that is not (yet) valid.
    """

    kind = "respond"

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.text = Text()
        self.at = 0
        self.writing = False
        self.incomplete = False
        self.typed = ""
        self.order: tuple[str, ...] = ()
        self.expects_type = False

    @property
    def code(self) -> bool:
        """Whether the text is to be shown as JSON code: what a model wrote when asked for JSON."""
        return self.expects_type and not self.typed and self.text.begins() in "{["

    def cut_off(self) -> None:
        """Close a text at the end of the run."""
        self.incomplete, self.done = self.incomplete or self.writing, True


READABLE = 4000


class Mark(NamedTuple):
    """Where the bar of a call was when its output was `at` characters long."""

    at: int
    fraction: float
    message: str


class CallCard(Card):
    """A tool call from its first letter to its result.

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
        self.args: dict[str, Any] = {}
        self.raw = Text()
        self.status = "writing"
        self.started = 0.0
        self.ended = 0.0
        self.duration = 0.0
        self.fraction: float | None = None
        self.first: tuple[float, float] | None = None  # the first fraction and its time
        self.latest = 0.0  # time of the latest fraction
        self.message = ""
        self.beside = Meaning()  # other fields of the data with the latest fraction
        self.marks: list[Mark] = []  # for views that cannot draw a bar
        self.early = ""  # the status of a `finished` call
        self.data: Any = None
        self.output = Output()
        self.content: Any = ""
        self.display: dict[str, Any] | None = None
        self.attachments: tuple[dict[str, Any], ...] = ()
        self.approval: Approval | None = None
        self.asked: Approval | None = None
        self.error = ""
        self.batch: Batch | None = None
        self.children: list[CardList] = []
        self.incomplete = False

    @property
    def known(self) -> dict[str, Any]:
        """The arguments; while they stream, those that can be read already.

        Streaming arguments longer than `READABLE` characters are not read.
        """
        if self.status != "writing" or len(self.raw) > READABLE:
            return self.args
        return read_partial_arguments(str(self.raw))

    @property
    def open(self) -> bool:
        """True while the call may still change without an event, because its elapsed time moves."""
        return self.status in {"running", "waiting", "queued", "writing", "finished"}


class ErrorCard(Card):
    """An error of the run."""

    kind = "error"

    def __init__(self, key: str, event: Error) -> None:
        super().__init__(key)
        self.code = event.code
        self.message = event.message
        self.raw = event.raw
        self.soft = event.code in SOFT or (event.code == "invalid_output" and event.retryable)
        self.done = True


class RetryCard(Card):
    """A request that failed and is made again: one card, however many times.

    `done`: it succeeded or was given up. `failures`: why each request failed, in a few words, and
    the seconds until the next one (0: unknown). `raw`: the server's last reply. `since`: when the
    current wait began (0: the request is on its way). `waited`: seconds of all waits before.
    `tries`: the requests made, once the card is done.
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
    """A stop of the run, or of a map (`mapped`), which goes on where it stopped."""

    kind = "interrupt"

    def __init__(self, key: str, event: Interrupt, *, mapped: bool = False) -> None:
        super().__init__(key)
        self.mapped = mapped
        self.reason = event.reason
        self.detail = event.detail
        self.done = True


class NodeCard(Card):
    """A span: a sub-agent's run or a foreign graph's node, with its cards `inside`."""

    kind = "node"

    def __init__(self, key: str, name: str, inside: CardList, started: float) -> None:
        super().__init__(key)
        self.name = name
        self.result = ""
        self.inside = inside
        self.started = started
        self.seconds = 0.0
        self.left = False  # the run ended while the span was open

    def cut_off(self, now: float) -> None:
        """Close a span that was open when its run ended."""
        self.left = self.done = True
        self.seconds = max(0.0, round(now - self.started, 3))


class NoteCard(Card):
    """Consecutive state or extension events.

    `items`: (title, payload) of each; `before`: the payload that each state replaced.
    """

    def __init__(self, key: str, kind: str) -> None:
        super().__init__(key)
        self.kind = kind
        self.items: list[tuple[str, Any]] = []
        self.before: list[Any] = []
        self.done = True


class Batch:
    """Calls that run together."""

    def __init__(self, calls: tuple[str, ...]) -> None:
        self.calls = calls
        self.started = 0.0
        self.ended = 0.0

    @property
    def parallel(self) -> bool:
        """True if there is more than one call."""
        return len(self.calls) > 1


class CardList:
    """Cards in order, found again by a key or an alias. `on_change` is called on every change."""

    def __init__(self, on_change: Callable[[], None] | None = None) -> None:
        self.cards: list[Card] = []
        self.events = 0  # stored events folded in
        self._on_change = on_change
        self._by_alias: dict[str, Card] = {}
        self._number = 0

    def changed(self) -> None:
        """Report a change to the card around this list, if there is one."""
        if self._on_change is not None:
            self._on_change()

    def touch(self, card: Card) -> None:
        """Note that `card` changed."""
        card.version += 1
        if self._on_change is not None:
            self._on_change()

    def new_key(self, kind: str) -> str:
        """Return a key that no card of this list has."""
        self._number += 1
        return f"{kind}{self._number}"

    def add(self, card: Card, alias: str = "") -> None:
        """Append `card`; `find(alias)` returns it from now on."""
        self.cards.append(card)
        if alias:
            self._by_alias[alias] = card
        self.touch(card)

    def name(self, card: Card, alias: str) -> None:
        """Let `find(alias)` return `card` from now on."""
        self._by_alias[alias] = card

    def find(self, alias: str) -> Card | None:
        """Return the card of an alias, or None."""
        return self._by_alias.get(alias)


def read_partial_arguments(text: str) -> dict[str, Any]:
    """Return the arguments readable so far in growing JSON, cut strings included; {} if none."""
    from pydantic_core import from_json

    try:
        value = from_json(text, allow_inf_nan=False, allow_partial="trailing-strings")
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
