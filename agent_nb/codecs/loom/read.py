"""Read Loom's frames: unwrap each, find its session, and read the frames of a session in order.

Why: one stream may carry several sessions, each with its own numbers, in several forms.

Rules
- Sessions may interleave.
- Beyond `_REMEMBERED` sessions, the oldest ended ones are forgotten.
- Of the newest `_COUNTED` forgotten sessions the number of runs is kept, so that no run id repeats.
"""

from __future__ import annotations

from collections import OrderedDict

from ...events import Event
from ..foreign_values import text_of
from ..framing import Item
from ..losses import Losses
from ..passthrough import guard_names
from .export import from_export, is_export
from .lines import Obj
from .order import FrameOrder
from .session import Session

_REMEMBERED = 256  # sessions
_COUNTED = 4096  # forgotten sessions
#: Fields of the reply that stand next to it if one object holds the whole run.
_REPLY_FIELDS = ("stop_reason", "reasoning_content", "usage", "total_usage")


class LoomReader:
    """Reads any number of sessions."""

    def __init__(self, losses: Losses) -> None:
        self._losses = losses
        self._sessions: dict[str, tuple[FrameOrder, Session]] = {}
        # forgotten session -> how many runs it had
        self._run_counts: OrderedDict[str, int] = OrderedDict()
        self._newest = ""  # the session of the newest frame

    def read(self, item: Item) -> list[Event]:
        """Return the events of one object, and of frames that waited for it."""
        out: list[Event] = []
        for frame in _split_frames(item.obj):
            order, session = self._find_session(text_of(frame, "session_id"))
            for due in order.take(frame):
                out += session.read(due)
        return out

    def tick(self, now: float) -> list[Event]:
        """Return the events of frames that have waited long enough at `now` (s)."""
        out: list[Event] = []
        for order, session in self._sessions.values():
            for due in order.tick(now):
                out += session.read(due)
        return out

    def _find_session(self, session_id: str) -> tuple[FrameOrder, Session]:
        """Return the order and the reader of a session; "" means the session of the last frame."""
        key = self._newest = session_id or self._newest
        if key not in self._sessions:
            self._sessions[key] = self._begin_session(key)
        return self._sessions[key]

    def _begin_session(self, key: str) -> tuple[FrameOrder, Session]:
        """Return a new order and reader, or those of the open session without a name.

        Frames before any session was named belong to the first one named.
        """
        unnamed = self._sessions.get("")
        if unnamed is not None and (unnamed[0].waits or unnamed[1].is_running):
            return self._sessions.pop("")
        self._forget_sessions()
        return FrameOrder(self._losses), Session(self._run_counts.pop(key, 0))

    def _forget_sessions(self) -> None:
        """Forget the oldest ended sessions, but not yet their number of runs, which ids need."""
        if len(self._sessions) < _REMEMBERED:
            return
        ended = [
            key
            for key, (order, session) in self._sessions.items()
            if not order.waits and not session.is_running
        ]
        # down to half at once, since each search visits every session
        for key in ended[: len(self._sessions) - _REMEMBERED // 2]:
            self._run_counts[key] = self._sessions.pop(key)[1].runs
            if len(self._run_counts) > _COUNTED:
                self._run_counts.popitem(last=False)

    def close(self) -> list[Event]:
        """Return the events of all waiting frames, and close every session."""
        out: list[Event] = []
        for order, session in self._sessions.values():
            for due in order.flush():
                out += session.read(due)
            out += session.close()
        return out


def _split_frames(obj: Obj) -> list[Obj]:
    """Return the frames in one object of the wire."""
    wrapped = obj.get("event")
    if (
        obj.get("type") == "run_stream_event"
        and isinstance(wrapped, dict)
        and wrapped.get("type") != "run_stream_event"  # a frame has one mark `#ws`
    ):
        # `#ws` keeps the other fields of the message around the frame, for the writer
        fields = {k: v for k, v in obj.items() if k not in ("type", "event")}
        return [{**frame, "#ws": fields} for frame in _split_frames(wrapped)]
    if is_export(obj):
        return [from_export(obj)]
    if is_whole_run(obj):
        return _split_run(obj)
    return [guard_names(obj)]


def is_whole_run(obj: Obj) -> bool:
    """Return whether an object holds a whole run, and only fields that its frames can hold."""
    events, reply = obj.get("events"), obj.get("reply", "")
    has_events = isinstance(events, list) and all(isinstance(e, dict) for e in events)
    return (
        has_events
        and isinstance(reply, dict | str)
        and obj.keys() <= {"events", "reply", "session_id", *_REPLY_FIELDS}
    )


def _split_run(obj: Obj) -> list[Obj]:
    """Return the frames of a whole run in one object: its events and its reply."""
    frames = [f for e in obj["events"] for f in _split_frames(e)]
    if "reply" in obj:
        reply = obj["reply"] if isinstance(obj["reply"], dict) else {"reply": obj["reply"]}
        frames.append({**reply, **{k: obj[k] for k in _REPLY_FIELDS if k in obj}})
    session = {"session_id": obj["session_id"]} if isinstance(obj.get("session_id"), str) else {}
    return [{**session, **f} for f in frames]
