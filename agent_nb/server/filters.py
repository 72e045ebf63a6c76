"""Filters: select the events of a run that a subscriber receives.

Why in the server: a client need not receive what it does not show.

Rules
- Internal events (model requests, `internal:*` of other formats) are left out by default.
- In a path pattern `*` matches within one level, `**` any number of levels, `run/**` the whole run.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

import msgspec

from ..events import Delta, Event, Extension, Node

Predicate = Callable[[Event], bool]


class Filter(msgspec.Struct, frozen=True, kw_only=True):
    """The events to pass.

    kinds: types to pass, empty for all. exclude: types to leave out. The type of a delta is its
    `of`. path: a path pattern ("": any path). internal, deltas: whether these events pass. custom:
    a function that must accept the event, too.
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
            and (not self.path or bool(pattern(self.path).fullmatch(event_path(event))))
            and (self.custom is None or self.custom(event))
        )


def is_internal(event: Event) -> bool:
    """Return whether an event is a model request, or internal in another format."""
    if isinstance(event, Node):
        return event.name == "llm" or bool(event.data and event.data.get("internal"))
    return isinstance(event, Extension) and event.name.startswith("internal:")


def event_path(event: Event) -> str:
    """Return the path of an event: its run, then its path or span."""
    return "/".join(p for p in (event.run, event.path or event.span) if p)


@lru_cache(maxsize=256)
def pattern(glob: str) -> re.Pattern[str]:
    """Return the regular expression of a path pattern."""
    out = ""
    for number, part in enumerate(glob.strip("/").split("/")):
        if part == "**":
            # after a level, `**` may also match nothing, so its group includes the `/` before it
            out += "(?:.*)" if not number else "(?:/.*)?"
        else:
            piece = "".join("[^/]*" if c == "*" else re.escape(c) for c in part)
            out += piece if not number or out == "(?:.*)" else f"/{piece}"
    return re.compile(out, re.DOTALL)
