"""Fold the events of a tree or graph of thought into one card: a plan.

    tot_expand {"candidates": ["sort", "hash"]}   tot_evaluate {"scores": [0.2, 0.9], "chosen": 1}
    got_plan {"node_ids": ["a", "b"]}             got_node_complete {"id": "a", "result_summary": …}

Why one card: a list of notes would not show which branch was taken and which was given up.

Rules
- A tree has a path: the root and the candidates chosen so far. New candidates hang below its end,
  and a backtrack to depth k leaves the first k chosen ones on it.
- If an expansion of a graph says only how many nodes it adds, then so many unplanned nodes are put
  below it as they appear; the latest expansion is filled first.
- No payload raises: an event that fits no plan is left to the notes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

from ...events import Extension
from ..format import format_json, is_number
from .cards import Card, CardList, seconds_between

NAMESPACE = "loom"  # of the extension events
Obj = dict[str, Any]  # the payload of an event
#: A candidate is open, passed, chosen or left; a node of a graph planned, running, ok or error.
ThoughtStatus = Literal["open", "passed", "chosen", "left", "planned", "running", "ok", "error"]


@dataclass(eq=False)
class Thought:
    """One candidate of a tree or node of a graph."""

    text: str
    status: ThoughtStatus
    score: float | None = None
    note: str = ""  # why it was given up, its result or its error
    tries: int = 0
    started: float = 0.0
    seconds: float = 0.0
    unnamed: int = 0  # nodes that were added below it and have not appeared yet
    children: list[Thought] = field(default_factory=list)


@dataclass(eq=False)
class PlanCard(Card):
    """A tree or a graph of thought."""

    kind = "plan"
    shape: Literal["tree", "graph"]
    root: Thought = field(default_factory=lambda: Thought("", "chosen"))
    chosen: list[Thought] = field(default_factory=list)  # of a tree: its path below the root
    unscored: list[Thought] = field(default_factory=list)  # the candidates that wait for scores
    nodes: dict[str, Thought] = field(default_factory=dict)  # of a graph: by id
    with_room: list[Thought] = field(default_factory=list)  # await `unnamed` nodes, the latest last
    # nodes and edges that a graph announced, edges of its expansions included
    counts: list[int] = field(default_factory=lambda: [0, 0])
    expanded: int = 0  # the number of expansions
    backtracks: int = 0
    remarks: list[str] = field(default_factory=list)  # sentences that belong to no branch
    over: bool = False  # the run has ended: nodes that still run will never report an end
    # a terminal must not wait for the plan: it prints it after the run
    done: bool = field(default=True, init=False)

    @property
    def tip(self) -> Thought:
        """The end of the path, below which new candidates hang."""
        return self.chosen[-1] if self.chosen else self.root


class Plans:
    """The plans of one view: at most one tree and one graph at a time."""

    def __init__(self, cards: CardList) -> None:
        self._cards = cards
        self._plans: dict[str, PlanCard] = {}  # the newest of each shape

    def take_extension(self, event: Extension) -> bool:
        """Fold an extension event into its plan; return False if it belongs to none."""
        handler = HANDLERS.get(event.name) if event.namespace == NAMESPACE else None
        if handler is None or not isinstance(event.payload, dict):
            return False
        shape: Literal["tree", "graph"] = "tree" if event.name.startswith("tot_") else "graph"
        card = self._plans.get(shape)
        # a second plan begins another graph
        is_new = card is None or bool(event.name == "got_plan" and card.nodes)
        if card is None or is_new:
            card = PlanCard(self._cards.new_key("plan"), shape)
        fits = handler(card, event.payload, event.ts)
        if is_new and fits:
            self._plans[shape] = card
            self._cards.add(card)
        elif not is_new:
            self._cards.touch(card)
        return fits

    def end(self) -> None:
        """Note that the run has ended."""
        for card in self._plans.values():
            card.over = True
            self._cards.touch(card)


# Handlers of events: (card, payload, time) → whether the payload fits. Trees.


def _expand_tree(card: PlanCard, payload: Obj, _: float) -> bool:
    candidates = payload.get("candidates")
    if not isinstance(candidates, list):
        return False
    card.unscored = [Thought(text_of(c), "open") for c in candidates]
    card.tip.children += card.unscored
    card.expanded += 1
    return True


def _score_candidates(card: PlanCard, payload: Obj, _: float) -> bool:
    """Score the candidates; the chosen one extends the path, the others are passed."""
    raw_scores = payload.get("scores")
    scores = [read_number(s) for s in raw_scores] if isinstance(raw_scores, list) else []
    index = read_number(payload.get("chosen"))
    if not scores and index is None:
        return False
    group = _find_or_add_candidates(card, len(scores))
    for thought, score in zip(group, scores, strict=False):
        thought.score = score
    for thought in group:
        if thought.status == "open":
            thought.status = "passed"
    if index is not None and index in range(len(group)):
        chosen = group[int(index)]
        chosen.status, chosen.note = "chosen", ""
        card.chosen.append(chosen)
    else:
        card.remarks.append(f"chose {text_of(payload.get('chosen'))}, which is not a candidate")
    card.unscored = []
    return True


def _find_or_add_candidates(card: PlanCard, count: int) -> list[Thought]:
    """Return the candidates that `count` scores belong to.

    They are the unscored ones, else the last children of the path's end, else new ones.
    """
    children = card.tip.children
    group = card.unscored or (children[-count:] if count else children)
    if not group:
        group = [Thought(f"candidate {n}", "open") for n in range(1, count + 1)]
        children += group
    return group


def _cut_path(card: PlanCard, payload: Obj, _: float) -> bool:
    """Cut the path; the candidates cut off, and those that wait for scores, are given up."""
    depth, reason = read_number(payload.get("to_depth")), payload.get("reason")
    if depth is None and not isinstance(reason, str):
        return False
    if not isinstance(reason, str):
        reason = ""
    if depth is None:
        depth = len(card.chosen) - 1  # one step back
    kept = max(0, min(int(depth), len(card.chosen)))  # candidates that stay on the path
    given_up = card.chosen[kept:]
    for thought in (*given_up, *card.unscored):
        thought.status = "left"
    if given_up:
        given_up[0].note = reason
    elif reason:
        card.remarks.append(f"back to depth {kept}: {reason}")
    card.chosen, card.unscored = card.chosen[:kept], []
    card.backtracks += 1
    return True


# Graphs.


def _plan_graph(card: PlanCard, payload: Obj, _: float) -> bool:
    ids = payload.get("node_ids")
    names = [text_of(i) for i in ids] if isinstance(ids, list) else []
    card.counts = [_read_count(payload.get("node_count")), _read_count(payload.get("edge_count"))]
    for name in names:
        if name not in card.nodes:
            _add_node(card, card.root, name)
    return bool(names) or any(card.counts)


def _start_node(card: PlanCard, payload: Obj, ts: float) -> bool:
    node = _find_or_add_node(card, payload)
    if node is None:
        return False
    node.status, node.started, node.note = "running", ts, ""
    node.tries += 1
    return True


def _end_node(card: PlanCard, payload: Obj, ts: float, status: ThoughtStatus, field: str) -> bool:
    """Close a node; the `field` of the payload holds its result or its error."""
    node = _find_or_add_node(card, payload)
    if node is None:
        return False
    node.status = status
    node.note = text_of(payload[field]) if payload.get(field) not in (None, "") else ""
    node.seconds = seconds_between(node.started, ts)
    return True


def _expand_graph(card: PlanCard, payload: Obj, _: float) -> bool:
    """Add nodes below a node: by name, or only their number."""
    node = _find_or_add_node(card, payload)
    if node is None:
        return False
    added = payload.get("nodes_added")
    if isinstance(added, list):
        for name in map(_read_name, added):
            if name and name not in card.nodes:
                _add_node(card, node, name)
    elif (room := _read_count(added)) > 0:
        node.unnamed += room
        card.with_room.append(node)
    edges = payload.get("edges_added")
    card.counts[1] += len(edges) if isinstance(edges, list) else _read_count(edges)
    card.expanded += 1
    return True


def _find_or_add_node(card: PlanCard, payload: Obj) -> Thought | None:
    """Return the node that a payload names, or None if it names none.

    A node that no plan named is new: it is put below the latest expansion that has room, else below
    the root.
    """
    name = _read_name(payload)
    if not name:
        return None
    if name in card.nodes:
        return card.nodes[name]
    card.with_room = [n for n in card.with_room if n.unnamed > 0]
    parent = card.with_room[-1] if card.with_room else card.root
    parent.unnamed -= parent.unnamed > 0  # the root may await none
    return _add_node(card, parent, name)


def _add_node(card: PlanCard, parent: Thought, name: str) -> Thought:
    node = card.nodes[name] = Thought(name, "planned")
    parent.children.append(node)
    return node


def _read_name(value: Any) -> str:
    if isinstance(value, dict):
        value = value.get("id", value.get("node_id"))
    if isinstance(value, str | int | float) and not isinstance(value, bool) and value != "":
        return text_of(value)
    return ""


# Foreign values.


def text_of(value: Any) -> str:
    """Return a foreign value as text."""
    return value if isinstance(value, str) else format_json(value, 400)


def read_number(value: Any) -> float | None:
    """Return a foreign number; None if it is not a number, or larger than `LARGEST`."""
    return float(value) if is_number(value) else None


def _read_count(value: Any) -> int:
    count = read_number(value)
    return int(count) if count is not None and count >= 0 else 0


# name of an extension event -> its handler
HANDLERS: dict[str, Callable[[PlanCard, Obj, float], bool]] = {
    "tot_expand": _expand_tree,
    "tot_evaluate": _score_candidates,
    "tot_backtrack": _cut_path,
    "got_plan": _plan_graph,
    "got_node_start": _start_node,
    "got_node_complete": partial(_end_node, status="ok", field="result_summary"),
    "got_node_failed": partial(_end_node, status="error", field="error"),
    "got_expand": _expand_graph,
}
