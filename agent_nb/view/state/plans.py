"""The part of the fold that handles trees and graphs of thought (seed 002 § 4.2).

Why a card for each: an expansion, its scores and a backtrack are one picture; a list of notes hides
which branch was taken and which was given up.

Rules
- A tree has a path: the root and the candidates chosen so far. Candidates hang below the end of the
  path; an evaluation scores the newest ones and extends the path; a backtrack to depth k keeps k
  chosen ones (the root has depth 0) and marks the others as given up.
- A graph has nodes by id. An expansion makes room below its node; nodes that no plan named fill
  that room in order of appearance.
- Events that fit no plan are left to the notes (`extension` returns False); no payload raises.
- Malformed numbers, indices out of range and nodes without a name are used as far as they make
  sense.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from ...events import Extension
from ..format import short
from .cards import Card, CardList

NAMESPACE = "loom"
LARGEST = 1e15
Obj = dict[str, Any]
Standing = Literal["open", "passed", "chosen", "left", "planned", "running", "ok", "error"]


class Thought:
    """One candidate of a tree or node of a graph.

    `note`: why it was given up, its result or its error; `room`: added nodes that have no name yet.
    """

    def __init__(self, text: str, status: Standing) -> None:
        self.text = text
        self.status: Standing = status
        self.score: float | None = None
        self.note = ""
        self.tries = 0
        self.started = 0.0
        self.seconds = 0.0
        self.room = 0
        self.children: list[Thought] = []


class PlanCard(Card):
    """A tree or a graph of thought.

    `remarks` belong to no branch; `asked`: the numbers of nodes and edges that the plan announced.
    """

    kind = "plan"

    def __init__(self, key: str, shape: Literal["tree", "graph"]) -> None:
        super().__init__(key)
        self.shape = shape
        self.root = Thought("", "chosen")
        self.path = [self.root]
        self.fresh: list[Thought] = []  # the candidates that wait for scores
        self.nodes: dict[str, Thought] = {}
        self.growing: list[Thought] = []  # graph nodes with room, the latest last
        self.counts = [0, 0]
        self.expanded = 0
        self.backtracks = 0
        self.remarks: list[str] = []
        self.over = False  # the run has ended: nodes that still run will never report an end
        self.done = True  # it holds up no later card

    @property
    def chosen(self) -> list[Thought]:
        """The candidates on the path, the newest last."""
        return self.path[1:]


class Plans:
    """The plans of one view: at most one tree and one graph at a time."""

    def __init__(self, cards: CardList) -> None:
        self._cards = cards
        self._plans: dict[str, PlanCard] = {}

    def extension(self, event: Extension) -> bool:
        """Fold an extension event into its plan; return False if it belongs to none."""
        handler = HANDLERS.get(event.name) if event.namespace == NAMESPACE else None
        if handler is None or not isinstance(event.payload, dict):
            return False
        shape: Literal["tree", "graph"] = "tree" if event.name.startswith("tot_") else "graph"
        card = self._plans.get(shape)
        if card is None or (event.name == "got_plan" and card.nodes):
            card = PlanCard(self._cards.new_key("plan"), shape)
            if not handler(card, event.payload, event.ts):
                return False
            self._plans[shape] = card
            self._cards.add(card)
            return True
        placed = handler(card, event.payload, event.ts)
        self._cards.touch(card)
        return placed

    def end(self) -> None:
        """Note that the run has ended."""
        for card in self._plans.values():
            card.over = True
            self._cards.touch(card)


# Trees.


def _expand(card: PlanCard, payload: Obj, _: float) -> bool:
    candidates = payload.get("candidates")
    if not isinstance(candidates, list):
        return False
    card.fresh = [Thought(worded(c), "open") for c in candidates]
    card.path[-1].children += card.fresh
    card.expanded += 1
    return True


def _evaluate(card: PlanCard, payload: Obj, _: float) -> bool:
    listed = payload.get("scores")
    scores = [number(s) for s in listed] if isinstance(listed, list) else []
    index = number(payload.get("chosen"))
    if not scores and index is None:
        return False
    group = _scored(card, len(scores))
    for thought, score in zip(group, scores, strict=False):
        thought.score = score
    taken = (
        int(index)
        if index is not None and 0 <= index < len(group) and index == int(index)
        else None
    )
    for place, thought in enumerate(group):
        if place == taken:
            thought.status, thought.note = "chosen", ""
        elif thought.status == "open":
            thought.status = "passed"
    if taken is None:
        card.remarks.append(f"chose {worded(payload.get('chosen'))}, which is not a candidate")
    else:
        card.path.append(group[taken])
    card.fresh = []
    return True


def _scored(card: PlanCard, count: int) -> list[Thought]:
    """Return the candidates of an evaluation; unnamed ones get numbers here."""
    children = card.path[-1].children
    group = card.fresh or (children[-count:] if count else children)
    if not group:
        group = [Thought(f"candidate {n}", "open") for n in range(1, count + 1)]
        children += group
    return group


def _backtrack(card: PlanCard, payload: Obj, _: float) -> bool:
    depth, reason = number(payload.get("to_depth")), payload.get("reason")
    if depth is None and not isinstance(reason, str):
        return False
    keep = min(max(0, int(depth)) if depth is not None else len(card.path) - 2, len(card.path) - 1)
    keep = max(0, keep)
    given_up, card.path = card.path[keep + 1 :], card.path[: keep + 1]
    for thought in (*given_up, *card.fresh):
        thought.status = "left"
    words = reason if isinstance(reason, str) else ""
    if given_up:
        given_up[0].note = words
    elif words:
        card.remarks.append(f"back to depth {keep}: {words}")
    card.fresh = []
    card.backtracks += 1
    return True


# Graphs.


def _plan_graph(card: PlanCard, payload: Obj, _: float) -> bool:
    ids = payload.get("node_ids")
    names = [worded(i) for i in ids] if isinstance(ids, list) else []
    card.counts = [_count(payload.get("node_count")), _count(payload.get("edge_count"))]
    for name in names:
        if name not in card.nodes:
            _put(card, card.root, name)
    return bool(names) or any(card.counts)


def _start(card: PlanCard, payload: Obj, ts: float) -> bool:
    node = _node(card, payload)
    if node is None:
        return False
    node.status, node.started, node.note = "running", ts, ""
    node.tries += 1
    return True


def _complete(card: PlanCard, payload: Obj, ts: float) -> bool:
    return _over(card, payload, ts, "ok", "result_summary")


def _failed(card: PlanCard, payload: Obj, ts: float) -> bool:
    return _over(card, payload, ts, "error", "error")


def _over(card: PlanCard, payload: Obj, ts: float, status: Standing, field: str) -> bool:
    node = _node(card, payload)
    if node is None:
        return False
    node.status = status
    node.note = worded(payload[field]) if payload.get(field) not in (None, "") else ""
    node.seconds = max(0.0, round(ts - node.started, 3)) if node.started and ts else 0.0
    return True


def _grow(card: PlanCard, payload: Obj, _: float) -> bool:
    node = _node(card, payload)
    if node is None:
        return False
    added = payload.get("nodes_added")
    if isinstance(added, list):
        for name in map(_name_of, added):
            if name and name not in card.nodes:
                _put(card, node, name)
    elif (room := _count(added)) > 0:
        node.room += room
        card.growing.append(node)
    edges = payload.get("edges_added")
    card.counts[1] += len(edges) if isinstance(edges, list) else _count(edges)
    card.expanded += 1
    return True


def _node(card: PlanCard, payload: Obj) -> Thought | None:
    """Return the node that a payload names, or None if it names none.

    A node that no plan named takes the room of the latest expansion, or hangs below the root.
    """
    name = _name_of(payload)
    if not name:
        return None
    if name in card.nodes:
        return card.nodes[name]
    card.growing = [n for n in card.growing if n.room > 0]
    parent = card.growing[-1] if card.growing else card.root
    parent.room -= parent.room > 0
    return _put(card, parent, name)


def _put(card: PlanCard, parent: Thought, name: str) -> Thought:
    node = card.nodes[name] = Thought(name, "planned")
    parent.children.append(node)
    return node


def _name_of(value: Any) -> str:
    if isinstance(value, dict):
        value = value.get("id", value.get("node_id"))
    return (
        worded(value)
        if isinstance(value, str | int | float) and not isinstance(value, bool) and value != ""
        else ""
    )


# Foreign values.


def worded(value: Any) -> str:
    """Return a foreign value as text."""
    try:
        return value if isinstance(value, str) else short(value, 400)
    except (ValueError, RecursionError):
        return "…"


def number(value: Any) -> float | None:
    """Return a number of plausible size, or None."""
    good = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= LARGEST
    return float(value) if good else None


def _count(value: Any) -> int:
    found = number(value)
    return int(found) if found is not None and found >= 0 else 0


HANDLERS: dict[str, Callable[[PlanCard, Obj, float], bool]] = {
    "tot_expand": _expand,
    "tot_evaluate": _evaluate,
    "tot_backtrack": _backtrack,
    "got_plan": _plan_graph,
    "got_node_start": _start,
    "got_node_complete": _complete,
    "got_node_failed": _failed,
    "got_expand": _grow,
}
