"""What a card is (a function from the state of one card to a node), and how it is found.

Why a function: the same card is drawn live, in a saved page, in a terminal and in tests.

A new kind of card is one file in this folder (attribute `card`), or an entry point of the group
`agent_nb.cards`. The entry point `tool-NAME` draws the result of the tool NAME, `progress-NAME` the
progress of a running call of it, and `call-NAME` an ended call as a whole, in place of the built-in
fold. Each gets the whole state of the call (`view.state.cards.CallCard`: `data` is its latest
progress data, `output` what it printed); a card that returns None leaves that part of the call to
the built-in card.

    # my_package/cards.py
    from agent_nb.view.nodes import Bar

    def epochs(state, context):
        if state.data:
            return Bar(state.data["epoch"] / 10, f"epoch {state.data['epoch']} of 10")

    # pyproject.toml
    [project.entry-points."agent_nb.cards"]
    progress-train = "my_package.cards:epochs"

Rules
- A card is pure: the same state and context yield nodes that look the same. It returns None to show
  nothing; a part of a call is then left to the built-in card.
- If a card of a part of a call raises, or returns something other than a node or None, the view
  shows that fault in its place.
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
    """What a card may depend on besides its state: the reader's choices, and where it is drawn.

    - `now`: epoch seconds, None for a page that is not drawn again or whose run has ended.
    - `live`: the page has widgets, so that buttons can be drawn.
    - `thoughts`: whether thoughts are shown, closed or not at all.
    - `can_click`: presses arrive while the cell runs.
    - `pressed`: keys of pressed buttons.
    - `opened`: question (`Button.about`) → what it has open: `edit`, `refuse` or `always`.
    - `schemas`: question → the schema of the arguments that are edited; `faults`: question → name
      of a field (`fields.CALL`: all together) → what is wrong with it.
    - `lasting`: an approval can be for the whole notebook.
    - `inserting`: an offered cell can be inserted when the run ends; `chosen`: the key of the
      button of the cell that will be inserted ("": none).
    - `above`: the text of the cell above the page; a prompt that only repeats it is not shown.
    - `folds`: key of a card → whether it is open, and how many of its lines are shown (0: all), if
      a reader or an earlier view has decided that.
    - `nested`: the card is inside another one, where nothing opens by itself.
    - `alive`: the page is drawn once, while its run goes on.
    """

    now: float | None = None
    live: bool = False
    thoughts: Thoughts = "collapse"
    can_click: bool = False
    pressed: frozenset[str] = frozenset()
    opened: Mapping[str, str] = {}
    schemas: Mapping[str, Any] = {}
    faults: Mapping[str, Mapping[str, str]] = {}
    lasting: bool = False
    inserting: bool = False
    chosen: str = ""
    above: str = ""
    folds: Mapping[str, tuple[bool, float]] = {}
    nested: bool = False
    alive: bool = False

    @property
    def still(self) -> bool:
        """Whether this page is drawn once, so that it may be read long after its run."""
        return self.now is None and not self.live


def prose(
    text: Text, context: Context, *, growing: bool, dim: bool = False, key: str = ""
) -> tuple[Node, ...]:
    """Return a text as markdown: one node, or three if it is too long for a saved page.

    Such a page shows the head, the size of what is left out, and the tail. `growing` is
    `Prose.open`; `dim`, `key`: see `Prose`.
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
    """Return what the card `PART-NAME` (see the head of this file) draws of a call.

    Returns None if there is no such card, or if it leaves the part to the built-in card.
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
            if fault := None if node is None else unfit(node):
                raise TypeError(fault)
            return node
    except AgentError as error:  # another package's code must not break the view
        return Box((Row((T(str(error), tone="bad"),), wrap=True),), tone="bad")


@cache
def _names_of_parts() -> frozenset[str]:
    """Return the names of all cards that draw a part of a call."""
    return frozenset(
        n for n in list_plugins("view.cards") if n.startswith(("tool-", "progress-", "call-"))
    )


def shown(cards: list[Card], context: Context) -> list[tuple[Card, Node]]:
    """Return the visible cards of a list, with their nodes."""
    pairs = ((card, draw(card, context)) for card in cards)
    return [(card, node) for card, node in pairs if node is not None]
