"""Follows the nodes of one Loom run while it is read: which are open, and which a frame belongs to.

Rule: a `node_id` may repeat (seed 002 § 2), but the span of an event must not.
"""

from __future__ import annotations

from typing import NamedTuple

from ..foreign_values import text_of
from ..run_builder import UniqueIds
from .lines import Obj


class _NodeRun(NamedTuple):
    """A run of a node: its name, its `node_id` in the frames, its span and the one around it."""

    name: str = ""
    wire_id: str = ""
    span: str = ""
    parent: str = ""


class OpenNodes:
    """The nodes of one run."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Begin another run."""
        self.entered = 0  # nodes so far
        self._open: dict[str, _NodeRun] = {}  # by their spans, the innermost last
        self._named: dict[tuple[str, ...], list[_NodeRun]] = {}  # by name, and with `node_id`
        self._newest = _NodeRun()  # open or not
        self._spans = UniqueIds()

    def locate(self, frame: Obj) -> Obj:
        """Return the `path` of a frame: the span of the node that it names, else of the innermost.

        A node inside a node is a run inside the run: its path is also its `span`.
        """
        wire_id = frame.get("node_id")
        if isinstance(wire_id, str) and frame.get("type") != "got_expand":
            path = self._newest.span if wire_id == self._newest.wire_id else wire_id
        else:
            path = self._innermost_span
        is_nested = path in self._open and path != next(iter(self._open))
        return {"path": path, "span": path} if is_nested else {"path": path}

    def enter(self, frame: Obj) -> Obj:
        """Return the fields of the event for the start of a node."""
        name = text_of(frame, "id")
        wire_id = text_of(frame, "node_id") or f"run-{name}-{self.entered}"
        self.entered += 1
        span, parent = self._spans.take(wire_id), self._innermost_span
        self._newest = _NodeRun(name, wire_id, span, parent)
        self._open[span] = self._newest
        for key in ((name, wire_id), (name,)):
            self._named.setdefault(key, []).append(self._newest)
        return {"name": name, "phase": "enter", "span": span, "parent": parent, "path": parent}

    def exit(self, frame: Obj) -> Obj:
        """Return the fields of an exit: of the innermost node with its name and, if any, its id."""
        name, wire_id, result = text_of(frame, "id"), text_of(frame, "node_id"), frame.get("result")
        span, parent = wire_id or f"run-{name}", self._innermost_span
        for nodes in (self._named.get((name, wire_id), []), self._named.get((name,), [])):
            while nodes and nodes[-1].span not in self._open:
                nodes.pop()
            if nodes:
                *_, span, parent = self._open.pop(nodes.pop().span)
                break
        fault = result.get("Err") if isinstance(result, dict) else None
        text = f"error: {fault}" if isinstance(fault, str) else "ok"
        fields = {"name": name, "phase": "exit", "span": span, "parent": parent, "path": parent}
        return {**fields, "result": text}

    @property
    def _innermost_span(self) -> str:
        """The span of the innermost open node, "" if none is open."""
        return next(reversed(self._open), "")
