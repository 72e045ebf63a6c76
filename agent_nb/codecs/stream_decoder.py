"""The decoder of most codecs: it unframes bytes and passes each object to the format's reader.

Rule: an item that is not an object, or nests too deeply, is counted as a loss and skipped, so that
a reader sees only JSON objects.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..events import Event
from ..wire import dumps, nearest_json
from .contract import Reader
from .framing import Item, Unframer
from .losses import Losses

NOT_AN_OBJECT = "it is not a JSON object"
TOO_DEEP = "its values are nested too deeply"
_NOT_JSON = "it is not a JSON value; the nearest one took its place"
_FRAME_ID = "the format has no ids of frames; a server numbers its own"
_FRAME_NAME = "the format has no names of frames; the kind is in the data"


class StreamDecoder:
    """Decodes one stream. `framed`: the format uses the name and id of an SSE frame."""

    def __init__(self, reader: Reader, losses: Losses, *, framed: bool) -> None:
        self.losses = losses
        self._unframer = Unframer(losses)
        self._reader = reader
        self._framed = framed

    def feed(self, data: bytes | str) -> list[Event]:
        """Return the events that `data` completes."""
        return self._read(self._unframer.feed(data))

    def read(self, obj: Any) -> list[Event]:
        """Return the events of one parsed object."""
        return self._read(accept_object(obj, self.losses))

    def tick(self, now: float) -> list[Event]:
        """Return the events that the reader held back long enough at `now` (monotonic s)."""
        tick = getattr(self._reader, "tick", None)
        return tick(now) if tick is not None else []

    def close(self) -> list[Event]:
        """End the stream: return the events that were held back."""
        return [*self._read(self._unframer.close()), *self._reader.close()]

    def _read(self, items: Iterable[Item]) -> list[Event]:
        """Return the events of items; count those that are not objects or nest too deeply."""
        out: list[Event] = []
        for item in items:
            if not isinstance(item.obj, dict):
                self.losses.add("malformed line", NOT_AN_OBJECT, raw=dumps(item.obj))
                continue
            if not self._framed:
                self._count_frame(item)
            try:
                out += self._reader.read(item)
            except RecursionError:
                self.losses.add("malformed line", TOO_DEEP)
        return out

    def _count_frame(self, item: Item) -> None:
        """Count a frame's name and id as lost.

        An id, and a name that the object repeats, are details: losses without consequence.
        """
        # `message` is the name that SSE gives to a frame without one
        if item.event not in ("", "message"):
            is_named = item.event in (item.obj.get("type"), item.obj.get("kind"))
            self.losses.add("frame name", _FRAME_NAME, detail=is_named)
        if item.id is not None:
            self.losses.add("frame id", _FRAME_ID, detail=True)


def accept_object(obj: Any, losses: Losses) -> list[Item]:
    """Return an object that a program passed, as one item; none if it is nested too deeply.

    Both this and a value in it that is not JSON count as a loss.
    """
    value, changed = nearest_json(obj)
    if changed and value is None:
        losses.add("malformed line", TOO_DEEP)
        return []
    if changed:
        losses.add("value that is not JSON", _NOT_JSON)
    return [Item(value)]
