"""A stream of any known format into event logs: numbered by us, ended properly, its own ids and
times kept.

Why apart from `watching`: this half does no I/O, so that a file, a connection, an iterator and a
test feed the same object.

Rules
- Each run of the stream has a log of its own, which opens with the run's first event; ids of runs,
  calls and nodes stay as they came.
- Every event is `origin: imported`, whatever it says of itself; only the prompt that the viewer
  gave is the user's.
- Times are the stream's own, never going back. What it does not tell is the time of arrival while
  one watches live, else unknown (0).
- A run whose end did not come is closed as interrupted: what is open is cut off, each call gets a
  result, an error says why.
- Secrets of this machine and keys of known form are taken out, as from everything that is recorded.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from ..codecs.base import Codec, Decoder
from ..codecs.detect import HEAD, LINES, SURE, detect, named, scores
from ..codecs.losses import Losses
from ..errors import UsageError
from ..events import RESEND, Delta, End, Error, Event, Interrupt, RunStart, User
from ..events.completion import Settler
from ..events.event_json import event_from, to_builtins
from ..events.log import EventLog, new_run_id
from ..wire.json_text import dumps, plain
from ..wire.redact import Redaction, Redactor
from .coerce import Piece, Pieces, adapter_of

CUT = "The source ended before the run did."
STOPPED = "The viewer stopped following."
OURS = "canonical"
# a score that needs no more lines when it is that far ahead: nobody likes to wait for the second
# event
LIKELY, LEAD = 0.6, 0.25


class Imported:
    """Takes the items of one stream. `logs` are its runs in order of appearance, `losses` what
    could not be read.

    `codec` None: detected; `prompt`: what the user said, for a stream that does not tell; `live`:
    somebody watches while it comes, so deltas count and times of arrival are true; `on_run` is
    called with each new log before its first event; `secrets` by name. Raises UsageError on an
    unknown codec.
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
        self.codec: Codec | None = named(codec)[0] if codec else None
        self.logs: list[EventLog] = []
        self.losses = Losses()
        self._pieces = Pieces()
        self._kind: type | None = None  # of the first item
        self._head: list[Piece] = []
        self._sniffed = b""
        self._looked = 0  # lines of it that were looked at
        self._decoder: Decoder | None = None
        self._settler: Settler | None = None
        self._prompt, self._live, self._on_run, self._clock = prompt, live, on_run, clock
        self._redaction = None if secrets is None else Redaction(secrets)
        self._unnamed = new_run_id()
        self._runs: dict[str, _Run] = {}

    def feed(self, item: Any) -> list[Event]:
        """Return the events that an item completes, as they stand in the logs; deltas among them.
        Raises UsageError.
        """
        self._kind = self._kind or type(item)
        return [
            event for piece in self._pieces.feed(item) for event in self._piece(piece)
        ] + self.tick()

    def tick(self) -> list[Event]:
        """Return the events that have waited for others long enough; to be called now and then
        while one watches live.
        """
        return (
            self._take(self._decoder.tick(self._clock()))
            if self._live and self._decoder is not None
            else []
        )

    def close(self, fault: str = "", *, stopped: bool = False) -> list[Event]:
        """The stream is over, by a `fault` if one is named, or because the viewer `stopped` it: end
        every run.
        """
        out = [event for piece in self._pieces.close() for event in self._piece(piece)]
        if self._decoder is None and self._head and self._sniffed.strip():
            out += self._begin()
        if self._decoder is None or self._settler is None:
            return out
        out += self._take(self._decoder.close())
        endings: dict[str, list[Event]] = {}
        for event in self._settler.close():
            endings.setdefault(event.run, []).append(event)
        for events in endings.values():
            out += self._ending(events, fault, stopped=stopped)
        return out

    # From pieces to events.

    def _piece(self, piece: Piece) -> list[Event]:
        if self._decoder is not None:
            return self._read(piece)
        self._head.append(piece)
        if self.codec is None and not isinstance(piece, Event):
            self._sniffed += (
                piece if isinstance(piece, bytes) else dumps(plain(piece)[0]).encode() + b"\n"
            )
            if not self._clear():
                return []
        return self._begin()

    def _clear(self) -> bool:
        """Return whether what has come tells the format, or enough has come to decide."""
        text, lines = self._sniffed, self._sniffed.count(b"\n")
        if lines == self._looked and len(text) < HEAD:
            return False
        self._looked = lines
        if len(text) >= HEAD or lines >= LINES:
            return True
        (best, _), (second, _), *_ = scores(text)
        return best >= SURE or (best >= LIKELY and best - second >= LEAD)

    def _begin(self) -> list[Event]:
        head, self._head = self._head, []
        if self.codec is None:
            self.codec = named(OURS)[0] if isinstance(head[0], Event) else self._detected()
        self._decoder = self.codec.decoder()
        self.losses = self._decoder.losses
        self._settler = Settler(self.codec.name, interleaves=self.codec.interleaves)
        return [event for piece in head for event in self._read(piece)]

    def _detected(self) -> Codec:
        try:
            return detect(self._sniffed)
        except UsageError as fault:
            raise UsageError(f"{fault} {adapter_of(self._kind)}".rstrip()) from fault

    def _read(self, piece: Piece) -> list[Event]:
        assert self._decoder is not None
        if isinstance(piece, Event):
            return self._take([piece])
        return self._take(
            self._decoder.read(piece) if isinstance(piece, Mapping) else self._decoder.feed(piece)
        )

    # From events to logs.

    def _take(self, events: Iterable[Event]) -> list[Event]:
        assert self._settler is not None
        out: list[Event] = []
        for event in events:
            named_ = event if event.run else msgspec.structs.replace(event, run=self._unnamed)
            for settled in self._settler.feed(named_):
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
        said = self._prompt if not self.logs else ""
        name = run_id if self._redaction is None else self._redaction.value(run_id)
        run = self._runs[run_id] = _Run(
            name, said, self._clock if self._live else None, self._redaction
        )
        self.logs.append(run.log)
        self._on_run(run.log)
        return run

    def _ending(self, events: list[Event], fault: str, *, stopped: bool) -> list[Event]:
        """Log what the settler adds to a run that did not end itself, and say why when it was cut
        off.
        """
        *before, last = events
        if isinstance(last, End) and (fault or stopped):
            last = msgspec.structs.replace(last, status="interrupted")
        run = self._runs.get(last.run)
        told = not fault and not stopped and run is not None and isinstance(run.log[-1], Interrupt)
        if isinstance(last, End) and last.status == "interrupted" and not told:
            where: dict[str, Any] = {
                "run": last.run,
                "ts": last.ts,
                "turn": last.turn,
                "extra": last.extra,
            }
            before.append(
                Interrupt(detail=STOPPED, **where)
                if stopped
                else Error(code="truncated", message=fault or CUT, **where)
            )
        return [done for event in (*before, last) for done in self._log(event)]


class _Run:
    """One run on its way into its log."""

    def __init__(
        self,
        run_id: str,
        prompt: str,
        clock: Callable[[], float] | None,
        redaction: Redaction | None,
    ) -> None:
        self._at = 0.0
        self._told = False  # the stream tells times
        self._clock = clock
        self._prompt = prompt
        self._redaction = redaction
        self._filters: dict[str, Redactor] = {}
        self.log = EventLog(run_id, clock=lambda: self._at)

    def add(self, event: Event) -> list[Event]:
        """Append an event, and before it the prompt if the stream has none."""
        out: list[Event] = []
        if self._prompt and not isinstance(event, RunStart):
            prompt, self._prompt = self._prompt, ""
            if not isinstance(event, User):
                out.append(
                    self._append(self._clean(User(content=prompt, origin="user", ts=event.ts)))
                )
        if isinstance(event, Delta):
            return [*out, *self._delta(event)]
        rest = self._filters.pop(getattr(event, "block", ""), None)
        if rest is not None and (text := rest.close()):
            out.append(
                self._append(
                    Delta(
                        block=getattr(event, "block", ""),
                        of=event.type,
                        text=text,
                        ts=event.ts,
                        **_where(event),
                    )
                )
            )
        return [*out, self._append(msgspec.structs.replace(self._clean(event), origin="imported"))]

    def _delta(self, event: Delta) -> list[Event]:
        if self._redaction is None:
            return [self._append(msgspec.structs.replace(event, origin="imported"))]
        if not event.block:
            return [self._append(msgspec.structs.replace(self._clean(event), origin="imported"))]
        if event.block not in self._filters:
            self._filters[event.block] = self._redaction.stream()
        text, name = self._filters[event.block].feed(event.text), self._redaction.value(event.name)
        return (
            [self._append(msgspec.structs.replace(event, text=text, name=name, origin="imported"))]
            if text or not event.text
            else []
        )

    def _append(self, event: Event) -> Event:
        self._told = self._told or event.ts > 0
        now = self._clock() if self._clock is not None and not self._told else 0.0
        self._at = max(self._at, event.ts or now)
        return self.log.append(msgspec.structs.replace(event, seq=0, ts=0.0, run=""))

    def _clean(self, event: Event) -> Event:
        """Return the event without secrets; where its text changes, its old pieces no
        longer fit.
        """
        if self._redaction is None:
            return event
        said = to_builtins(event)
        clean = self._redaction.fields(
            said, ("payload", "opaque") if said.get("name") == RESEND else ("opaque",)
        )
        return (
            event
            if clean == said
            else event_from({name: held for name, held in clean.items() if name != "chunks"})
        )


def _where(event: Event) -> dict[str, Any]:
    return {
        "turn": event.turn,
        "span": event.span,
        "parent": event.parent,
        "path": event.path,
        "origin": "imported",
    }


def read_all(items: Iterable[Any], codec: str | None = None, **options: Any) -> Imported:
    """Read a whole stream and return its runs; options as for Imported. Raises UsageError when
    nothing in it is of a known format.
    """
    found = Imported(codec, **options)
    for item in items:
        found.feed(item)
    found.close()
    if not found.logs:
        raise UsageError("There is no event in it. Is it the right file, and the right codec?")
    return found
