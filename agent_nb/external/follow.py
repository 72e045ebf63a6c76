"""Put the events of a remote run in order, each once, whatever the network does. No I/O.

    follower = Follower()
    events = follower.feed(frame)       # for each frame of a connection
    follower.begin_connection()         # when a new connection resumes from `follower.last_id`
    follower.over                       # the run has ended

Why: connections break anywhere, a new one repeats earlier events, and proxies deliver old responses
late. But a log accepts event 8 only after 7, and never twice.

Rules
- The `seq` of a stored event (any but a delta) decides: the next event is passed on, an older one
  is dropped, a later one waits for the events before it.
- While events wait, `is_waiting` is true: after a moment the caller reconnects from `last_id`, and
  the server sends the missing events again.
- A delta has no `seq`; its frame id decides (see `events.position`). Only the delta that follows
  the newest one is passed on; others may be lost, because the complete event of the block repeats
  the text of all its deltas.
- Events that the server no longer has (`gap`) become one error event; later events are renumbered
  to follow it.
"""

from __future__ import annotations

import msgspec

from ..events import Delta, End, Error, Event, Position, decode_event
from ..wire import SAFE, Frame

MOST_WAITING = 4096  # events that wait for earlier ones; more are dropped and come again


class Follower:
    """Orders the events of one run. `last_id`: where a new connection resumes ("": the start)."""

    def __init__(self) -> None:
        self.last_id = ""
        self.over = False
        self._seq = 0  # remote `seq` of the newest stored event that was passed on
        self._newest_delta = (0, 0)  # epoch and number of the newest delta after that event
        self._offset = 0  # our `seq` minus the remote one; differs from 0 after a gap
        self._run = ""
        self._waiting: dict[int, Event] = {}

    @property
    def is_waiting(self) -> bool:
        """True while an event waits for an earlier one that has not come."""
        return bool(self._waiting)

    def begin_connection(self) -> None:
        """Begin a new connection, which repeats the events that were waiting."""
        self._waiting.clear()

    def feed(self, frame: Frame) -> list[Event]:
        """Return the events that are due now; an unreadable frame is skipped."""
        if self.over:
            return []
        if frame.event == "gap":
            return self._report_gap(frame.data)
        try:
            event = decode_event(frame.data)
        except (ValueError, RecursionError):
            return []
        if isinstance(event, Delta):
            return self._take_delta(event, frame.id or "")
        return self._take_stored(event) if event.seq else []

    def _take_stored(self, event: Event) -> list[Event]:
        """Return a numbered event and those that waited for it, if its turn has come."""
        if event.seq <= self._seq or event.seq in self._waiting:
            return []
        if len(self._waiting) < MOST_WAITING or event.seq == self._seq + 1:
            self._waiting[event.seq] = event
        return self._pop_due()

    def _pop_due(self) -> list[Event]:
        """Return the waiting events whose turn has come."""
        out: list[Event] = []
        while (due := self._waiting.pop(self._seq + 1, None)) is not None:
            out.append(self._renumber(due))
        return out

    def _renumber(self, event: Event) -> Event:
        """Return an event with our `seq`, and note it as the newest."""
        self._seq, self._newest_delta, self._run = event.seq, (0, 0), event.run
        self.last_id = str(event.seq)
        self.over = isinstance(event, End) and not event.span
        if not self._offset:
            return event
        return msgspec.structs.replace(event, seq=event.seq + self._offset)

    def _take_delta(self, event: Delta, frame_id: str) -> list[Event]:
        """Return a delta if it is the next one; its `frame_id`: see `events.position`."""
        position = Position.parse(frame_id)
        if position is None:
            return []  # it might be a repeat; the complete event of its block follows anyway
        seq, epoch, number = position
        if position <= (self._seq, *self._newest_delta):
            return []
        newest_epoch, newest_number = self._newest_delta
        # a new epoch counts its deltas from 1
        expected = newest_number + 1 if epoch == newest_epoch else 1
        if seq != self._seq or number != expected:
            return []
        self._newest_delta = (epoch, number)
        self.last_id = frame_id
        return [event]

    def _report_gap(self, text: str) -> list[Event]:
        """Return an error for the events that the server has lost; skip their numbers."""
        try:
            gap = msgspec.json.decode(text, type=_Gap)
        except (ValueError, RecursionError):
            return []
        # 0: the server did not know `last_id` and sends all events again: repeats are dropped
        if not 0 < gap.missed <= SAFE:
            return []
        message = f"{gap.missed} events of the remote run are no longer there ({gap.reason})."
        seq = self._seq + self._offset + 1
        error = Error(seq=seq, run=self._run, code="gap", message=message, origin="imported")
        self._seq += gap.missed
        self._offset -= gap.missed - 1  # one error stands for the missed events
        self._newest_delta = (0, 0)
        self.last_id = str(self._seq)
        return [error, *self._pop_due()]


class _Gap(msgspec.Struct):
    """The data of a gap frame."""

    reason: str = ""
    missed: int = 0
