"""Read Loom's frames: part them into sessions, unwrap them, order them."""

from __future__ import annotations

from ...events import Event
from ..foreign_values import text_of
from ..framing import Item
from ..losses import Losses
from .export import from_export, is_export
from .lines import Obj
from .order import Order
from .session import Session

_REMEMBERED = 256  # sessions
#: Fields of a reply that stand beside it where a run is printed as one object.
_BESIDE = ("stop_reason", "reasoning_content", "usage", "total_usage")


class LoomReader:
    """Any number of sessions."""

    def __init__(self, losses: Losses) -> None:
        self._losses = losses
        self._sessions: dict[str, tuple[Order, Session]] = {}
        self._past: dict[str, int] = {}
        self._newest = ""

    def read(self, item: Item) -> list[Event]:
        """Return the events of one object, and of those that waited for it."""
        out: list[Event] = []
        for frame in _frames(item.obj):
            order, session = self._session(text_of(frame, "session_id"))
            for due in order.take(frame):
                out += session.read(due)
        return out

    def tick(self, now: float) -> list[Event]:
        """Return the events of frames that have waited long enough at `now` (s)."""
        waiting = [(order, session) for order, session in self._sessions.values() if order.waits]
        return [
            event
            for order, session in waiting
            for due in order.tick(now)
            for event in session.read(due)
        ]

    def _session(self, named: str) -> tuple[Order, Session]:
        """Return the session of a frame, which names `named`, or none."""
        key = named or self._newest
        if key not in self._sessions:
            nameless = self._sessions.get("")
            if nameless is not None and (nameless[0].waits or nameless[1].going_on):
                self._sessions[key] = self._sessions.pop("")
            else:
                self._forget()
                self._sessions[key] = (
                    Order(self._losses),
                    Session(self._past.pop(key, 0)),
                )
        self._newest = key
        return self._sessions[key]

    def _forget(self) -> None:
        """Forget the oldest sessions that are over, but not how many runs they had: ids go on."""
        if len(self._sessions) < _REMEMBERED:
            return
        over = [
            key
            for key, (order, session) in self._sessions.items()
            if not order.waits and not session.going_on
        ]
        for key in over[: len(self._sessions) - _REMEMBERED // 2]:
            self._past[key] = self._sessions.pop(key)[1].runs

    def close(self) -> list[Event]:
        """Return what waited, and close what is open."""
        out: list[Event] = []
        for order, session in self._sessions.values():
            for due in order.flush():
                out += session.read(due)
            out += session.close()
        return out


def _frames(obj: Obj) -> list[Obj]:
    """Return the frames in one object of the wire."""
    if obj.get("type") == "run_stream_event" and isinstance(obj.get("event"), dict):
        return [
            {**inner, "#ws": {k: v for k, v in obj.items() if k not in ("type", "event")}}
            for inner in _frames(obj["event"])
        ]
    if is_export(obj):
        return [from_export(obj)]
    if is_whole(obj):
        return _whole(obj)
    return [obj]


def is_whole(obj: Obj) -> bool:
    """Return whether an object is a whole run, all of which frames can hold."""
    events, reply = obj.get("events"), obj.get("reply", "")
    listed = isinstance(events, list) and all(isinstance(e, dict) for e in events)
    return (
        listed
        and isinstance(reply, dict | str)
        and obj.keys() <= {"events", "reply", "session_id", *_BESIDE}
    )


def _whole(obj: Obj) -> list[Obj]:
    frames = [f for e in obj["events"] for f in _frames(e)]
    if "reply" in obj:
        reply = obj["reply"] if isinstance(obj["reply"], dict) else {"reply": obj["reply"]}
        frames.append({**reply, **{k: obj[k] for k in _BESIDE if k in obj}})
    session = {"session_id": obj["session_id"]} if isinstance(obj.get("session_id"), str) else {}
    return [{**session, **f} for f in frames]
