"""Named conversations: ordered turns, each owned by a cell.

Why: a notebook cell runs again and again. Each answer must replace the cell's former answer, which
the cell must never see.

Rules
- A cell sees the turns before its own, back to the last turn that started anew (`fresh`); a cell
  without a turn sees all of them.
- A cell that runs again replaces its turn in place. A live run drops the later turns up to the next
  fresh one, because they continued another answer; a replay keeps them.
- A turn from another user's record is `foreign`. It counts for matching and replaying; a live run,
  which sends it to a model, names it.
- A conversation has one live run at a time.
- This file is independent of the kernel: cells are keys, runs are sequences of events.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import msgspec

from ..errors import UsageError
from ..events import Event


class Turn(msgspec.Struct, frozen=True):
    """The prompt and answer of one cell.

    `fresh`: it started the conversation anew; `foreign`: it comes from another user's record.
    """

    cell: str
    events: Sequence[Event]
    fresh: bool = False
    foreign: bool = False


class Conversation:
    """The turns of one conversation, in order."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.turns: list[Turn] = []
        self.running = ""

    def before(self, cell: str, *, fresh: bool = False) -> list[Sequence[Event]]:
        """Return the runs that `cell` sees, oldest first; none if it starts anew (`fresh`)."""
        return [turn.events for turn in self._seen(cell, fresh)]

    def foreign(self, cell: str, *, fresh: bool = False) -> int:
        """Return how many of the runs of `before` are foreign."""
        return sum(turn.foreign for turn in self._seen(cell, fresh))

    def _seen(self, cell: str, fresh: bool) -> list[Turn]:
        if fresh:
            return []
        seen: list[Turn] = []
        for turn in self.turns[: self._place(cell)]:
            seen = [turn] if turn.fresh else [*seen, turn]
        return seen

    def later(self, cell: str) -> int:
        """Return how many turns a live run of `cell` drops."""
        return _until_fresh(self.turns[self._place(cell) + 1 :])

    def commit(self, turn: Turn, *, live: bool = True) -> int:
        """Replace the turn of the cell, or append; return how many later turns were dropped."""
        at = self._place(turn.cell)
        rest = self.turns[at + 1 :]
        rest_kept = rest[self.later(turn.cell) :] if live else rest
        self.turns = [*self.turns[:at], turn, *rest_kept]
        return len(rest) - len(rest_kept)

    def forget(self, cell: str) -> bool:
        """Remove the turn of `cell`; return whether there was one."""
        before = len(self.turns)
        self.turns = [t for t in self.turns if t.cell != cell]
        return len(self.turns) < before

    def _place(self, cell: str) -> int:
        return next((i for i, t in enumerate(self.turns) if t.cell == cell), len(self.turns))


def _until_fresh(turns: Sequence[Turn]) -> int:
    return next((i for i, t in enumerate(turns) if t.fresh), len(turns))


class Conversations:
    """All conversations of a kernel, by name."""

    def __init__(self) -> None:
        self._named: dict[str, Conversation] = {}

    def __iter__(self) -> Iterator[Conversation]:
        return iter(self._named.values())

    def __getitem__(self, name: str) -> Conversation:
        """Return the conversation `name`, a new one at its first use."""
        return self._named.setdefault(name, Conversation(name))

    def reset(self, name: str | None = None) -> int:
        """Forget the turns of `name` (None: of all conversations); return their number."""
        chosen = [c for c in self if name is None or c.name == name]
        count = sum(len(c.turns) for c in chosen)
        for conversation in chosen:
            conversation.turns = []
        return count

    @contextmanager
    def claim(self, name: str, cell: str) -> Iterator[Conversation]:
        """Hold a conversation for a run of `cell`. Raises UsageError while another run holds it."""
        conversation = self[name]
        if conversation.running:
            raise UsageError(
                f"The conversation {name!r} is busy: a run is still going on. Wait for it, interrupt the kernel, or use another: -c NAME."
            )
        conversation.running = cell
        try:
            yield conversation
        finally:
            conversation.running = ""


def rebuild_remarks(rebuilt: int, later: int) -> list[str]:
    """Return remarks on the turns rebuilt from records and on the later turns that are dropped."""
    return [*_rebuilt(rebuilt), *_notes(later)]


def describe_foreign(foreign: int) -> str:
    """Return words for a number of foreign turns, "" for none."""
    if not foreign:
        return ""
    turns = (
        "1 earlier turn comes from a record"
        if foreign == 1
        else f"{foreign} earlier turns come from records"
    )
    return f"{turns} you did not sign"


def _rebuilt(turns: int) -> list[str]:
    return (
        [
            f"The conversation was rebuilt from the records of {turns} cell{'' if turns == 1 else 's'} above."
        ]
        if turns
        else []
    )


def _notes(later: int) -> list[str]:
    if not later:
        return []
    turns = "turn was" if later == 1 else f"{later} turns were"
    return [
        f"The later {turns} dropped from the conversation: what came after this cell answered its former text."
    ]
