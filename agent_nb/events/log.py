"""The event log of one run: append-only, numbered and observable.

The live view, the journal, the hub, the record and the DataFrame read one log, so that they agree.

Rules
- Deltas go to subscribers and are not stored. Their lengths and times become `chunks` of the
  complete event, from which `deltas()` makes them again.
- A subscriber that raises is detached, its exception goes to `faults`, and the log goes on.
- One thread appends; others may read and subscribe.
"""

from __future__ import annotations

import os
import threading
import time
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, overload

import msgspec

from .chunks import decode_chunks, encode_chunks
from .event_json import decode_event, encode_event, to_builtins
from .event_path import match_path
from .types import Call, Delta, Event, Respond, Think

if TYPE_CHECKING:
    import pandas as pd

Subscriber = Callable[[Event], None]
_replace = msgspec.structs.replace
_NO_PIECES = ("result", "status", "approval", "picture", "map")  # `Delta.of` of other news
_CONVERSATION = ("user", "think", "call", "result", "respond")
# guards events and subscribers; one for all logs, because a log with a lock cannot be pickled
_LOCK = threading.RLock()  # a finalizer that runs inside may use a log too
if hasattr(os, "register_at_fork"):  # in a forked child nothing frees a held lock
    os.register_at_fork(after_in_child=_LOCK._at_fork_reinit)  # type: ignore[attr-defined]


def new_run_id() -> str:
    """Return a fresh run id: 12 hexadecimal digits."""
    return os.urandom(6).hex()


class EventLog(Sequence[Event]):
    """The events of one run, in order."""

    def __init__(self, run: str = "", *, clock: Callable[[], float] = time.time) -> None:
        self.run = run or new_run_id()
        self.faults: list[tuple[Subscriber, Exception]] = []
        self._clock = clock
        self._events: list[Event] = []
        self._ts = 0.0  # the latest time of an event, epoch seconds
        # open block -> the length of each of its pieces and the ms before it, alternating
        self._open_pieces: dict[str, array[int]] = {}
        self._last_ms: dict[str, int] = {}  # open block -> the time of its last piece, epoch ms
        self._subscribers: dict[object, Subscriber] = {}  # each subscription has its own key

    def append(self, event: Event) -> Event:
        """Stamp and store `event`, notify the subscribers, and return the stamped event.

        An event that has a `seq` stays unchanged; a delta is not stored. Raises ValueError, but not
        for a delta, if `event.seq` is set and not the next number, or if the run has ended.
        """
        if type(event) is Delta:
            stamped: Event = self._stamp_delta(event)
            subscribers = self._subscribers
        else:
            stamped = self._stamp(event)
            with _LOCK:
                self._events.append(stamped)
                subscribers = self._subscribers
        for key, subscriber in subscribers.items():
            self._notify(key, subscriber, stamped)
        return stamped

    def now(self) -> float:
        """Return the log's time: epoch seconds, whole milliseconds, never decreasing."""
        self._ts = max(self._ts, round(self._clock(), 3))
        return self._ts

    def _stamp_delta(self, event: Delta) -> Delta:
        """Return a delta with the log's run and time; keep its length and time for `chunks`."""
        ts = self.now()
        if event.of not in _NO_PIECES:
            self._add_piece(event, round(ts * 1000))
        return _replace(event, seq=0, ts=ts, run=self.run)

    def _add_piece(self, event: Delta, ms: int) -> None:
        """Keep a piece's length and the milliseconds since the piece before, or the run's start."""
        pieces = self._open_pieces.get(event.block)
        if pieces is None:
            pieces = self._open_pieces[event.block] = array("q")
            self._last_ms[event.block] = round(self._events[0].ts * 1000) if self._events else ms
        pieces.extend((len(event.text), ms - self._last_ms[event.block]))
        self._last_ms[event.block] = ms

    def _stamp(self, event: Event) -> Event:
        """Return an event with its number, run, time and `chunks`; a numbered one unchanged."""
        if self.ended:
            raise ValueError("the run has ended: its log takes no more events")
        seq = len(self._events) + 1
        if event.seq:
            if event.seq != seq:
                raise ValueError(f"event {event.seq} is out of order: {seq} is next")
            self._ts = max(self._ts, event.ts)
            return event
        chunks = self._close_block(event)
        fields = {"chunks": chunks} if chunks else {}
        return _replace(event, seq=seq, ts=self.now(), run=self.run, **fields)

    def _close_block(self, event: Event) -> str:
        """Return the `chunks` of a block from its pieces; "" if none came or they do not fit."""
        block = getattr(event, "block", "")
        pieces = self._open_pieces.pop(block, None) if block else None
        if not pieces:
            return ""
        del self._last_ms[block]
        # with another length, the block is not what was streamed
        fits = sum(pieces[::2]) == len(block_text(event))
        return encode_chunks(zip(pieces[::2], pieces[1::2], strict=True)) if fits else ""

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Call `subscriber` with every event, the stored ones first, each once and in order.

        Return the function that detaches it.
        """
        key, count = object(), 0  # `count`: events passed to it
        while True:
            with _LOCK:
                later = self._events[count:]
                if not later:
                    self._subscribers = {**self._subscribers, key: subscriber}
                    break
            count += len(later)
            if not all(self._notify(key, subscriber, event) for event in later):
                break  # it has raised
        return lambda: self._detach(key)

    def _notify(self, key: object, subscriber: Subscriber, event: Event) -> bool:
        """Pass an event to a subscriber; return False if it raises, and detach it."""
        try:
            subscriber(event)
        except Exception as fault:
            self._detach(key)
            self.faults.append((subscriber, fault))
            return False
        return True

    def _detach(self, key: object) -> None:
        with _LOCK:
            self._subscribers = {k: s for k, s in self._subscribers.items() if k is not key}

    @property
    def ended(self) -> bool:
        """Whether the run has ended: its last event is `end`."""
        return bool(self._events) and self._events[-1].type == "end" and not self._events[-1].span

    @overload
    def __getitem__(self, index: int) -> Event: ...
    @overload
    def __getitem__(self, index: slice) -> list[Event]: ...
    def __getitem__(self, index: int | slice) -> Event | list[Event]:
        return self._events[index]

    def __iter__(self) -> Iterator[Event]:
        return iter(self._events)  # also yields events that are appended meanwhile

    def __len__(self) -> int:
        return len(self._events)

    def __repr__(self) -> str:
        count = f"{len(self)} event{'' if len(self) == 1 else 's'}"
        return f"<EventLog {self.run}: {count}{'' if self.ended else ', open'}>"

    def of(self, *types: str) -> list[Event]:
        """Return the events of the given types, in order."""
        return [e for e in self._events if e.type in types]

    def select(self, pattern: str) -> list[Event]:
        """Return the events whose path (run id, then foreign path or span) matches a glob.

        See `match_path`.
        """
        return [e for e in self._events if match_path(pattern, e)]

    def conversation(self) -> list[Event]:
        """Return the events of a conversation: prompts, thoughts, calls, results and answers."""
        return self.of(*_CONVERSATION)

    def deltas(self) -> Iterator[Delta]:
        """Yield the deltas of the stored blocks with their texts and times, block after block."""
        start = self._events[0].ts if self._events else 0.0
        for event in self._events:
            yield from event_deltas(event, start)

    def to_ndjson(self) -> str:
        """Return the events as lines of canonical JSON."""
        return "".join(encode_event(e).decode() + "\n" for e in self._events)

    def to_list(self) -> list[dict[str, Any]]:
        """Return the events as JSON objects."""
        return [to_builtins(e) for e in self._events]

    @classmethod
    def of_events(cls, events: Iterable[Event]) -> EventLog:
        """Return a log of recorded events, numbered from 1 without gaps."""
        all_events = list(events)
        log = cls(all_events[0].run if all_events else "")
        log._events = [
            event if event.seq == seq else _replace(event, seq=seq)
            for seq, event in enumerate(all_events, 1)
        ]
        log._ts = max((event.ts for event in all_events), default=0.0)
        return log

    @classmethod
    def from_ndjson(cls, text: str | bytes) -> EventLog:
        """Return the log of the text of `to_ndjson`, without deltas and empty lines.

        Raises ValueError with the number of a line that is not a JSON object.
        """
        data = text.encode(errors="surrogatepass") if isinstance(text, str) else text
        events = []
        for number, line in enumerate(data.split(b"\n"), 1):
            try:
                if line.strip():
                    events.append(decode_event(line))
            except ValueError as fault:
                raise ValueError(f"line {number} is not a JSON object: {fault}") from fault
        return cls.of_events(e for e in events if e.type != "delta")

    def to_frame(self, columns: Any = None) -> pd.DataFrame:
        """Return one row per event; see `agent_nb.events.frame`."""
        from .frame import to_frame

        return to_frame(self._events, columns)


def block_text(event: Event) -> str:
    """Return the text that the deltas of a block event add up to ("" for other events)."""
    if isinstance(event, Call):
        return event.raw_args
    return event.content if isinstance(event, Think | Respond) else ""


def event_deltas(event: Event, start: float) -> Iterator[Delta]:
    """Yield the deltas of one block; `start` is the time of the run's first event (epoch s)."""
    if not isinstance(event, Think | Respond | Call) or not event.chunks:
        return
    text, offset, ms = block_text(event), 0, round(start * 1000)
    name = event.name if isinstance(event, Call) else ""
    for length, gap in decode_chunks(event.chunks):
        ms += gap
        yield Delta(
            ts=ms / 1000,
            run=event.run,
            turn=event.turn,
            span=event.span,
            parent=event.parent,
            origin=event.origin,
            block=event.block,
            of=event.type,
            name=name,
            text=text[offset : offset + length],
        )
        offset += length
