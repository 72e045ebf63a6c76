"""Numbers the events of foreign streams, and completes the runs that broke off there.

A foreign stream may stop anywhere, and a record is valid only if each call has a result and each
run an end.

Rules
- The last events of a run decide how it ended. An error or interrupt counts first, then a question
  without an answer (`awaiting`).
- Without these, a run is `ok` only if its format may lack an end marker, its answer is complete, no
  call or node is open, and its events have no `seq`; otherwise it is interrupted. Events with a
  `seq` come from a log of ours, which has an `end` unless the run was interrupted.
- What a `Settler` adds is marked as derived, so that exporting to the same format leaves it out.
"""

from __future__ import annotations

from typing import Any

import msgspec

from . import types as e
from .completion import make_cancelled_result
from .types import Event

_NO_RESULT = "The stream ended before its result came."


class Numberer:
    """Numbers the events of each run of a stream."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def feed(self, event: Event) -> Event:
        """Return the event with its `seq`, from 1 in each run; a number that it has stays.

        Deltas get none.
        """
        if type(event) is e.Delta:
            return event
        seq = self._counts.get(event.run, 0) + 1
        self._counts[event.run] = max(seq, event.seq)
        if type(event) is e.End and not event.span:
            del self._counts[event.run]
        return event if event.seq else msgspec.structs.replace(event, seq=seq)


class Settler:
    """Adds what the runs of another format lack: results of open calls, and an end.

    `codec` is the format that was read. `interleaves`: its runs may overlap; otherwise a new run
    ends the one before. `may_lack_end`: its streams may stop without an end marker.
    """

    def __init__(self, codec: str, *, interleaves: bool = True, may_lack_end: bool = False) -> None:
        self._extra = {codec: {"derived": True}}
        self._interleaves, self._may_lack_end = interleaves, may_lack_end
        self._open: dict[str, _Run] = {}

    def feed(self, event: Event) -> list[Event]:
        """Return the event, after the results or the end that have to come before it."""
        before = []
        if not self._interleaves and event.run not in self._open:
            before = self.close()
        run = self._open.setdefault(event.run, _Run())
        if type(event) is e.End and not event.span:
            del self._open[event.run]
            return [*before, *self._cancel_open_calls(run), event]
        run.add(event)
        return [*before, event]

    def close(
        self, why: e.Error | e.Interrupt | None = None, *, broken: bool = False
    ) -> list[Event]:
        """Return the events that end every open run.

        `why` precedes the end of each interrupted run, unless the run's last event is an interrupt.
        `broken`: all open runs count as interrupted, and `why` always precedes the end.
        """
        runs, self._open = self._open, {}
        return [event for run in runs.values() for event in self._end(run, why, broken=broken)]

    def _end(self, run: _Run, why: e.Error | e.Interrupt | None, *, broken: bool) -> list[Event]:
        last = run.last
        if last is None:
            return []
        status = "interrupted" if broken else self._choose_status(run)
        envelope: dict[str, Any] = {
            "run": last.run,
            "ts": last.ts,
            "turn": last.turn,
            "origin": "imported",
            "extra": self._extra,
        }
        events: list[Event] = self._cancel_open_calls(run)
        has_reason = isinstance(last, e.Interrupt) and not broken
        if why is not None and status == "interrupted" and not has_reason:
            events.append(msgspec.structs.replace(why, **envelope))
        return [*events, e.End(status=status, **envelope)]

    def _choose_status(self, run: _Run) -> e.EndStatus:
        """Return how a run ended, by its last events."""
        if run.stopped is not None:
            return run.stopped
        # a question waits only as long as its call has no result
        if run.questions.keys() & run.calls.keys():
            return "awaiting"
        return "ok" if self._may_lack_end and run.is_whole else "interrupted"

    def _cancel_open_calls(self, run: _Run) -> list[Event]:
        """Return cancelled results for the open calls of a run, and close these calls."""
        results: list[Event] = [
            make_cancelled_result(
                call,
                _NO_RESULT,
                run=call.run,
                path=call.path,
                ts=run.last.ts if run.last else call.ts,
                origin="imported",
                extra=self._extra,
            )
            for call in run.calls.values()
        ]
        run.calls.clear()
        return results


class _Run:
    """The open calls and the latest events of one run."""

    def __init__(self) -> None:
        self.last: Event | None = None
        self.message: Event | None = None  # the model's newest call or answer
        self.stopped: e.EndStatus | None = None  # the end that the newest events suggest
        self.calls: dict[str, e.Call] = {}
        self.questions: dict[str, str] = {}  # call ids that wait for approval, and their spans
        self._asking: dict[str, set[str]] = {}  # span -> the calls in it that waited
        self._nodes: set[str] = set()  # spans of the open nodes
        self._numbered = False  # its events have a `seq`: it is a log of ours

    @property
    def is_whole(self) -> bool:
        """Whether it ends with a complete answer, and no event shows that more was to come."""
        answered = isinstance(self.message, e.Respond) and not self.message.incomplete
        return answered and not (self.calls or self._nodes or self._numbered)

    def add(self, event: Event) -> None:
        """Note the next event: an open or closed call, an answer, a reason for the end."""
        if type(event) is e.Delta:
            return
        self.last = event
        self._numbered = self._numbered or event.seq > 0
        # an error or interrupt after which the run goes on did not end the run
        if isinstance(event, e.Call | e.Respond | e.Result | e.Think):
            self.stopped = None
        else:
            self.stopped = _end_status(event) or self.stopped
        self._add_question(event)
        if isinstance(event, e.Call | e.Respond):
            self.message = event
        if isinstance(event, e.Call):
            self.calls[event.call_id] = event
        elif isinstance(event, e.Result):
            self.calls.pop(event.call_id, None)
        elif isinstance(event, e.Node) and event.phase == "enter":
            self._nodes.add(event.span)
        elif isinstance(event, e.Node):
            self._nodes.discard(event.span)

    def _add_question(self, event: Event) -> None:
        """Note a question, or what answers it: the call goes on, or the model speaks again."""
        if isinstance(event, e.Approval) and event.stage == "requested":
            self.questions[event.call_id] = event.span
            self._asking.setdefault(event.span, set()).add(event.call_id)
        elif isinstance(event, e.Approval | e.Started | e.Progress):
            self.questions.pop(event.call_id, None)
        elif isinstance(event, e.Think | e.Respond):
            for call_id in self._asking.pop(event.span, ()):
                if self.questions.get(call_id) == event.span:  # not answered, nor asked elsewhere
                    del self.questions[call_id]


def _end_status(event: Event) -> e.EndStatus | None:
    """Return the end status that an event implies, or None; events inside sub-agents imply none."""
    if event.span and not isinstance(event, e.Node):
        return None
    if isinstance(event, e.Error) or (
        isinstance(event, e.Node) and not event.parent and event.result.startswith("error")
    ):
        return "error"
    if isinstance(event, e.Interrupt):
        return "interrupted" if event.reason == "user" else "limit"
    return None
