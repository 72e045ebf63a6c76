"""Complete a foreign stream for a log: number its events, and give every run one end.

Why: a foreign stream may stop anywhere and number nothing, while a record is valid only if each
call has a result and each run an end.

Rules
- `seq` counts from 1 in each run; numbered events keep their number. Deltas have none.
- Added events are marked as derived, so that the format they were read from does not show them.
- If runs do not interleave, a new run ends the one before.
- A run without an end is `ok` if its answer is complete and no call is open; a last error or
  interrupt takes precedence.
"""

from __future__ import annotations

import msgspec

from .types import (
    Call,
    Delta,
    End,
    EndStatus,
    Error,
    Event,
    Interrupt,
    Node,
    Respond,
    Result,
    Think,
)

CUT = "The stream ended before its result came."


class Numberer:
    """Numbers the events of each run."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def feed(self, event: Event) -> Event:
        """Return the event with its `seq`."""
        if type(event) is Delta:
            return event
        seq = self._counts.get(event.run, 0) + 1
        self._counts[event.run] = max(seq, event.seq)
        if type(event) is End and not event.span:
            del self._counts[event.run]
        return event if event.seq else msgspec.structs.replace(event, seq=seq)


class Settler:
    """Adds the missing results of open calls and the missing end of a run.

    `codec` is the format that was read; `interleaves`: its runs may overlap.
    """

    def __init__(self, codec: str, *, interleaves: bool = True) -> None:
        self._codec = codec
        self._interleaves = interleaves
        self._open: dict[str, _Run] = {}

    def feed(self, event: Event) -> list[Event]:
        """Return the event, preceded by the missing events of a finished run."""
        before = []
        if not self._interleaves and event.run not in self._open:
            before = self.close()
        run = self._open.setdefault(event.run, _Run())
        if type(event) is End and not event.span:
            del self._open[event.run]
            return [*before, *self._results(run), event]
        run.see(event)
        return [*before, event]

    def close(self) -> list[Event]:
        """End every run that is open."""
        runs, self._open = self._open, {}
        return [event for run in runs.values() for event in self._end(run)]

    def _end(self, run: _Run) -> list[Event]:
        last = run.last
        if last is None:
            return []
        whole = isinstance(run.word, Respond) and not run.word.incomplete and not run.calls
        status = run.stopped or ("ok" if whole else "interrupted")
        end = End(
            run=last.run,
            ts=last.ts,
            turn=last.turn,
            origin="imported",
            status=status,
            extra={self._codec: {"derived": True}},
        )
        return [*self._results(run), end]

    def _results(self, run: _Run) -> list[Event]:
        note = {self._codec: {"derived": True}}
        out: list[Event] = []
        for call in run.calls.values():
            ts = run.last.ts if run.last else call.ts
            out.append(
                Result(
                    call_id=call.call_id,
                    name=call.name,
                    status="cancelled",
                    content=CUT,
                    ts=ts,
                    origin="imported",
                    extra=note,
                    run=call.run,
                    turn=call.turn,
                    span=call.span,
                    parent=call.parent,
                    path=call.path,
                )
            )
        run.calls.clear()
        return out


class _Run:
    """The open calls and the latest events of one run."""

    def __init__(self) -> None:
        self.last: Event | None = None
        self.word: Event | None = None
        self.stopped: EndStatus | None = None
        self.calls: dict[str, Call] = {}

    def see(self, event: Event) -> None:
        """Note a call, a result, an answer, or a possible reason for the end."""
        if type(event) is Delta:
            return
        self.last = event
        self.stopped = (
            None
            if isinstance(event, Call | Respond | Result | Think)
            else _how(event) or self.stopped
        )
        if isinstance(event, Call):
            self.calls[event.call_id] = event
            self.word = event
        elif isinstance(event, Result):
            self.calls.pop(event.call_id, None)
        elif isinstance(event, Respond):
            self.word = event


def _how(event: Event) -> EndStatus | None:
    """Return the end status implied by the last event, or None."""
    if event.span and not isinstance(event, Node):
        return None
    if isinstance(event, Error) or (
        isinstance(event, Node) and not event.parent and event.result.startswith("error")
    ):
        return "error"
    if isinstance(event, Interrupt):
        return "interrupted" if event.reason == "user" else "limit"
    return None
