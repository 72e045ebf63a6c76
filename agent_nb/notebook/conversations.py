"""Named conversations: ordered turns, each owned by a cell.

Why: in a notebook a cell is run again and again. Its answer must replace its former answer, not
follow it, and it must never see its own former answer.

Rules
- A cell sees the turns before its own, back to the last turn that started anew; a cell without a
  turn sees all of them.
- Running a cell again replaces its turn in its place. If it was live, the later turns are dropped,
  because they answered something else, up to the next turn that started anew; a replay leaves them.
- A turn that comes from a record says whether that is the user's own. One that is not counts for
  matching and replaying; before a live run, which sends it to a model, it is named.
- One live run per conversation at a time.
- This file knows no kernel: cells are keys, runs are sequences of events.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import msgspec

from ..errors import UsageError
from ..events import Event


class Turn(msgspec.Struct, frozen=True):
    """What one cell said and was answered; `fresh`: it started the conversation anew, `foreign`: it
    comes from somebody else's record.
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
        """Return the runs that `cell` sees, oldest first; none when it starts anew (`fresh`)."""
        return [turn.events for turn in self._seen(cell, fresh)]

    def foreign(self, cell: str, *, fresh: bool = False) -> int:
        """Return how many of these runs come from records of others."""
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
        """Put `turn` in the place of its cell's former one, or at the end; return how many later
        turns were dropped.
        """
        at = self._place(turn.cell)
        rest = self.turns[at + 1 :]
        kept = rest[self.later(turn.cell) :] if live else rest
        self.turns = [*self.turns[:at], turn, *kept]
        return len(rest) - len(kept)

    def forget(self, cell: str) -> bool:
        """Take out the turn of `cell`; return whether there was one."""
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
        """Return the conversation `name`; it begins empty when it is first asked for."""
        return self._named.setdefault(name, Conversation(name))

    def reset(self, name: str | None = None) -> int:
        """Forget the turns of `name`, or of all conversations; return how many turns that were."""
        chosen = [c for c in self if name is None or c.name == name]
        count = sum(len(c.turns) for c in chosen)
        for conversation in chosen:
            conversation.turns = []
        return count

    @contextmanager
    def claim(self, name: str, cell: str) -> Iterator[Conversation]:
        """Hold the conversation for a live run of `cell`. Raises UsageError while another run holds
        it.
        """
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


def remarks(rebuilt: int, later: int) -> list[str]:
    """Return what is to be said of a conversation: turns rebuilt from records, and later turns that
    are dropped.
    """
    return [*_rebuilt(rebuilt), *_notes(later)]


def named(foreign: int) -> str:
    """Return words for turns that come from records of others ("" when there are none)."""
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
