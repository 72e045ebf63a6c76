"""The events themselves, one JSON object a line (or SSE frame): the format of records and journals.

Our server sends this format too. The encoder writes live deltas as well; files hold none, because
complete events hold them as `chunks`. Every recorded run passes through this codec, so its own
decoder takes a whole block of lines in one call. If any line of the block is not exactly one event,
it reads the block again line by line.

Rule: a line of more than `LINE_LIMIT` bytes that comes in pieces is skipped, and is one loss.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import msgspec

from ..events import TYPES, AnyEvent, Event, Unknown, decode_event, encode_event, event_from
from ..wire import dumps, loads
from .base import Codec
from .contract import Options
from .framing import Framing, Item, Unframer, frame_sse
from .lines import LINE_LIMIT, LineDecoder
from .losses import Losses
from .stream_decoder import NOT_AN_OBJECT, accept_object

_decoder: msgspec.json.Decoder[AnyEvent] = msgspec.json.Decoder(AnyEvent)
_encode = msgspec.json.Encoder().encode
# fields that other formats with our types do not have
_ENVELOPE = frozenset({"seq", "ts", "run", "origin"})


class CanonicalDecoder:
    """Decodes one stream of events. NDJSON that begins with `{` is decoded in blocks."""

    def __init__(self, strict: bool = False) -> None:
        self.losses = Losses(strict=strict)
        self._unframer: Unframer | None = None  # for a stream that does not begin with `{`
        self._begun = False
        reason = f"it is larger than {LINE_LIMIT} bytes"
        self._lines = LineDecoder(
            lambda _: self.losses.add("malformed line", reason), limit=LINE_LIMIT
        )

    def feed(self, data: bytes | str) -> list[Event]:
        """Return the events that `data` completes."""
        chunk = data.encode("utf-8", "replace") if isinstance(data, str) else data
        if chunk and not self._begun:
            self._begun = True
            if not chunk.startswith(b"{"):
                self._unframer = Unframer(self.losses)
        if self._unframer is not None:
            return self._convert_items(self._unframer.feed(chunk))
        block = self._lines.take_block(chunk)
        return self._decode_block(block) if block else []

    def read(self, obj: Any) -> list[Event]:
        """Return the event of a decoded object."""
        return self._convert_items(accept_object(obj, self.losses))

    def tick(self, now: float) -> list[Event]:
        """Return nothing: no event waits for another."""
        return []

    def close(self) -> list[Event]:
        """Return the events of a last line that lacks its newline."""
        if self._unframer is not None:
            return self._convert_items(self._unframer.close())
        last_line = self._lines.take_rest()
        return self._decode_block(last_line) if last_line.strip() else []

    def _decode_block(self, block: bytes) -> list[Event]:
        """Return the events of whole lines, all at once if each is exactly one canonical event."""
        try:
            events: list[Event] = list(_decoder.decode_lines(block))
        except (ValueError, RecursionError):
            return self._decode_each_line(block)
        # msgspec ignores line breaks between and inside values: each line holds exactly one object
        # if every line break stands between two objects and there are as many events as lines
        lines = block.count(b"\n") + (not block.endswith(b"\n"))
        whole_lines = len(events) == lines == block.count(b"}\n{") + 1
        return events if whole_lines else self._decode_each_line(block)

    def _decode_each_line(self, block: bytes) -> list[Event]:
        """Return the events of whole lines, one by one; count those that are not JSON objects."""
        out: list[Event] = []
        for line in block.split(b"\n"):
            if not line.strip():
                continue
            try:
                out.append(decode_event(line))
            except (ValueError, RecursionError) as fault:
                raw = line.decode("utf-8", "replace")
                self.losses.add("malformed line", f"{NOT_AN_OBJECT} ({fault})", raw=raw)
        return out

    def _convert_items(self, items: list[Item]) -> list[Event]:
        out: list[Event] = []
        for item in items:
            if isinstance(item.obj, dict):
                out.append(event_from(item.obj))
            else:
                self.losses.add("malformed line", NOT_AN_OBJECT, raw=dumps(item.obj))
        return out


def _encode_line(event: Event) -> list[str]:
    if event.extra is None and type(event) is not Unknown:
        with suppress(UnicodeEncodeError):  # a lone surrogate, which `encode_event` replaces
            return [_encode(event).decode()]
    return [encode_event(event).decode()]


class CanonicalEncoder:
    """Encodes one stream of events."""

    def __init__(self, strict: bool = False, options: Options | None = None) -> None:
        self.losses = Losses(strict=strict)
        self.framing: Framing = (options or Options()).framing
        if self.framing == "ndjson":
            self.feed = _encode_line  # type: ignore[method-assign]  # stateless, and a plain function is a fifth faster

    def feed(self, event: Event) -> list[str]:
        """Return the line or frame of one event; a frame's id is the event's `seq`."""
        number = str(event.seq) if event.seq else None
        return [frame_sse(encode_event(event).decode(), number=number)]

    def items(self, event: Event | None) -> list[Item]:
        """Return the object of one event; nothing is ever held back."""
        if event is not None:
            return [Item(loads(encode_event(event)), id=str(event.seq) if event.seq else None)]
        return []

    def close(self) -> list[str]:
        """Return nothing: nothing is held back."""
        return []


def _score(item: Item) -> float:
    """Return how likely an object is a canonical event, from 0 to 1."""
    obj = item.obj
    kind = obj.get("type")
    if not isinstance(kind, str) or kind not in TYPES:  # perhaps a kind of a newer version
        return 0.3 if obj.keys() >= {"seq", "ts", "run"} else 0.0
    if _ENVELOPE & obj.keys():
        return 1.0
    # without an envelope, another format may use the same `type`; its other fields are a hint
    return 0.3 if obj.keys() <= {"type", *TYPES[kind].__struct_fields__} else 0.1


def _refuse_build(*_: Any) -> Any:
    raise TypeError("the canonical codec has its own decoder and encoder")


codec = Codec(
    name="canonical",
    title="canonical events",
    framing="ndjson",
    reader=_refuse_build,
    writer=_refuse_build,
    score=_score,
    carries={k: frozenset(t.__struct_fields__) for k, t in TYPES.items()},
    lossy={},
    envelope=frozenset(Event.__struct_fields__),
    nests=True,
    interleaves=True,
    may_lack_end=True,  # for events written by hand; `Settler` knows our own logs by their numbers
    fast=(CanonicalDecoder, CanonicalEncoder),
)
