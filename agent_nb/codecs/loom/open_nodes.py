"""Follows the nodes of one Loom run while it is read: which are open, and which a frame belongs to.

Rule: a `node_id` may repeat (seed 002 § 2), but the span of an event must not.
"""

from __future__ import annotations

from typing import NamedTuple

from ..foreign_values import text_of
from ..run_builder import UniqueIds
from .lines import Obj


class _NodeRun(NamedTuple):
    """A run of a node: its name, its `node_id` in the frames, and its span."""

    name: str = ""
    wire_id: str = ""
    span: str = ""


class OpenNodes:
    """The nodes of one run."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Begin another run."""
        self.entered = 0  # nodes so far
        self._open: dict[str, _NodeRun] = {}  # by their spans, the innermost last
        self._named: dict[str, list[_NodeRun]] = {}  # the open nodes by their names
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
        self._newest = _NodeRun(name, wire_id, span)
        self._open[span] = self._newest
        self._named.setdefault(name, []).append(self._newest)
        return {"name": name, "phase": "enter", "span": span, "parent": parent, "path": parent}

    def exit(self, frame: Obj) -> Obj:
        """Return the fields of the event for an exit, which ends the innermost node of its name."""
        name, result = text_of(frame, "id"), frame.get("result")
        nodes = self._named.get(name)
        node = nodes.pop() if nodes else None
        if node:
            del self._open[node.span]
        span = node.span if node else text_of(frame, "node_id") or f"run-{name}"
        parent = self._innermost_span
        fault = result.get("Err") if isinstance(result, dict) else None
        text = f"error: {fault}" if isinstance(fault, str) else "ok"
        fields = {"name": name, "phase": "exit", "span": span, "parent": parent, "path": parent}
        return {**fields, "result": text}

    @property
    def _innermost_span(self) -> str:
        """The span of the innermost open node, "" if none is open."""
        return next(reversed(self._open), "")
