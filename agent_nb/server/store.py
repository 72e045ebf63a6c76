"""Keep the runs of a server on disk: written as they happen, available again after a restart."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ..errors import UsageError
from ..events import Event, EventLog
from ..host import make_private_folder
from ..record import Journal, RecoverableRun


class Store:
    """A folder with the runs of one server.

    Creating the object creates the folder, for this user only. Raises UsageError if that fails.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        try:
            make_private_folder(folder)
        except OSError as fault:
            raise UsageError(
                f"{folder} cannot be made: {fault.strerror or fault}. Choose another folder with --keep."
            ) from None

    def logs(self) -> Iterator[EventLog]:
        """Yield the logs of the runs, oldest first; unreadable and empty ones are left out.

        A run that was active when its process ended is read as interrupted.
        """
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
        """Write the events of a run, those in the log and all that follow, until its end.

        Raises UsageError if the folder is not writable.
        """
        # clean=False: old journals are runs that the server offers, so they are not removed
        journal = Journal(log.run, where=self._folder, clean=False)
        if journal.path is None:
            raise UsageError(
                f"{self._folder} cannot be written, so no run is started: {journal.warning}"
            )

        def write_event(event: Event) -> None:
            journal(event)
            if event.type == "end" and not event.span:  # the run's own end, not a sub-agent's
                journal.close()

        log.subscribe(write_event)
