"""Filters: select the events of a run that a subscriber receives."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from ..events import Delta, Event, Extension, Node, match_path

Predicate = Callable[[Event], bool]


class Filter(msgspec.Struct, frozen=True, kw_only=True):
    """The events to pass.

    kinds: types to pass, empty for all. exclude: types to leave out. The type of a delta is its
    `of`. path: a path pattern ("": any path). internal, deltas: whether these events pass; internal
    are model requests and `internal:*` of other formats. custom: a function that must accept the
    event, too.
    """

    kinds: frozenset[str] = frozenset()
    exclude: frozenset[str] = frozenset()
    path: str = ""
    internal: bool = False
    deltas: bool = True
    custom: Predicate | None = None

    def __call__(self, event: Event) -> bool:
        """Return whether the subscriber receives `event`."""
        if isinstance(event, Delta):
            kind, passes = event.of, self.deltas
        else:
            kind, passes = event.type, self.internal or not is_internal(event)
        return (
            passes
            and (not self.kinds or kind in self.kinds)
            and kind not in self.exclude
            and (not self.path or match_path(self.path, event))
            and (self.custom is None or self.custom(event))
        )


def is_internal(event: Event) -> bool:
    """Return whether an event is a model request, or internal in another format."""
    if isinstance(event, Node):
        return event.name == "llm" or bool(event.data and event.data.get("internal"))
    return isinstance(event, Extension) and event.name.startswith("internal:")
