"""The events of a remote run put in order, each once, whatever the network does to them. No I/O.

    follower = Follower()
    events = follower.feed(frame)       # as the frames of a connection come
    follower.connected()                # a new connection, after `follower.last_id`
    follower.over                       # the run has ended

Why: connections are cut anywhere, come back with what was seen before, and proxies deliver old
answers late. A log takes event 8 only after 7, and never twice.

Rules
- A stored event's `seq` decides: the next one is passed on, an older one is dropped, a later one
  waits for those before it.
- While something waits, `torn` is true: after a moment the caller reconnects from `last_id`, and
  what is missing comes.
- A delta has no `seq`: its frame id decides the same way (see channel). It is passed on only in its
  place; a lost one is made good by the complete event of its block.
- What the server says it no longer has (`gap`) is told to the log as an error event, and counting
  goes on with what there is.
"""

from __future__ import annotations

import msgspec

from ..events import Delta, End, Error, Event
from ..events.event_json import decode_event
from ..events.position import parse_id
from ..wire.sse import Frame

WAITING = 4096


class Follower:
    """One run that is followed. `last_id` is what a new connection asks to resume after ("" for
    everything).
    """

    def __init__(self) -> None:
        self.last_id = ""
        self.over = False
        self.duplicates = 0
        self.gaps = 0
        self.malformed = 0
        self._seq = 0  # of the remote run
        self._delta_place = (0, 0)  # epoch and number of the newest delta after it
        self._offset = 0  # what to add to a remote number to get ours, after events that nobody has
        self._run = ""
        self._waiting: dict[int, Event] = {}

    @property
    def torn(self) -> bool:
        """True while events are missing before ones that have come."""
        return bool(self._waiting)

    def connected(self) -> None:
        """A new connection begins: what waited will come again."""
        self._waiting.clear()

    def feed(self, frame: Frame) -> list[Event]:
        """Return the events that are due. Nothing is ever raised: what cannot be read is counted in
        `malformed`.
        """
        if self.over:
            return []
        if frame.event == "gap":
            return self._gap(frame.data)
        try:
            event = decode_event(frame.data)
        except (msgspec.DecodeError, RecursionError):
            self.malformed += 1
            return []
        if isinstance(event, Delta):
            return self._delta(event, frame.id or "")
        return self._stored(event) if event.seq else []

    def _stored(self, event: Event) -> list[Event]:
        if event.seq <= self._seq or event.seq in self._waiting:
            self.duplicates += 1
            return []
        if len(self._waiting) < WAITING:
            self._waiting[event.seq] = event
        out: list[Event] = []
        while (due := self._waiting.pop(self._seq + 1, None)) is not None:
            out.append(self._pass(due))
        return out

    def _pass(self, event: Event) -> Event:
        self._seq, self._delta_place, self._run = event.seq, (0, 0), event.run
        self.last_id = str(event.seq)
        self.over = isinstance(event, End) and not event.span
        return (
            msgspec.structs.replace(event, seq=event.seq + self._offset) if self._offset else event
        )

    def _delta(self, event: Delta, number: str) -> list[Event]:
        found = parse_id(number)
        if found is None:
            return []  # without a place it cannot be told from a repeat; its block comes complete
        seq, epoch, n = found
        if found <= (self._seq, *self._delta_place):
            self.duplicates += 1
            return []
        same, count = epoch == self._delta_place[0], self._delta_place[1]
        if seq != self._seq or n != (count + 1 if same else 1):
            return []
        self._delta_place = (epoch, n)
        self.last_id = number
        return [event]

    def _gap(self, text: str) -> list[Event]:
        """The server has lost events: say so, and go on with the first that it has."""
        try:
            told = msgspec.json.decode(text, type=_Told)
        except (msgspec.DecodeError, RecursionError):
            self.malformed += 1
            return []
        # it does not know our id: everything follows, and what we have is dropped as a repeat
        if not told.missed:
            return []
        self.gaps += 1
        words = f"{told.missed} events of the remote run are no longer there ({told.reason})."
        error = Error(
            seq=self._seq + self._offset + 1,
            run=self._run,
            code="gap",
            message=words,
            origin="imported",
        )
        self._seq += told.missed
        self._offset -= told.missed - 1
        self._delta_place = (0, 0)
        self.last_id = str(self._seq)
        return [error]


class _Told(msgspec.Struct):
    """What a gap frame tells."""

    reason: str = ""
    missed: int = 0
