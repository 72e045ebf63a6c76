"""Logs one batch of tool calls, from the runner's reports.

Tools run concurrently and report at any time; the log needs one result for each call, in call
order, output in few pieces, and no secrets. So the result of a call that ends early waits, and a
live delta (`of="result"`) announces it. Joined progress text comes before the result, at most
`LOGS_PER_SECOND` times a second; of fractions and redrawn lines (`wire.console`) only the last.

Rule: the printed output in `extra` of a result is for the model; a replay does not compare it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from .. import events
from ..errors import Cancelled
from ..events import EventLog, meaning
from ..tools import Collector, Outcome, Update
from ..wire import Console, Redaction, Redactor, replace_surrogates
from .attachments import recorded_pictures
from .clean_json import clean_value

LOGS_PER_SECOND = 20  # how often pending output of one call is logged, at most
LONGEST_PROGRESS = 1 << 20  # characters of one progress event; more text is split
LONGEST_PRINTED = 4_000  # characters of what a tool printed that the model reads


class _OutputStream:
    """Text of one source on its way to the log: redacted, and as a terminal would show it."""

    def __init__(self, redactor: Redactor) -> None:
        self.filter = redactor
        self.console = Console()
        self._logged_status = ""  # the line redrawn with carriage returns, as last logged

    def take_new_status(self) -> tuple[float | None, str]:
        """Return fraction and text of the redrawn line; (None, "") if it has not changed."""
        status = self.console.status
        changed, self._logged_status = status != self._logged_status, status
        return Console.read_progress(status) if changed else (None, "")


class _CallOutput:
    """The output of one call that is not logged yet: `text`, newest `fraction` and `message`.

    `printed`: the text on stdout so far, for the model. `logged_at`: when output was logged last.
    """

    def __init__(self, new_filter: Callable[[], Redactor]) -> None:
        self._stdout, self._other = _OutputStream(new_filter()), _OutputStream(new_filter())
        self.printed = Collector(LONGEST_PRINTED)
        self.text: list[str] = []
        self.fraction: float | None = None
        self.message = ""
        self.logged_at = 0.0

    def add(self, text: str, *, printed: bool) -> None:
        """Add output text; `printed`: to stdout."""
        stream = self._stdout if printed else self._other
        self._add_filtered(stream, stream.filter.feed(text))

    def filter_data(self, data: Any) -> Any:
        """Return progress data with its text filtered like output.

        One filter reads both, because a key may be split over data and output.
        """
        text = meaning(data).text if isinstance(data, dict) else ""
        return {**data, "content": self._other.filter.feed(text)} if text else data

    def end(self) -> None:
        """Add the text that the filters and consoles still hold back."""
        for stream in (self._stdout, self._other):
            self._add_filtered(stream, stream.filter.close())
            self.text.append(stream.console.close())

    @property
    def pending(self) -> bool:
        """Whether output waits to be logged."""
        return bool(self.text or self.message) or self.fraction is not None

    def set_newest(self, fraction: float | None, message: str) -> None:
        """Set the newest fraction (None: unchanged) and message ("": unchanged)."""
        self.fraction = self.fraction if fraction is None else fraction
        self.message = message or self.message

    def take_pending(self, now: float, *, whole: bool) -> tuple[str, float | None, str]:
        """Return text, fraction and message to log; an unfinished line only if `whole`."""
        text, fraction, message = "".join(self.text), self.fraction, self.message
        for stream in (self._stdout, self._other):
            text += stream.console.open(whole=whole)
            status_fraction, status = stream.take_new_status()
            fraction = status_fraction if fraction is None else fraction
            message = message or status
        self.text, self.fraction, self.message, self.logged_at = [], None, "", now
        return text, fraction, message

    def _add_filtered(self, stream: _OutputStream, text: str) -> None:
        """Add redacted text as a terminal would show it."""
        if stream is self._stdout:
            self.printed.add(text)
        if lines := stream.console.feed(text):
            self.text.append(lines)


class Batch:
    """One running batch, as a `tools.Report` that writes the log.

    `ended`: the outcomes so far, by call id. `add_usage` is called with the usage of sub-agents.
    `find_stop_cause` returns why the run was stopped. `clock`: seconds.
    """

    def __init__(
        self,
        log: EventLog,
        calls: Sequence[events.Call],
        redaction: Redaction,
        add_usage: Callable[[events.Counts], None] = lambda _: None,
        *,
        find_stop_cause: Callable[[], Cancelled] = Cancelled,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.ended: dict[str, Outcome] = {}
        self._log = log
        self._calls = {c.call_id: c for c in calls}
        self._order = [c.call_id for c in calls]
        self._redaction = redaction
        self._add_usage = add_usage
        self._find_stop_cause = find_stop_cause
        self._clock = clock
        self._outputs: dict[str, _CallOutput] = {}
        self._pictures: dict[str, list[dict[str, Any]]] = {}  # announced ones, by call id
        self._logged = 0  # results in the log
        self._announcements = 0  # of pictures

    def approval(self, call_id: str, **fields: Any) -> None:
        """Log a question or its answer."""
        for name in ("args", "extra", "reason"):  # a user may have written the reason
            if fields.get(name) is not None:
                fields[name] = self._redaction.value(clean_value(fields[name]))
        origin = "user" if fields.get("by") in ("click", "stdin") else "runtime"
        fields |= {"origin": origin, **self._locate_call(call_id)}
        self._log.append(events.Approval(call_id=call_id, **fields))

    def started(self, call_id: str) -> None:
        """Log that a tool began."""
        name, fields = self._calls[call_id].name, self._locate_call(call_id)
        self._log.append(events.Started(call_id=call_id, name=name, origin="tool", **fields))

    def update(self, call_id: str, update: Update) -> None:
        """Take progress of a running tool; it is logged now or with the next `flush`."""
        if call_id in self.ended:
            return
        if update.picture is not None:
            self._announce_picture(call_id, *update.picture)
            return
        output = self._outputs.get(call_id) or self._outputs.setdefault(
            call_id, _CallOutput(self._redaction.stream)
        )
        message = self._redaction.value(replace_surrogates(update.message))
        if update.data is not None:
            self._log_output(call_id, output, whole=True)
            data = self._redaction.value(output.filter_data(clean_value(update.data)))
            self._log_progress(call_id, data=data, message=message)
            return
        if update.text:
            output.add(replace_surrogates(update.text), printed=update.printed)
        output.set_newest(update.fraction, message)
        if output.pending and self._is_due(output):
            self._log_output(call_id, output)

    def _announce_picture(self, call_id: str, index: int, picture: dict[str, Any] | None) -> None:
        """Announce a picture of a running call; the result has it even if the call is stopped.

        `picture` None removes the earlier pictures of the call (`tools.Update`).
        """
        self._announcements += 1
        clean = next(recorded_pictures([picture], self._redaction.value), None)
        pictures = self._pictures.get(call_id, [])
        replaced = [*pictures[:index], clean, *pictures[index + 1 :]] if clean else []
        self._pictures[call_id] = replaced
        text = msgspec.json.encode((index, clean)).decode()
        # a name of its own keeps a view from joining this delta with the one before
        self._log_delta(call_id, "picture", text, name=str(self._announcements))

    def relay(self, call_id: str, event: Any) -> None:
        """Log an event of a sub-agent below the call and count its usage."""
        self._log.append(event)
        if isinstance(event, events.Metric):
            self._add_usage(event.step)

    def flush(self) -> None:
        """Log pending output; called `LOGS_PER_SECOND` times a second while the batch runs."""
        for call_id, output in self._outputs.items():
            if call_id not in self.ended and self._is_due(output):
                self._log_output(call_id, output)

    def _is_due(self, output: _CallOutput) -> bool:
        return self._clock() - output.logged_at >= 1 / LOGS_PER_SECOND

    def end(self, call_id: str, outcome: Outcome) -> None:
        """Log the result of a call, as soon as all calls before it have theirs."""
        if call_id in self.ended:
            return
        if (output := self._outputs.get(call_id)) is not None:
            output.end()
            self._log_output(call_id, output)
        self.ended[call_id] = self._name_limit(outcome)
        # an earlier call has no result yet: a view learns now that this call has ended
        if self._order[self._logged] != call_id:
            self._log_delta(call_id, "result", outcome.status)
        while self._logged < len(self._order) and self._order[self._logged] in self.ended:
            self._log_result(self._order[self._logged])
            self._logged += 1

    def _name_limit(self, outcome: Outcome) -> Outcome:
        """Return the outcome; of a call that a limit stopped, its content names the limit."""
        if outcome.status == "cancelled" and outcome.content == Outcome.STOPPED:
            cause = self._find_stop_cause()
            if cause.reason != "user" and cause.detail:
                content = f"{cause.detail[0].upper()}{cause.detail[1:]}, before it was done."
                return msgspec.structs.replace(outcome, content=content)
        return outcome

    def end_all(self, outcome: Outcome) -> None:
        """End every call that has not ended."""
        for call_id in self._order:
            self.end(call_id, outcome)

    def _log_result(self, call_id: str) -> None:
        """Log the result of a call that has ended, with what it printed."""
        outcome, output = self.ended[call_id], self._outputs.get(call_id)
        redact = self._redaction.value
        printed = output.printed.text if output is not None else ""
        printed = printed or redact(replace_surrogates(outcome.printed))
        self._log.append(
            events.Result(
                call_id=call_id,
                name=self._calls[call_id].name,
                status=outcome.status,
                duration=round(outcome.duration, 3),
                content=redact(clean_value(outcome.content)),
                display=redact(clean_value(outcome.display)) if outcome.display else None,
                attachments=self._choose_attachments(call_id, outcome),
                extra={events.PRINTED: printed} if printed.strip() else None,
                origin="tool",
                **self._locate_call(call_id),
            )
        )

    def _choose_attachments(self, call_id: str, outcome: Outcome) -> tuple[dict[str, Any], ...]:
        pictures = tuple(recorded_pictures(outcome.attachments, self._redaction.value))
        stopped = outcome.status in ("cancelled", "timeout")
        return pictures or tuple(self._pictures.get(call_id, ()) if stopped else ())

    def _log_output(self, call_id: str, output: _CallOutput, *, whole: bool = False) -> None:
        text, fraction, message = output.take_pending(self._clock(), whole=whole)
        for start in range(0, len(text), LONGEST_PROGRESS):
            self._log_progress(call_id, text=text[start : start + LONGEST_PROGRESS])
        if fraction is not None or message:
            self._log_progress(call_id, fraction=fraction, message=message)

    def _log_delta(self, call_id: str, of: str, text: str, name: str = "") -> None:
        fields = {"name": name, "origin": "tool", **self._locate_call(call_id)}
        self._log.append(events.Delta(block=call_id, of=of, text=text, **fields))

    def _log_progress(self, call_id: str, **fields: Any) -> None:
        fields |= {"origin": "tool", **self._locate_call(call_id)}
        self._log.append(events.Progress(call_id=call_id, **fields))

    def _locate_call(self, call_id: str) -> dict[str, Any]:
        call = self._calls[call_id]
        return {"turn": call.turn, "span": call.span, "parent": call.parent}
