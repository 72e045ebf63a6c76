"""Reads the items of one stream in any format, for `decode`, `convert` and `watch` alike.

An item is what a caller feeds, a piece what a decoder takes: bytes, an object or an event.

Rules
- Without a named format, the first pieces are held until they show it.
- A piece that is an event is not decoded. A stream without a named format that begins with an event
  is canonical.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import UsageError
from ..events import Event, Settler
from ..wire import dumps, nearest_json
from .base import Codec
from .coerce import ItemCoercer, Piece, suggest_adapter
from .contract import Decoder
from .detect import Detector, detect, load_codec
from .losses import Losses

_CANONICAL = "canonical"


class ForeignStream:
    """Reads one stream: feed items, get events.

    `codec`: the name of the format; None detects it. `strict`: a loss raises WireError. Raises
    UsageError if the codec is unknown.
    """

    def __init__(self, codec: str | None = None, *, strict: bool = False) -> None:
        self.codec: Codec | None = load_codec(codec) if codec is not None else None
        self._strict = strict
        self._decoder: Decoder | None = None
        self._coercer = ItemCoercer()
        self._held: list[Piece] = []  # until the format is known
        self._detector = Detector()
        self._item_type: type | None = None  # the type of the first item, for hints

    @property
    def losses(self) -> Losses:
        """The losses of reading so far."""
        return self._decoder.losses if self._decoder is not None else Losses()

    def require_codec(self) -> Codec:
        """Return the codec, once the stream has ended. Raises UsageError if no format is likely."""
        return self.codec or self._detect()

    def new_settler(self) -> Settler:
        """Return an object that adds the missing ends of runs. Raises as `require_codec`."""
        codec = self.require_codec()
        return Settler(codec.name, interleaves=codec.interleaves, may_lack_end=codec.may_lack_end)

    def feed(self, item: Any) -> list[Event]:
        """Return the events that an item completes.

        Raises UsageError if the item or its format is unknown, WireError if strict.
        """
        self._item_type = self._item_type or type(item)
        return [event for piece in self._coercer.feed(item) for event in self._feed_piece(piece)]

    def tick(self, now: float) -> list[Event]:
        """Return the events held back long enough at `now` (s, of a monotonic clock)."""
        return self._decoder.tick(now) if self._decoder is not None else []

    def close(self) -> list[Event]:
        """End the stream: return the events held back. Raises as `feed`."""
        out = [event for piece in self._coercer.close() for event in self._feed_piece(piece)]
        # a stream of blank text is empty: its format need not be clear
        if self._held and (self.codec is not None or self._detector.head.strip()):
            out += self._begin_reading()
        return [*out, *self._decoder.close()] if self._decoder is not None else out

    def _feed_piece(self, piece: Piece) -> list[Event]:
        if self._decoder is not None:
            return _read_piece(self._decoder, piece)
        self._held.append(piece)
        is_format_known = self.codec is not None or isinstance(piece, Event)
        is_ready = is_format_known or self._detector.feed(_as_bytes(piece))
        if not (is_format_known or self._detector.head):  # comments alone: a server that waits
            self._held = []
        return self._begin_reading() if is_ready else []

    def _begin_reading(self) -> list[Event]:
        """Make the decoder, of the format that the held pieces show; return their events."""
        pieces, self._held = self._held, []
        if self.codec is None:
            self.codec = load_codec(_CANONICAL) if isinstance(pieces[0], Event) else self._detect()
        decoder = self._decoder = self.codec.decoder(strict=self._strict)
        return [event for piece in pieces for event in _read_piece(decoder, piece)]

    def _detect(self) -> Codec:
        try:
            return detect(self._detector.head)
        except UsageError as fault:
            raise UsageError(f"{fault} {suggest_adapter(self._item_type)}".rstrip()) from fault


def _read_piece(decoder: Decoder, piece: Piece) -> list[Event]:
    if isinstance(piece, Event):
        return [piece]
    return decoder.read(piece) if isinstance(piece, Mapping) else decoder.feed(piece)


def _as_bytes(piece: Any) -> bytes:
    """Return a piece as bytes for the detector: an object becomes a JSON line."""
    return piece if isinstance(piece, bytes) else dumps(nearest_json(piece)[0]).encode() + b"\n"
