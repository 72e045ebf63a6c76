"""What a card is: a function from the state of one thing in a run (a call, an answer) to a node.

A card is a plug-in: a file in this folder with the attribute `card`, or an entry point of the group
`agent_nb.cards`. Three names draw a part of a call of the tool NAME: `tool-NAME` its result,
`progress-NAME` its progress while it runs, `call-NAME` the whole call when it has ended, in place
of the built-in fold. Each gets the state of the whole call (`view.state.cards.CallCard`):

    # my_package/cards.py
    from agent_nb.view.nodes import Bar

    def epochs(state, context):
        if state.data:  # the latest progress data
            return Bar(state.data["epoch"] / 10, f"epoch {state.data['epoch']} of 10")

    # pyproject.toml
    [project.entry-points."agent_nb.cards"]
    progress-train = "my_package.cards:epochs"

Rules
- A card reads its arguments alone: the live view, the saved page and the terminal draw it alike.
- None shows nothing; from a card of a part of a call, it leaves the part to the built-in card.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Literal

import msgspec

from ...errors import AgentError
from ...host import blame_plugin, list_builtin, list_plugins, load_plugin
from ..format import count_noun
from ..nodes import Box, Node, Prose, Row, T, unfit
from ..state.cards import CallCard, Card
from ..state.text import Text

# characters of one text in a saved page: no front end opens a page of several megabytes
LONGEST = 400_000
Thoughts = Literal["collapse", "show", "hide"]
#: The part of a call that an installed card draws: its result, its progress, or all of it.
CallPart = Literal["tool", "progress", "call"]


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """Where a card is drawn, and what its reader has chosen."""

    now: float | None = None  # epoch seconds; None: the page is drawn once, or its run has ended
    live: bool = False  # the page has widgets, so that buttons can be drawn
    alive: bool = False  # the run of a `still` page goes on
    latest: bool = True  # the kernel has the run as `_agent` when it ends
    nested: bool = False  # the card is inside another one, where nothing opens by itself
    above: str = ""  # the text of the cell above the page; a prompt that repeats it is not shown
    thoughts: Thoughts = "collapse"  # whether thoughts are closed at first, open, or not shown
    can_click: bool = False  # presses arrive while the cell runs
    lasting: bool = False  # an approval can be for the whole notebook
    inserting: bool = False  # an offered cell can be inserted when the run ends
    chosen: str = ""  # key of the button of the cell that will be inserted; "": none
    pressed: frozenset[str] = frozenset()  # keys of pressed buttons
    # by question (`Button.about`): what it has open (`edit`, `refuse`, `always`), the schema of the
    # arguments that are edited, and what is wrong, by field (`fields.CALL`: with all together)
    opened: Mapping[str, str] = {}
    schemas: Mapping[str, Any] = {}
    faults: Mapping[str, Mapping[str, str]] = {}
    # key of a card -> whether it is open, and how many of its lines are shown (0: all); only of the
    # cards for which a reader or an earlier view has decided that
    folds: Mapping[str, tuple[bool, float]] = {}

    @property
    def still(self) -> bool:
        """Whether the page is drawn once, so that it may be read long after its run."""
        return self.now is None and not self.live


def prose(
    text: Text, context: Context, *, growing: bool, dim: bool = False, key: str = ""
) -> tuple[Node, ...]:
    """Return a text as markdown: one node, or three if it is too long for a saved page.

    Then the page shows the head, the size of what is left out, and the tail. `growing`: more text
    may come; `dim`, `key`: see `Prose`.
    """
    if context.live or len(text) <= LONGEST:
        return (Prose(text, open=growing, dim=dim, key=key),)
    full_text, half_length = str(text), LONGEST // 2
    head, tail = full_text[:half_length], full_text[-half_length:]
    # cut between paragraphs where possible
    head = head.rpartition("\n\n")[0] or head
    tail = tail.partition("\n\n")[2] or tail
    size = len(full_text) - len(head) - len(tail)
    left_out = f"… {count_noun(size, 'character')} left out here; the run and its record have the whole text."
    return (
        Prose(Text(head), dim=dim, key=key),
        Row((T(left_out, tone="wait"),)),
        Prose(Text(tail), dim=dim, key=f"{key}…"),
    )


def draw(state: Any, context: Context, kind: str = "") -> Node | None:
    """Return the node of a card's state, None if nothing is shown for it.

    `kind` names the card, instead of the state's own kind.
    """
    card: Callable[[Any, Context], Node | None] = load_plugin("view.cards", kind or state.kind)
    return card(state, context)


def custom(part: CallPart, state: CallCard, context: Context) -> Node | None:
    """Return what the installed card `PART-NAME` draws of a call.

    Returns None if there is none, or if it leaves the part to the built-in card.
    """
    name = f"{part}-{state.name}"
    # our own files are plug-ins with hyphens: `call_add_cell.py` is `call-add-cell`
    if (built_in := name.replace("_", "-")) in list_builtin("view.cards"):
        name = built_in
    if name not in _names_of_parts():
        return None
    try:
        with blame_plugin("view.cards", name):
            node: Node | None = load_plugin("view.cards", name)(state, context)
            if node is not None and (fault := unfit(node)):
                raise TypeError(fault)
            return node
    except AgentError as error:  # another package's code must not break the view
        return Box((Row((T(str(error), tone="bad"),), wrap=True),), tone="bad")


@cache  # the entry points do not change while the process runs, and each call looks here
def _names_of_parts() -> frozenset[str]:
    """Return the names of all cards that draw a part of a call."""
    return frozenset(
        n for n in list_plugins("view.cards") if n.startswith(("tool-", "progress-", "call-"))
    )


def shown(cards: list[Card], context: Context) -> list[tuple[Card, Node]]:
    """Return the visible cards of a list, with their nodes."""
    pairs = ((card, draw(card, context)) for card in cards)
    return [(card, node) for card, node in pairs if node is not None]
