"""Which cards of a page are open, and how much of them is shown.

Why: a thought or a call is read while it grows, and is in the way afterwards. If it closed at once
when it ends, everything below would jump up.

Rules
- Thoughts and calls give way (`Fold.gives_way`): such a card stays open after its end until the
  cards below it are as high as it is. Then it folds step by step, one card at a time. Other cards
  stay as they were drawn.
- The cards below count with the height at which they are drawn, also if a reader has folded them.
- When the run ends no line may move: open cards stay open, and a folding one keeps its height.
- A card that a reader opened or closed stays so.
- Heights are rough counts of lines, since the kernel does not know the width of the page. Counting
  ends at `MOST_LINES`, so that the height of a long answer costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from msgspec import structs

from . import nodes
from .nodes import Fold, Node, Stack
from .state.cards import Card

STEP = 0.5  # lines by which a card folds in one paint; a slow page may show several at once
PAUSE = 0.09  # seconds between two such steps, at least
SETTLED = 0.55  # seconds until a page has shown a step, which `live.css` animates
MOST_LINES = 16  # lines of an open body that are shown
FEW_LINES = 3  # a body of at most so many lines gets half of `MOST_LINES`
LETTERS = 100  # characters of a line, in a page of the usual width
SCROLLS = 13  # lines of a box that scrolls

#: Whether a card is open, and how many lines of its body are shown (0: all).
FoldState = tuple[bool, float]


class Folds:
    """The folds of a page that is drawn again and again, or once.

    `states`: key of a card with a body → its state; `moving`: a card is folding, so the next paint
    changes the page, unless the run has ended.
    """

    def __init__(self) -> None:
        self.states: dict[str, FoldState] = {}
        self.moving = False
        self._folding: set[str] = set()  # keys of cards that are folding or have folded
        self._last_step = 0.0  # when a card last became lower
        # key of a card -> its node as the card drew it, its state, and the node in that state
        self._nodes: dict[str, tuple[Node, FoldState, Node]] = {}

    def apply(
        self, cards: list[tuple[Card, Node]], chosen: Mapping[str, FoldState], now: float | None
    ) -> list[tuple[Card, Node]]:
        """Return the cards with their nodes, open or folded.

        `chosen`: states that a reader or an earlier view decided; `now`: seconds of any clock, None
        if nothing folds any more.
        """
        lines_below, folding = 0, ""
        for card, node in reversed(cards):  # from the last, to know the height below each
            if (fold := fold_of(node)) is not None:
                filled = card.done and lines_below >= count_lines(fold.body)
                state = chosen.get(card.key) or self._choose_state(card.key, fold, filled=filled)
                self.states[card.key] = state
                gives_way = filled or card.key in self._folding
                # the topmost of these cards folds next: the loop comes to it last
                folding = card.key if state[0] and state[1] and gives_way else folding
            if lines_below < MOST_LINES:  # more lines decide nothing
                lines_below += count_lines((node,))
        self.moving = bool(folding)
        if folding and now is not None:
            self._lower_card(folding, now)
        return [(card, self._apply_state(card.key, node)) for card, node in cards]

    def _lower_card(self, key: str, now: float) -> None:
        """Make a card lower; the last step waits until the page has shown the one before."""
        lines = self.states[key][1]
        if now - self._last_step >= (PAUSE if lines > STEP else SETTLED):
            self._last_step = now
            self._folding.add(key)
            self.states[key] = (lines > STEP, lines - STEP)

    def _choose_state(self, key: str, fold: Fold, *, filled: bool) -> FoldState:
        """Return the state of a card for which nobody has chosen one."""
        if not (fold.gives_way and fold.open):
            return fold.open, 0
        # a new card is open, unless it has ended and those below are as high already; an open one
        # gets more room as it grows, but never less, so that nothing below it jumps up
        is_open, lines = self.states.get(key, (not filled, 0))
        if is_open and key not in self._folding:
            lines = max(lines, room(fold))
        return is_open, lines

    def _apply_state(self, key: str, node: Node) -> Node:
        """Return the node of a card in its state; an unchanged one is reused."""
        fold, cached = fold_of(node), self._nodes.get(key)
        if fold is None:
            return node
        state = self.states[key]
        if cached is None or cached[0] is not node or cached[1] != state:
            fold = structs.replace(fold, key=key, open=state[0], lines=state[1])
            drawn = Stack((fold, *node.children[1:])) if isinstance(node, Stack) else fold
            cached = self._nodes[key] = (node, state, drawn)
        return cached[2]


def fold_of(node: Node) -> Fold | None:
    """Return the fold that a node is or begins with, None if there is none with a body."""
    first = node.children[0] if isinstance(node, Stack) and node.children else node
    return first if isinstance(first, Fold) and first.body else None


def room(fold: Fold) -> float:
    """Return the lines that an open body may take; generous, as narrow pages need more lines."""
    return MOST_LINES if count_lines(fold.body) > FEW_LINES else MOST_LINES / 2


def count_lines(parts: Iterable[Node]) -> int:
    """Return the lines of nodes in a column, at most `MOST_LINES`.

    A fold that gives way counts as open.
    """
    lines = 0
    for node in parts:
        lines += _COUNT[type(node)](node) if type(node) in _COUNT else 1
        if lines >= MOST_LINES:
            return MOST_LINES
    return lines


def _count_prose(node: nodes.Prose) -> int:
    if len(node.text) > MOST_LINES * LETTERS:
        return MOST_LINES
    return sum(1 + len(line) // LETTERS for line in str(node.text).strip().split("\n"))


def _count_box(node: nodes.Pre | nodes.Code | nodes.Diff) -> int:
    visible_lines = (isinstance(node, nodes.Code) and node.last) or SCROLLS
    return 1 + min(visible_lines, node.text[: MOST_LINES * LETTERS].rstrip().count("\n") + 1)


# type of a node -> the function that counts its lines; other nodes take one line
_COUNT: dict[type[Node], Callable[[Any], int]] = {
    Fold: lambda node: count_lines(
        (*node.summary, *(node.body if node.open or node.gives_way else ()))
    ),
    Stack: lambda node: count_lines(node.children),
    nodes.Box: lambda node: count_lines(node.children),
    nodes.Panel: lambda node: count_lines(step.child for step in node.steps),
    nodes.Pre: _count_box,
    nodes.Code: _count_box,
    nodes.Diff: _count_box,
    nodes.Bar: lambda node: 2,
    nodes.Prose: _count_prose,
    nodes.Json: lambda node: len(node.value) if isinstance(node.value, dict | list) else 1,
    nodes.Tree: lambda node: len(node.branches),
    nodes.Table: lambda node: min(SCROLLS, len(node.rows) + 1),
    nodes.Image: lambda node: SCROLLS,
    nodes.Html: lambda node: SCROLLS // 2,
    nodes.Editor: lambda node: SCROLLS // 2,
}
