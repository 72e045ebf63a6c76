"""Frames of a run of ours, with their envelope, in the nodes that Loom demands.

Each frame of this format belongs to a node of a graph, and our runs have no graph.

Rules
- `node_id` is `run-{name}-{n}`, where n counts all nodes of the run from 0.
- Frames between a node's exit and the next node have the old `node_id`.
"""

from __future__ import annotations

from typing import Any

from .lines import Obj


class NodeFrames:
    """Makes the frames of one run.

    `counts`: session -> `event_id` of its newest frame, which `make` increments. None: frames have
    no envelope.
    """

    def __init__(self, session: str, counts: dict[str, int] | None) -> None:
        self._session = session
        self._counts = counts
        self.open_node = ""  # the name of the open node, "" for none
        self._is_request = False  # the open node is a model request
        # result of the open request, which has ended but waits for its usage; None: it runs on
        self._result: Any = None
        self._node_id = ""  # of the newest node
        self._count = 0  # nodes so far

    @property
    def is_exit_due(self) -> bool:
        """Whether the open request has ended, and its node is left once its usage has come."""
        return self._result is not None

    def make(self, frame: Obj, node_id: str = "") -> Obj:
        """Return a frame with its envelope; `node_id`: of another node than the newest."""
        if self._counts is None:
            return frame
        number = self._counts[self._session] = self._counts.get(self._session, 0) + 1
        named_node = node_id or self._node_id
        node = {"node_id": named_node} if named_node else {}
        return {"session_id": self._session, **node, "event_id": number, **frame}

    def enter(self, name: str) -> list[Obj]:
        """Enter node `name`, unless it is open."""
        return [] if self.open_node == name else self._open(name)

    def begin_request(self) -> list[Obj]:
        """Enter another think node for a model request."""
        frames = self._open("think")
        self._is_request = True
        return frames

    def end_request(self, result: Any) -> None:
        """Hold the exit of the open request; `result`: as a `node_exit` has it."""
        if self._is_request:
            self._result = result

    def count_node(self) -> None:
        """Count a node of ours that keeps its name, and whose frames `make` gets."""
        self._count += 1

    def leave(self) -> list[Obj]:
        """Leave the open node, if any, with the result that is held for it."""
        name, result = self.open_node, self._result or "Ok"
        self.open_node, self._is_request, self._result = "", False, None
        return [self.make({"type": "node_exit", "id": name, "result": result})] if name else []

    def _open(self, name: str) -> list[Obj]:
        left = self.leave()
        self.open_node, self._node_id = name, f"run-{name}-{self._count}"
        self._count += 1
        return [*left, self.make({"type": "node_enter", "id": name})]
