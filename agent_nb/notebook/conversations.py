"""Named conversations: ordered turns, each owned by a cell.

Why: a notebook cell runs again and again. Each answer must replace the cell's former answer, which
the cell must never see. So a cell sees the turns before its own (without a turn: all turns), back
to the last `fresh` one.

Rule: a live run that replaces a turn drops the later ones up to the next fresh one, because they
continued the former answer; a replay does not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import msgspec

from ..agent import Run
from ..errors import UsageError
from ..events import Event, is_map


class Turn(msgspec.Struct, frozen=True):
    """The prompt and answer of one cell.

    `cell`: the key of the cell. `events`: the events of its run. `fresh`: the turn started the
    conversation anew. `foreign`: the turn comes from another user's record.
    """

    cell: str
    events: Sequence[Event]
    fresh: bool = False
    foreign: bool = False


class Conversation:
    """The turns of one conversation, in order. `running`: the cell whose run goes on, or ""."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.turns: list[Turn] = []
        self.running = ""

    def runs_before(self, cell: str, *, fresh: bool = False) -> list[Sequence[Event]]:
        """Return the runs that `cell` sees, oldest first; none if `cell` starts anew (`fresh`)."""
        return [turn.events for turn in self.turns_before(cell, fresh=fresh)]

    def turns_before(self, cell: str, *, fresh: bool = False) -> list[Turn]:
        """Return the turns of `runs_before`: those before a cell, from the last fresh one."""
        if fresh:
            return []
        turns: list[Turn] = []
        for turn in self.turns[: self._find_index(cell)]:
            turns = [turn] if turn.fresh else [*turns, turn]
        return turns

    def count_dropped(self, cell: str) -> int:
        """Return how many later turns a live run of `cell` drops."""
        later = self.turns[self._find_index(cell) + 1 :]
        return next((i for i, turn in enumerate(later) if turn.fresh), len(later))

    def commit(self, turn: Turn, *, live: bool = True) -> int:
        """Replace the turn of the cell, or append; return how many later turns were dropped."""
        index = self._find_index(turn.cell)
        dropped = self.count_dropped(turn.cell) if live else 0
        self.turns = [*self.turns[:index], turn, *self.turns[index + 1 + dropped :]]
        return dropped

    def forget(self, cell: str) -> None:
        """Remove the turn of `cell`, if it has one."""
        self.turns = [t for t in self.turns if t.cell != cell]

    def _find_index(self, cell: str) -> int:
        """Return the index of the turn of `cell`; without one, the index that a new turn gets."""
        return next((i for i, t in enumerate(self.turns) if t.cell == cell), len(self.turns))


class Conversations:
    """All conversations of a kernel, by name."""

    def __init__(self) -> None:
        self._by_name: dict[str, Conversation] = {}

    def __iter__(self) -> Iterator[Conversation]:
        return iter(self._by_name.values())

    def __getitem__(self, name: str) -> Conversation:
        """Return the conversation `name`, a new one at its first use."""
        return self._by_name.setdefault(name, Conversation(name))

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


def is_turn(events: Sequence[Event]) -> bool:
    """Return whether an ended run counts as a turn of its conversation."""
    run = Run(events)  # type: ignore[arg-type]  # any sequence does
    return not is_map(events) and (run.status != "error" or bool(run.answer))


def turn_remarks(rebuilt: int, dropped: int) -> list[str]:
    """Return sentences for the user on the turns rebuilt from records and on the dropped turns.

    `rebuilt`, `dropped`: their numbers; 0 gives no sentence.
    """
    remarks = []
    if rebuilt:
        cells = "1 cell" if rebuilt == 1 else f"{rebuilt} cells"
        remarks.append(f"The conversation was rebuilt from the records of {cells} above.")
    if dropped:
        turns = "turn was" if dropped == 1 else f"{dropped} turns were"
        remarks.append(
            f"The later {turns} dropped from the conversation: what came after this cell answered its former text."
        )
    return remarks
