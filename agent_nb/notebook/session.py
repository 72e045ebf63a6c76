"""What one kernel keeps from cell to cell: its runs, conversations and records.

Rules
- The three newest runs of a cell are kept, the latest run of all is `_agent`.
- A conversation is rebuilt from the records of the cells above once, when this kernel first meets it.
"""

from __future__ import annotations

import os
from collections import defaultdict
from typing import Any

from ..folder.trust import Offer
from ..models import keys
from ..redact import environment_secrets
from ..run import Run
from ..view.live import LiveView
from .cell import Cell, Cells
from .conversations import Conversation, Conversations
from .library import Library

KEPT = 3


class Session:
    """What one kernel keeps from cell to cell."""

    def __init__(self, shell: Any) -> None:
        self.shell = shell
        self.cells = Cells()
        self.conversations = Conversations()
        self.library = Library(shell.user_ns)
        self.warned = False
        self.declined: set[Offer] = set()  # of the folder, by this user, since the kernel started
        self._rebuilt: set[str] = set()
        self.runs: dict[str, list[Run]] = defaultdict(list)
        self.latest: Run | None = None
        self.staying: dict[str, LiveView] = {}  # views of replays whose widgets stay, by cell

    def keep(self, cell: Cell, run: Run, variable: str) -> None:
        """Remember a run and leave it in the user's namespace."""
        self.latest = run
        self.runs[cell.key] = [run, *self.runs[cell.key]][:KEPT]
        self.shell.user_ns["_agent"] = self.shell.user_ns[variable] = run

    def put_away(self, key: str) -> None:
        """Close the widgets that stayed of a cell which runs again."""
        if (view := self.staying.pop(key, None)) is not None:
            view.discard()

    def rebuild(self, conversation: Conversation, cell: Cell) -> int:
        """Fill a conversation that this kernel has not seen from the records of the cells above; return how many turns that gave."""
        if conversation.name in self._rebuilt:
            return 0
        self._rebuilt.add(conversation.name)
        turns = [] if conversation.turns else self.library.before(cell, conversation.name)
        for turn in turns:
            conversation.commit(turn, live=False)
        return len(turns)


def secrets() -> dict[str, str]:
    """Return what must not be seen: secret variables of the environment and the keys this session knows, by name."""
    return environment_secrets(os.environ) | {f"key {number}": value for number, value in enumerate(sorted(keys.secrets()), 1)}
