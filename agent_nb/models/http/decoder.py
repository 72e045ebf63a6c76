"""The base of all decoders: splits a body into frames, and closes an answer that breaks off.

Rules
- `feed` and `close` never raise. An answer has at most one Fault part, after everything held back.
- `close` before the proper end closes open blocks as incomplete and adds a Fault `cut`.
- After the reason to finish an answer is `complete`: usage and errors are still read, but
  unreadable frames and a cut are not faults.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from ...wire import Frame, lenient_loads
from ..parts import Fault, Part
from . import overflow
from .body import Body
from .errors import blot_out_secrets, error_kind, error_object, find_message, make_garbage_fault
from .values import is_temporary, to_json, to_text

CUT = "The stream broke off before the answer was complete."
CALL_CUT = "The call was cut off at the limit of tokens."


class FrameDecoder(ABC):
    """Decodes one response from its frames; `status` is its HTTP status.

    `done`: the answer has ended, further bytes are discarded; `failed`: its one fault was emitted.
    Subclasses implement `_read_frame` (or the table `events`), `_finish` and `_release`; methods
    append parts to `out`.
    """

    def __init__(self, status: int = 200) -> None:
        self.done = False
        self.failed = False
        self._status = status
        self._body = Body()

    def feed(self, data: bytes) -> Sequence[Part]:
        """Return the parts that `data` completes."""
        return [] if self.done else self._read_frames(self._body.feed(data))

    def close(self) -> Sequence[Part]:
        """End the body: return what was held back or open, with a Fault if it broke off."""
        out = [] if self.done else self._read_frames(self._body.close())
        self._finish(out)
        # without effect if the answer is complete or has failed
        self._report_unreadable(Fault("cut", CUT, retryable=True), out)
        return out

    @property
    def complete(self) -> bool:
        """Whether the whole answer has come; decoders with a reason to finish override this."""
        return self.done

    def _read_frames(self, frames: Sequence[Frame]) -> list[Part]:
        out: list[Part] = []
        for frame in frames:
            self._read_frame(frame, out)
            if self.done:
                return out
        if self._body.fault is not None:
            self._report_unreadable(self._body.fault, out)
        return out

    @abstractmethod
    def _read_frame(self, frame: Frame, out: list[Part]) -> None:
        """Read one frame."""

    @abstractmethod
    def _finish(self, out: list[Part]) -> None:
        """Close what is open."""

    def _release(self, out: list[Part]) -> None:  # noqa: B027  (most hold nothing back)
        """Emit what was held back, before a fault."""

    def _report_error(self, error: Any, out: list[Part]) -> None:
        """Fail with an error that the server reported within the stream."""
        message = find_message(error) or "The server reported an error and did not say which."
        raw = error if isinstance(error, str) else to_json(error)
        code, retryable = "provider", is_temporary(error)
        if overflow.is_too_long(f"{message} {error_kind(error)}"):
            code, retryable = overflow.CODE, False
            message = f"{message.rstrip('.')}. {overflow.HINT}"
        message, raw = blot_out_secrets(message), blot_out_secrets(raw)
        self._fail(Fault(code, message, raw=raw, retryable=retryable), out)

    def _load_json(self, frame: Frame, out: list[Part]) -> Any:
        """Return the JSON value of a frame.

        Fail and return None if its data is not JSON, or is the words of a frame named `error`.
        """
        try:
            value = lenient_loads(frame.data)
        except ValueError:
            if frame.event != "error":
                self._report_unreadable(make_garbage_fault(frame.data), out)
                return None
            value = frame.data
        if frame.event == "error" and not isinstance(value, dict):
            self._report_error(error_object(value) or value, out)
            return None
        return value

    def _report_unreadable(self, fault: Fault, out: list[Part]) -> None:
        """Fail for unreadable or missing data, unless the answer is complete without it."""
        if not self.complete:
            self._fail(fault, out)

    def _fail(self, fault: Fault, out: list[Part]) -> None:
        if not self.failed:
            self.failed = True
            self._release(out)
            out.append(fault)


class EventDecoder(FrameDecoder):
    """Decodes frames that are JSON objects with a `type`; `events` maps each type to its reader."""

    events: ClassVar[Mapping[str, Callable[[Any, dict[str, Any], list[Part]], None]]] = {}

    def _read_frame(self, frame: Frame, out: list[Part]) -> None:
        if frame.data.strip() == "[DONE]":
            self.done = True
            return
        event = self._load_json(frame, out)
        if isinstance(event, dict):
            event_type = to_text(event.get("type")) or frame.event
            self._read_event(event_type, event, out, failed=frame.event == "error")

    def _read_event(
        self, event_type: str, event: dict[str, Any], out: list[Part], *, failed: bool
    ) -> None:
        handler = self.events.get(event_type)
        if handler is not None:
            handler(self, event, out)
        elif event_type == "error" or failed or error_object(event):
            self._report_error(error_object(event) or event, out)
        else:
            self._read_unknown(event_type, event, out)

    @abstractmethod
    def _read_unknown(self, event_type: str, event: dict[str, Any], out: list[Part]) -> None:
        """Read an event of a type missing in the table."""
