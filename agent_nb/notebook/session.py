"""The state that one kernel keeps from cell to cell: runs, conversations and records.

Cells, commands and completion share it; `magic` makes it when the first of them needs it.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from ..agent import Run
from ..host import Offer
from ..record import UserKey
from ..view import RunLiveButton
from .conversations import Conversation, Conversations
from .files.library import Library
from .identity import Cell, Cells
from .notices import print_warning
from .options import Options

MOST_RUNS = 3  # of a cell that are kept


class Tape(Protocol):
    """What records the model calls of other libraries (`cell.taping`)."""

    def limit(self, rpm: float | None, concurrency: float | None, budget: float | None) -> None:
        """Limit calls per minute, calls at once and US dollars; 0: no limit, None: unchanged."""

    def stop(self) -> None:
        """End the tape."""


class Session:
    """The state of one kernel: the newest runs of each cell, and the ids of all runs.

    `defaults` returns the configured defaults of the options. `read_options` returns the options of
    a cell with a first line, or raises UsageError.
    """

    def __init__(
        self,
        shell: Any,
        defaults: Callable[[], dict[str, Any]],
        read_options: Callable[[str], Options],
    ) -> None:
        self.shell = shell
        self.defaults = defaults
        self.read_options = read_options
        self.cells = Cells()
        self.conversations = Conversations()
        self.library = Library(shell.user_ns)
        self.declined: set[Offer] = set()  # offers of folders that the user has declined
        self._warned: set[str] = set()  # the messages of `warn`
        self._rebuilt: set[str] = set()  # names of conversations that had their first use
        self.runs: dict[str, list[Run]] = defaultdict(list)
        self.run_ids: set[str] = set()
        # cell key -> the agent cell as it was started last, and when (epoch seconds)
        self.started_cells: dict[str, tuple[Cell, float]] = {}
        self.latest: Run | None = None
        self.offered: dict[str, list[str]] = {}  # the models that servers listed, by provider
        self.tape: Tape | None = None
        self.buttons: dict[str, RunLiveButton] = {}  # of replays, by cell key

    def keep_run(self, cell: Cell, run: Run, variable: str) -> None:
        """Remember a run and leave it in the user's namespace, as `_agent` and as `variable`."""
        self.latest = run
        self.run_ids.add(run.id)
        self.runs[cell.key] = [run, *self.runs[cell.key]][:MOST_RUNS]
        self.shell.user_ns["_agent"] = self.shell.user_ns[variable] = run

    def keep_start(self, cell: Cell) -> None:
        """Remember an agent cell that starts now."""
        self.started_cells[cell.key] = (cell, time.time())

    def warn(self, message: str) -> None:
        """Print a warning about this machine, once per kernel."""
        if message not in self._warned:
            self._warned.add(message)
            print_warning(message)

    def sign(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """Return the record signed by this user, or without a key unsigned, with a warning."""
        key = UserKey.read()
        if not key:
            self.warn(
                f"Records stay unsigned: {UserKey.find_problem()}. A replay will ask before it runs their code again."
            )
        return key.sign(record)

    def stop_tape(self) -> bool:
        """End the tape; return whether it was on."""
        tape, self.tape = self.tape, None
        if tape is not None:
            tape.stop()
        return tape is not None

    def remove_button(self, key: str, *, gone: bool = False) -> None:
        """Remove the button of the replayed cell with this key, if there is one.

        `gone`: the cell runs again, which has removed its output.
        """
        if (button := self.buttons.pop(key, None)) is not None:
            button.close(gone=gone)

    def rebuild(self, conversation: Conversation, cell: Cell) -> int:
        """Fill a conversation from the records of the cells above, at its first use if empty.

        Return the number of turns that were added.
        """
        if conversation.name in self._rebuilt:
            return 0
        self._rebuilt.add(conversation.name)
        turns = [] if conversation.turns else self.library.recorded_turns(cell, conversation.name)
        for turn in turns:
            conversation.commit(turn, live=False)
        return len(turns)


def find_session(shell: Any) -> Session | None:
    """Return the session of a shell, None if the extension is not loaded."""
    magics = shell.magics_manager.registry.get("AgentMagics")
    return magics.session if magics is not None else None
