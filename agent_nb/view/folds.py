"""Which cards of a page are open, and how much of them is shown.

Why: a thought or a call is read while it grows, and is in the way afterwards. If it closed at once
when it ends, everything below would jump up. So a card that gives way (`Fold.gives_way`) stays open
until the cards below it are as high as it is, and then folds step by step, one card at a time. A
page of widgets animates the whole fold itself (`Fold.closing`): on a busy machine several steps
would come at once.

Rules
- Nothing moves once the run has ended (`now` is None), and a card that a reader opened or closed
  stays so.
- Heights are rough counts of lines: the kernel does not know the page's width.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from msgspec import structs

from . import nodes
from .nodes import Fold, Node, Stack, fold_of
from .state.cards import Card

STEP = 0.5  # lines by which a card folds in one paint
PAUSE, PACE = 0.09, 0.1  # seconds between two such steps, at least and as a rule
SETTLED = 0.8  # seconds until a page, also a busy one, shows a height (`live.css`: after 0.5 s)
MOST_LINES = 16  # lines of an open body that are shown
FEW_LINES = 3  # a body of at most so many lines gets half of `MOST_LINES`
LETTERS = 100  # characters of a line, in a page of the usual width
SCROLLS = 13  # lines of a box that scrolls

#: Whether a card is open, and how many lines of its body are shown (0: all).
FoldState = tuple[bool, float]


class Folds:
    """The folds of a page that is drawn again and again, or once.

    `states`: key of a card with a body → its state; `moving`: a card is folding, or the page still
    shows its last step (when the run ends, `moving` stays as it was).
    """

    def __init__(self) -> None:
        self.states: dict[str, FoldState] = {}
        self.moving = False
        self._folding: set[str] = set()  # keys of cards that are folding or have folded
        self._last_step = 0.0  # when a card last became lower
        # key of a card -> its node as the card drew it, its state and `closing`, and the node in it
        self._nodes: dict[str, tuple[Node, tuple[bool, float, bool], Node]] = {}

    def apply(
        self, cards: list[tuple[Card, Node]], chosen: Mapping[str, FoldState], now: float | None
    ) -> list[tuple[Card, Node]]:
        """Return the cards with their nodes, open or folded.

        `chosen`: states that a reader or an earlier view decided; `now`: seconds of any clock, None
        if nothing folds any more.
        """
        lines_below, folding = 0, ""
        for card, node in reversed(cards):  # from the last, to know the height below each
            shown = node
            if (fold := fold_of(node)) is not None:
                filled = card.done and lines_below >= count_lines(fold.body)
                state = chosen.get(card.key) or self._choose_state(card.key, fold, filled=filled)
                self.states[card.key] = state
                gives_way = filled or card.key in self._folding
                # the topmost of these cards folds next: the loop comes to it last
                folding = card.key if state[0] and state[1] and gives_way else folding
                shown = fold.line if fold.line and not state[0] else node
            if lines_below < MOST_LINES:  # more lines decide nothing
                lines_below += count_lines((shown,))
        if now is not None:
            if folding:
                self._lower_card(folding, now)
            self.moving = bool(folding) or now - self._last_step < SETTLED
        closing = self._folding if now is not None else frozenset[str]()
        folds = closing | chosen.keys() if now is not None else closing
        return [(card, self._apply_state(card.key, node, closing, folds)) for card, node in cards]

    def _lower_card(self, key: str, now: float) -> None:
        """Make a card lower by one step; the last one closes it."""
        lines = self.states[key][1]
        if now - self._last_step >= PAUSE:
            self._last_step = now
            self._folding.add(key)
            self.states[key] = (lines > STEP, lines - STEP)

    def _choose_state(self, key: str, fold: Fold, *, filled: bool) -> FoldState:
        """Return the state of a card for which nobody has chosen one."""
        if fold.line and key not in self.states:
            return False, 0  # nobody saw the body grow
        if not (fold.gives_way and fold.open):
            return fold.open, 0
        # a new card is open, unless it has ended and those below are as high already; an open one
        # gets more room as it grows, but never less, so that nothing below it jumps up
        is_open, lines = self.states.get(key, (not filled, 0))
        if is_open and key not in self._folding:
            lines = max(lines, room(fold))
        return is_open, lines

    def _apply_state(
        self, key: str, node: Node, closing: Collection[str], folds: Collection[str]
    ) -> Node:
        """Return the node of a card in its state; an unchanged one is reused.

        `folds`: keys of cards that stay folds when they are closed, so that no line moves.
        """
        fold, cached = fold_of(node), self._nodes.get(key)
        if fold is None:
            return node
        is_open, lines = self.states[key]
        if fold.line and not is_open and key not in folds:
            return fold.line
        state = (is_open, lines, lines > 0 and key in closing)
        if cached is None or cached[0] is not node or cached[1] != state:
            fold = structs.replace(fold, key=key, open=is_open, lines=lines, closing=state[2])
            drawn = Stack((fold, *node.children[1:])) if isinstance(node, Stack) else fold
            cached = self._nodes[key] = (node, state, drawn)
        return cached[2]


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
    **dict.fromkeys((Stack, nodes.Box), lambda node: count_lines(node.children)),
    nodes.Panel: lambda node: count_lines(step.child for step in node.steps),
    **dict.fromkeys((nodes.Pre, nodes.Code, nodes.Diff), _count_box),
    nodes.Bar: lambda node: 2,
    nodes.Prose: _count_prose,
    nodes.Json: lambda node: len(node.value) if isinstance(node.value, dict | list) else 1,
    nodes.Tree: lambda node: len(node.branches),
    nodes.Table: lambda node: min(SCROLLS, len(node.rows) + 1),
    nodes.Image: lambda node: SCROLLS,
    **dict.fromkeys((nodes.Html, nodes.Editor), lambda node: SCROLLS // 2),
}
