"""The events of a cell's runs in a file, deltas included, for `jupyter agent-nb run --stream`."""

from __future__ import annotations

import os

from ...events import Event, EventLog, encode_event
from ..identity import Cell


def write_events(cell: Cell, log: EventLog) -> None:
    """Write the events of a log for the runner that executes this cell, if it named a file."""
    path = cell.runner_options.get("stream")
    if not isinstance(path, str) or not path:
        return
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def write(event: Event) -> None:  # the log reports an OSError
        os.write(file, encode_event(event) + b"\n")
        if event.type == "end" and not event.span:
            os.close(file)

    log.subscribe(write)
