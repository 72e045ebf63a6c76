"""Imports a stream of any known format into event logs, with the stream's ids and times. No I/O.

An imported run is shown, recorded and searched like our own, however incomplete its stream is.

Rules
- Every event is `origin: imported`, whatever the stream claims; only the prompt that the caller
  passed is `origin: user`.
- Times are the stream's, but never go back. An event without a time gets the time of the event
  before it. Until an event has a time, the events of a live stream get their times of arrival, the
  events of any other stream 0 (unknown).
- A run without an end gets one, with a status that `events.settler` chooses.
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
    """Imports one stream: feed it the items. `logs` are the runs in order of appearance.

    `codec` None: detected. `prompt`: the user's message, for formats without it. `live`: pass on
    deltas, and use times of arrival. `on_run` is called with each new log before its first event.
    `secrets`: values to redact, by name; None: nothing is redacted. Raises UsageError on an unknown
    codec.
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
        self._default_run = new_run_id()  # the run id of events that have none
        self._runs: dict[str, _Run] = {}

    @property
    def codec(self) -> Codec | None:
        """The format, None while it is unknown."""
        return self._stream.codec

    @property
    def losses(self) -> Losses:
        """The parts of the stream that could not be read."""
        return self._stream.losses

    def feed(self, item: Any) -> list[Event]:
        """Return the events that an item completes, as logged, deltas included if live.

        Raises UsageError if the type of the item or the format of the stream is unknown.
        """
        return [*self._log_all(self._stream.feed(item)), *self.tick()]

    def tick(self) -> list[Event]:
        """Return the events that the codec held back long enough; call this often if live."""
        return self._log_all(self._stream.tick(self._clock())) if self._live else []

    def close(self, fault: str = "", *, stopped: bool = False) -> list[Event]:
        """End the stream and every run: at its end, after a `fault`, or as the viewer `stopped`."""
        out = self._log_all(self._stream.close())
        if self._settler is None:
            return out
        cause: Interrupt | Error = Error(code="truncated", message=fault or CUT)
        if stopped:
            cause = Interrupt(detail=STOPPED)
        for event in self._settler.close(cause, broken=bool(fault) or stopped):
            out += self._log(event)
        return out

    def _log_all(self, events: Iterable[Event]) -> list[Event]:
        """Log events as the codec reads them, with the ends of blocks and runs that they lack."""
        out: list[Event] = []
        for event in events:
            if self._settler is None:  # the codec is known by the first event
                self._settler = self._stream.new_settler()
            with_run = event if event.run else msgspec.structs.replace(event, run=self._default_run)
            for settled in self._settler.feed(with_run):
                out += self._log(settled)
        return out

    def _log(self, event: Event) -> list[Event]:
        if type(event) is Delta and not self._live:
            return []
        run = self._runs.get(event.run)
        if run is None or run.log.ended:  # an id that comes again after its end is a new run
            run = self._open_run(event.run)
        return run.add(event)

    def _open_run(self, run_id: str) -> _Run:
        """Begin a run with a log of its own, and report that log."""
        prompt = self._prompt if not self.logs else ""  # only the first run answers the prompt
        name = run_id if self._redaction is None else self._redaction.value(run_id)
        clock = self._clock if self._live else None
        run = self._runs[run_id] = _Run(name, prompt, clock, self._redaction)
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
        self._newest_time = 0.0  # epoch seconds; 0: no event has had a time
        self._has_times = False  # an event of the stream has had a time
        self._clock = clock
        self._prompt = prompt
        self._redaction = redaction
        self._redactors: dict[str, Redactor] = {}  # open block -> the redactor of its deltas
        self.log = EventLog(run_id, clock=lambda: self._newest_time)

    def add(self, event: Event) -> list[Event]:
        """Append an event; if the stream lacks the prompt, append that first."""
        out: list[Event] = []
        if self._prompt and not isinstance(event, RunStart):
            prompt, self._prompt = self._prompt, ""
            if not isinstance(event, User):
                user = User(content=prompt, origin="user", ts=event.ts)
                out.append(self._append(self._clean(user)))
        if isinstance(event, Delta):
            return [*out, *self._add_delta(event)]
        out += self._flush_redactor(event)
        return [*out, self._append(msgspec.structs.replace(self._clean(event), origin="imported"))]

    def _flush_redactor(self, event: Event) -> list[Event]:
        """Return, as a delta, the text that the redactor of a closing block still holds."""
        block = getattr(event, "block", "")
        redactor = self._redactors.pop(block, None)
        text = redactor.close() if redactor is not None else ""
        if not text:
            return []
        shared = {name: getattr(event, name) for name in ("ts", "turn", "span", "parent", "path")}
        delta = Delta(block=block, of=event.type, text=text, origin="imported", **shared)
        return [self._append(delta)]

    def _add_delta(self, event: Delta) -> list[Event]:
        """Append a delta, as far as the redactor of its block lets its text pass."""
        imported = msgspec.structs.replace(event, origin="imported")
        if self._redaction is None or not event.block:
            return [self._append(self._clean(imported))]
        if event.block not in self._redactors:
            self._redactors[event.block] = self._redaction.stream()
        text = self._redactors[event.block].feed(event.text)
        if event.text and not text:
            return []  # the redactor holds the text back: it may be the beginning of a secret
        name = self._redaction.value(event.name)
        return [self._append(msgspec.structs.replace(imported, text=text, name=name))]

    def _append(self, event: Event) -> Event:
        """Log an event at its own time, but never before the event before it (see the rules)."""
        self._has_times = self._has_times or event.ts > 0
        now = self._clock() if self._clock is not None and not self._has_times else 0.0
        self._newest_time = max(self._newest_time, event.ts or now)
        # the log sets these three itself, the time from `_newest_time`
        return self.log.append(msgspec.structs.replace(event, seq=0, ts=0.0, run=""))

    def _clean(self, event: Event) -> Event:
        """Return the event redacted; if that changes it, its `chunks` no longer fit: drop them."""
        if self._redaction is None:
            return event
        fields = to_builtins(event)
        # a provider needs its signatures and encrypted reasoning back byte for byte
        payloads = ("payload", "opaque") if fields.get("name") == RESEND else ("opaque",)
        clean = self._redaction.fields(fields, payloads)
        if clean == fields:
            return event
        return event_from({name: value for name, value in clean.items() if name != "chunks"})
