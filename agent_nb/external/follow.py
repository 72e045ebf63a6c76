"""Puts the events of a remote run in order, each once, whatever the network does. No I/O.

    follower = Follower()
    events = follower.feed(frame)       # for each frame of a connection
    follower.begin_connection()         # when a new connection resumes from `follower.last_id`
    follower.over                       # the run has ended

Connections break anywhere, a new one repeats earlier events, and proxies deliver old responses
late. But a log accepts event 8 only after 7, and never twice.

Rules
- The `seq` of a stored event (any but a delta) decides: the next event is passed on, an older one
  is dropped, a later one waits for the events before it.
- A delta has no `seq`; its frame id decides (see `events.position`). Only the delta that follows
  the newest one is passed on. Others may be lost: the complete event of the block repeats the text
  of all its deltas.
- Consecutive events that the server has dropped (`gap`) become one error event; later events are
  renumbered to follow it. A gap that repeats, or that begins after a missing event, is dropped: if
  it still counts, the next connection reports it again.
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
        """Whether an event waits for an earlier one; after a moment the caller should reconnect."""
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
        except ValueError:
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
        while not self.over and (due := self._waiting.pop(self._seq + 1, None)) is not None:
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
        newest_epoch, newest_number = self._newest_delta
        # a new epoch counts its deltas from 1
        expected = newest_number + 1 if epoch == newest_epoch else 1
        if seq != self._seq or epoch < newest_epoch or number != expected:
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
        last, out = self._find_last_lost(gap), list[Event]()
        for seq in [*sorted(seq for seq in self._waiting if seq <= last), last + 1]:
            if seq > self._seq + 1 and not self.over:
                out.append(self._skip(seq - 1 - self._seq, gap.reason))
            out += self._pop_due()
        return out

    def _find_last_lost(self, gap: _Gap) -> int:
        """Return the remote `seq` of the last event that is lost; 0 if the gap is out of place."""
        after = Position.parse(gap.after)
        if after is None:  # from an older server
            return self._seq + gap.missed
        return after.seq + gap.missed if after.seq <= self._seq else 0

    def _skip(self, count: int, reason: str) -> Event:
        """Skip the numbers of the next `count` events; return the error that stands for them."""
        lost = (
            "1 event of the remote run is"
            if count == 1
            else f"{count} events of the remote run are"
        )
        message = f"{lost} no longer there ({reason})."
        seq = self._seq + self._offset + 1
        self._seq += count
        self._offset -= count - 1
        self._newest_delta = (0, 0)
        self.last_id = str(self._seq)
        return Error(seq=seq, run=self._run, code="gap", message=message, origin="imported")


class _Gap(msgspec.Struct):
    """The data of a gap frame; see `server.channel.Gap`."""

    reason: str = ""
    after: str = ""
    missed: int = 0
