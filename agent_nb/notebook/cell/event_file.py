"""The events of a cell's runs in a file, deltas included, for the runner that executes the cell.

Why: `run --stream` shows events as they happen; the runner names the file in the metadata of its
request.
"""

from __future__ import annotations

import os

from ...events import Event, EventLog, encode_event
from ..identity import Cell


class Writer:
    """Subscriber that appends the events of one log to a file; the log reports its OSError."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def __call__(self, event: Event) -> None:
        """Write one event; the end of the run closes the file."""
        os.write(self._file, encode_event(event) + b"\n")
        if event.type == "end" and not event.span:
            os.close(self._file)


def write_events(cell: Cell, log: EventLog) -> None:
    """Write the events of a log for the runner that executes this cell, if it named a file."""
    path = cell.runner_options.get("stream")
    if isinstance(path, str) and path:
        log.subscribe(Writer(path))
