"""Functions of the public face that belong to no room: `parse`.

Rules: thin; each is the same code path that a run takes.
"""

from __future__ import annotations

from collections.abc import Iterable

from . import parts, plugins
from .events import Event
from .log import EventLog
from .pipeline import Pipeline
from .turn import Turn, fold_events


def parse(chunks: Iterable[str], dialect: str = "xml") -> list[Event]:
    """Read the text of one model turn, in any chunking, and return its stored events (no deltas, no `end` of a run).

    `dialect` is the name of a dialect (`native`, `xml`, `section`, `thinking`). Raises UsageError on an unknown one, and nothing else,
    whatever the text.
    """
    pipeline = Pipeline(plugins.load("dialects", dialect), Turn(1))
    log = EventLog("parse")
    for chunk in chunks:
        for event in pipeline.feed((parts.Text(chunk),)):
            log.append(event)
        if pipeline.stopped:
            break
    for event in pipeline.close():
        log.append(event)
    return fold_events(log)
