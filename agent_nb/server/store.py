"""The runs of a server on disk: written as they happen, available again after a restart.

Rules
- One journal file per run (`record.journal`): no logged event is lost if the process is killed.
- A run that was active when the process ended is read as interrupted; its followers receive the
  missing events and its end.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ..errors import UsageError
from ..events import Event, EventLog
from ..host import make_private_folder
from ..record import Journal, RecoverableRun


class Store:
    """A folder with the runs of one server. Raises UsageError if it cannot be created."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        try:
            make_private_folder(folder)
        except OSError as fault:
            raise UsageError(
                f"{folder} cannot be made: {fault.strerror or fault}. Choose another folder with --keep."
            ) from None

    def logs(self) -> Iterator[EventLog]:
        """Yield the logs of the runs, oldest first, without unreadable ones."""
        seen: set[str] = set()
        for path in Journal.files(self._folder):
            try:
                log = RecoverableRun.recover(path)
            except OSError:
                continue
            if len(log) and log.run not in seen:
                seen.add(log.run)
                yield log

    def write(self, log: EventLog) -> None:
        """Write a run as it happens. Raises UsageError if the folder is not writable."""
        journal = Journal(log.run, where=self._folder, clean=False)
        if journal.path is None:
            raise UsageError(
                f"{self._folder} cannot be written, so no run is started: {journal.warning}"
            )

        def note(event: Event) -> None:
            journal(event)
            if event.type == "end" and not event.span:
                journal.close()

        log.subscribe(note)
