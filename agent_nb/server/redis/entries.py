"""Convert the entries of a run to entries of a Redis stream, and back.

Why with the ids of the run: a client may resume at any server, with the id that another one gave.

Rules
- How a large event is shortened depends on the event alone, because an event that is written again
  must have the same bytes.
- Redis may hold anything: an entry that cannot be read is None, and `mirror` reports the hole.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from ...events import Call, Error, Event, Unknown, decode_event, encode_event
from ...wire import SAFE, cut_end
from ..channel import Entry

LARGEST = 4 << 20  # bytes
_SHORT = 20_000  # characters of a clipped text
# large fields of events -> the value of an event without them
_HEAVY: dict[str, Any] = {
    "attachments": (), "display": None, "opaque": None, "data": None, "payload": None,
    "extra": None, "chunks": "",
}  # fmt: skip


def stream_id(entry: Entry) -> str:
    """Return the id of an entry in the stream of its run."""
    return f"{entry.seq}-{entry.n}"


def split_id(number: bytes | str) -> tuple[int, int]:
    """Return (seq, n) of an id that Redis gave."""
    text = number.decode() if isinstance(number, bytes) else number
    seq, _, n = text.partition("-")
    return int(seq), int(n)


def encode_entry(entry: Entry, largest: int = LARGEST) -> list[bytes]:
    """Return the fields of an entry: the event as JSON and, for a delta, the epoch."""
    data = encode_bounded(entry.event, largest)
    return [b"e", data, b"p", str(entry.epoch).encode()] if entry.n else [b"e", data]


def decode_entry(number: bytes, values: list[bytes], run: str) -> Entry | None:
    """Return the entry with id `number` and fields `values` in Redis, None if it is invalid."""
    try:
        seq, n = split_id(number)
        fields = dict(zip(values[::2], values[1::2], strict=True))
        if len(fields[b"e"]) > 4 * LARGEST:
            return None
        event = decode_event(fields[b"e"])
        epoch = int(fields.get(b"p", b"0"))
    except (KeyError, ValueError, TypeError):
        return None
    # only deltas have an n
    if max(seq, n) > SAFE or (event.type == "delta") is not bool(n):
        return None
    # the stream and the id decide, not what the event says about itself
    envelope = {"run": run if event.run else "", "seq": 0 if n else seq}
    if (event.run, event.seq) != (envelope["run"], envelope["seq"]):
        event = msgspec.structs.replace(event, **envelope)
    return Entry(event, seq, epoch=epoch if n else 0, n=n)


def encode_bounded(event: Event, largest: int = LARGEST) -> bytes:
    """Return the JSON of an event in at most `largest` bytes.

    A larger event is shortened; if that does not help, an Error with its envelope replaces it.
    """
    data = encode_event(event)
    if len(data) <= largest:
        return data
    for lighter in _shorten_event(event, len(data), largest):
        if len(smaller := encode_event(lighter)) <= largest:
            return smaller
    message = f"An event of type {event.type} has {len(data)} bytes and is too large for the hub. The record of the run holds it."
    envelope = {k: getattr(event, k) for k in ("seq", "ts", "run", "turn", "span", "parent")}
    return encode_event(Error(**envelope, code="too_large", message=message))


def _shorten_event(event: Event, size: int, largest: int) -> Iterator[Event]:
    """Yield smaller forms of an event, the most complete first."""
    if isinstance(event, Unknown):
        return
    has = set(event.__struct_fields__)
    slim = msgspec.structs.replace(event, **{k: v for k, v in _HEAVY.items() if k in has})
    yield slim
    if "content" in has:
        text = getattr(event, "content", "")
        text = cut_end(text if isinstance(text, str) else "", min(_SHORT, largest // 8))
        yield msgspec.structs.replace(slim, content=f"{text} ({size} bytes: too large for the hub)")
    elif isinstance(slim, Call):
        yield msgspec.structs.replace(slim, args={}, raw_args="")
