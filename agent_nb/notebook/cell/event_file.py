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

    def write(event: Event) -> None:  # the log reports an OSError
        # opened for each event, because a log that never ends would hold a descriptor
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(file, encode_event(event) + b"\n")
        finally:
            os.close(file)

    log.subscribe(write)
