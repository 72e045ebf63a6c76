"""Reads Loom's frames: unwraps each, finds its session, and reads the frames of a session in order.

One stream may carry several sessions, each with its own numbers, in several forms.

Rule: at `_MOST_SESSIONS` sessions, the oldest ended ones are forgotten, down to half of that
number. The number of runs is remembered of `_MOST_COUNTS` of them, so that no run id repeats.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

from ...events import Event
from ..foreign_values import text_of
from ..framing import Item
from ..losses import Losses
from ..passthrough import guard_names
from .export import from_export, is_export
from .lines import Obj
from .order import FrameOrder
from .session import Session

_MOST_SESSIONS = 256
_MOST_COUNTS = 4096  # of runs, one for each forgotten session
#: Fields of the reply that stand next to it if one object holds the whole run.
_REPLY_FIELDS = ("stop_reason", "reasoning_content", "usage", "total_usage")


class _OrderedSession(NamedTuple):
    """A session, and the order in which it reads its frames."""

    order: FrameOrder
    session: Session

    def read(self, frames: list[Obj]) -> list[Event]:
        """Return the events of frames that are due."""
        return [event for frame in frames for event in self.session.read(frame)]

    @property
    def is_open(self) -> bool:
        """Whether a run has not ended, or frames wait for those before them."""
        return self.order.waits or self.session.is_running


class LoomReader:
    """Reads any number of sessions."""

    def __init__(self, losses: Losses) -> None:
        self._losses = losses
        self._sessions: dict[str, _OrderedSession] = {}
        # forgotten session -> how many runs it had
        self._run_counts: OrderedDict[str, int] = OrderedDict()
        self._newest = ""  # the session of the newest frame

    def read(self, item: Item) -> list[Event]:
        """Return the events of one object, and of frames that waited for it."""
        out: list[Event] = []
        for frame in _split_frames(item.obj):
            ordered = self._find_session(text_of(frame, "session_id"))
            out += ordered.read(ordered.order.accept_frame(frame))
        return out

    def tick(self, now: float) -> list[Event]:
        """Return the events of frames that have waited long enough at `now` (s)."""
        sessions = self._sessions.values()
        return [event for each in sessions for event in each.read(each.order.tick(now))]

    def _find_session(self, session_id: str) -> _OrderedSession:
        """Return the session with this id; "" means the session of the last frame."""
        key = self._newest = session_id or self._newest
        if key not in self._sessions:
            self._sessions[key] = self._begin_session(key)
        return self._sessions[key]

    def _begin_session(self, key: str) -> _OrderedSession:
        """Return a new session, or the open one without a name.

        Frames before any session was named belong to the first one named.
        """
        unnamed = self._sessions.get("")
        if unnamed is not None and unnamed.is_open:
            return self._sessions.pop("")
        self._forget_sessions()
        return _OrderedSession(FrameOrder(self._losses), Session(self._run_counts.pop(key, 0)))

    def _forget_sessions(self) -> None:
        """Forget the oldest ended sessions, but not yet their number of runs, which ids need."""
        if len(self._sessions) < _MOST_SESSIONS:
            return
        ended = [key for key, ordered in self._sessions.items() if not ordered.is_open]
        # down to half at once, since each search visits every session
        for key in ended[: len(self._sessions) - _MOST_SESSIONS // 2]:
            self._run_counts[key] = self._sessions.pop(key).session.runs
            if len(self._run_counts) > _MOST_COUNTS:
                self._run_counts.popitem(last=False)

    def close(self) -> list[Event]:
        """Return the events of all waiting frames, and close every session."""
        out: list[Event] = []
        for ordered in self._sessions.values():
            out += ordered.read(ordered.order.flush()) + ordered.session.close()
        return out


def _split_frames(obj: Obj) -> list[Obj]:
    """Return the frames in one object of the wire; `#ws` marks what stood around a frame."""
    wrapped = obj.get("event")
    if (
        obj.get("type") == "run_stream_event"
        and isinstance(wrapped, dict)
        and wrapped.get("type") != "run_stream_event"  # a frame has one mark
    ):
        # the other fields of the message around the frame, for the writer
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
    known = {"events", "reply", "session_id", *_REPLY_FIELDS}
    return has_events and isinstance(reply, dict | str) and obj.keys() <= known


def _split_run(obj: Obj) -> list[Obj]:
    """Return the frames of a whole run in one object: its events and its reply."""
    frames = [f for e in obj["events"] for f in _split_frames(e)]
    if "reply" in obj:
        reply = obj["reply"] if isinstance(obj["reply"], dict) else {"reply": obj["reply"]}
        frames.append({**reply, **{k: obj[k] for k in _REPLY_FIELDS if k in obj}})
    session = {"session_id": obj["session_id"]} if isinstance(obj.get("session_id"), str) else {}
    return [{**session, **f} for f in frames]  # a frame's own session is the more exact one
