"""Import a stream of any known format into event logs: `seq` is numbered anew and missing ends are
added; the ids and times of the stream are kept.

Why apart from `watch`: this half does no I/O, so that a file, a connection, an iterator and a test
feed the same object.

Rules
- Each run of the stream has its own log, which opens with the run's first event. Ids of runs, calls
  and nodes stay as they came.
- Every event is `origin: imported`, whatever it claims; only the prompt that the viewer passed is
  the user's.
- Times are the stream's, and never go back. An event without one has the time of the event before
  it; while no event has had a time, that of its arrival in a live stream, else 0 (unknown).
- A run whose end did not come is closed as interrupted: open blocks are incomplete, each call gets
  a result, an error names the cause.
- Secrets of this machine and keys of known form are redacted, as in everything that is recorded.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from ..codecs import Codec, ForeignStream, Losses
from ..events import (
    RESEND,
    Delta,
    Error,
    Event,
    EventLog,
    Interrupt,
    RunStart,
    Settler,
    User,
    event_from,
    new_run_id,
    to_builtins,
)
from ..wire import Redaction, Redactor

CUT = "The source ended before the run did."
STOPPED = "The viewer stopped following."


class Imported:
    """The runs of one stream; feed it the items. `logs` are the runs in order of appearance.

    `codec` None: detected; `prompt`: what the user said, for formats without it; `live`: deltas
    count, and times of arrival are true; `on_run` is called with each new log before its first
    event; `secrets` by name. Raises UsageError on an unknown codec.
    """

    def __init__(
        self,
        codec: str | None = None,
        *,
        prompt: str = "",
        live: bool = False,
        on_run: Callable[[EventLog], None] = lambda _: None,
        secrets: Mapping[str, str] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.logs: list[EventLog] = []
        self._stream = ForeignStream(codec or None)
        self._settler: Settler | None = None  # adds the missing ends; depends on the codec
        self._prompt, self._live, self._on_run, self._clock = prompt, live, on_run, clock
        self._redaction = None if secrets is None else Redaction(secrets)
        self._unnamed = new_run_id()  # the run of events that name none
        self._runs: dict[str, _Run] = {}

    @property
    def codec(self) -> Codec | None:
        """The format, None while it is unknown."""
        return self._stream.codec

    @property
    def losses(self) -> Losses:
        """What could not be read."""
        return self._stream.losses

    def feed(self, item: Any) -> list[Event]:
        """Return the events that an item completes, as logged, and deltas. Raises UsageError."""
        return [*self._take(self._stream.feed(item)), *self.tick()]

    def tick(self) -> list[Event]:
        """Return the events held back long enough; to be called often in a live stream."""
        return self._take(self._stream.tick(self._clock())) if self._live else []

    def close(self, fault: str = "", *, stopped: bool = False) -> list[Event]:
        """End the stream and every run: by a `fault`, or because the viewer `stopped` it."""
        out = self._take(self._stream.close())
        if self._settler is None:
            return out
        why = (
            Interrupt(detail=STOPPED) if stopped else Error(code="truncated", message=fault or CUT)
        )
        for event in self._settler.close(why, broken=bool(fault) or stopped):
            out += self._log(event)
        return out

    def _take(self, events: Iterable[Event]) -> list[Event]:
        out: list[Event] = []
        for event in events:
            if self._settler is None:  # the codec is known by the first event
                self._settler = self._stream.new_settler()
            named = event if event.run else msgspec.structs.replace(event, run=self._unnamed)
            for settled in self._settler.feed(named):
                out += self._log(settled)
        return out

    def _log(self, event: Event) -> list[Event]:
        if type(event) is Delta and not self._live:
            return []
        run = self._runs.get(event.run)
        if run is None or run.log.ended:
            run = self._open(event.run)
        return run.add(event)

    def _open(self, run_id: str) -> _Run:
        prompt = self._prompt if not self.logs else ""  # the first run answers it
        name = run_id if self._redaction is None else self._redaction.value(run_id)
        run = self._runs[run_id] = _Run(
            name, prompt, self._clock if self._live else None, self._redaction
        )
        self.logs.append(run.log)
        self._on_run(run.log)
        return run


class _Run:
    """One run and its log; `clock` is None unless the stream is live."""

    def __init__(
        self,
        run_id: str,
        prompt: str,
        clock: Callable[[], float] | None,
        redaction: Redaction | None,
    ) -> None:
        self._at = 0.0  # time of the newest event
        self._timed = False  # whether an event of the stream has had a time
        self._clock = clock
        self._prompt = prompt
        self._redaction = redaction
        self._filters: dict[str, Redactor] = {}  # by block that is being written
        self.log = EventLog(run_id, clock=lambda: self._at)

    def add(self, event: Event) -> list[Event]:
        """Append an event; before it the prompt, if the stream has none."""
        out: list[Event] = []
        if self._prompt and not isinstance(event, RunStart):
            prompt, self._prompt = self._prompt, ""
            if not isinstance(event, User):
                user = User(content=prompt, origin="user", ts=event.ts)
                out.append(self._append(self._clean(user)))
        if isinstance(event, Delta):
            return [*out, *self._delta(event)]
        out += self._rest_of_block(event)
        return [*out, self._append(msgspec.structs.replace(self._clean(event), origin="imported"))]

    def _rest_of_block(self, event: Event) -> list[Event]:
        """Return, as a delta, the text that the redactor of a closing block still holds."""
        block = getattr(event, "block", "")
        redactor = self._filters.pop(block, None)
        text = redactor.close() if redactor is not None else ""
        if not text:
            return []
        rest = Delta(
            block=block,
            of=event.type,
            text=text,
            ts=event.ts,
            turn=event.turn,
            span=event.span,
            parent=event.parent,
            path=event.path,
            origin="imported",
        )
        return [self._append(rest)]

    def _delta(self, event: Delta) -> list[Event]:
        imported = msgspec.structs.replace(event, origin="imported")
        if self._redaction is None or not event.block:
            return [self._append(self._clean(imported))]
        if event.block not in self._filters:
            self._filters[event.block] = self._redaction.stream()
        text, name = self._filters[event.block].feed(event.text), self._redaction.value(event.name)
        if event.text and not text:
            return []  # all of it is held back
        return [self._append(msgspec.structs.replace(imported, text=text, name=name))]

    def _append(self, event: Event) -> Event:
        self._timed = self._timed or event.ts > 0
        now = self._clock() if self._clock is not None and not self._timed else 0.0
        self._at = max(self._at, event.ts or now)
        return self.log.append(msgspec.structs.replace(event, seq=0, ts=0.0, run=""))

    def _clean(self, event: Event) -> Event:
        """Return the event redacted; if its text changes, its `chunks` are dropped."""
        if self._redaction is None:
            return event
        fields = to_builtins(event)
        # in objects that a provider wants back, signatures and encrypted reasoning keep every byte
        payloads = ("payload", "opaque") if fields.get("name") == RESEND else ("opaque",)
        clean = self._redaction.fields(fields, payloads)
        if clean == fields:
            return event
        return event_from({name: value for name, value in clean.items() if name != "chunks"})
