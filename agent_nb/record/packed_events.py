"""One event as it stands in a record, and back.

Rules
- The position of an event is not stored: `seq` is its place in the record, `run` the record's id.
- Arguments that `raw_args` spells out exactly are `{"$raw": true}`; long `chunks` are packed; all
  other values are packed as `packing` says; a picture is a payload, so that it is stored once.
- Unpacking raises nothing: malformed chunks are dropped, malformed arguments become {}. Of
  the fields of an event, infinite numbers are dropped, and a time beyond `LATEST` is 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import msgspec

from ..events import (
    Approval,
    Call,
    Event,
    Respond,
    Result,
    Think,
    User,
    block_text,
    decode_chunks,
    encode_chunks,
    event_from,
    pack_chunks,
    to_builtins,
    unpack_chunks,
)
from .packing import Packer, Unpacker

PICTURES = "attachments"  # the field of an event that holds pictures
LATEST = 1e12  # seconds since the epoch; a later time is a fault
SHORTEST = 64  # characters; shorter arguments and chunks are not packed
_RAW = {"$raw": True}


def pack_event(event: Event, position: int, run: str, packer: Packer) -> dict[str, Any]:
    """Return the JSON object of the event at `position` (from 1) of the run `run`."""
    obj = to_builtins(event)
    if obj.get("run") == run:
        del obj["run"]
    if obj.get("seq") == position:
        del obj["seq"]
    same = (
        isinstance(event, Call)
        and len(event.raw_args) >= SHORTEST
        and _spells_out(event.raw_args, event.args)
    )
    packed = {
        k: packer.pack_pictures(v)
        if k == PICTURES and isinstance(event, User | Result)
        else packer.pack(v)
        for k, v in obj.items()
        if not (same and k == "args")
    }
    if same:
        packed["args"] = dict(_RAW)
    if isinstance(event, Think | Respond | Call) and len(event.chunks) >= SHORTEST:
        packed["chunks"] = _convert_chunks(pack_chunks, event.chunks)
    return packed


def _spells_out(raw: str, args: dict[str, Any]) -> bool:
    """Return whether `raw` is the JSON text of exactly `args`, order and number types included."""
    decoded = _json(raw)
    return isinstance(decoded, dict) and decoded == args and repr(decoded) == repr(args)


def _json(raw: Any) -> Any:
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, TypeError, UnicodeEncodeError, RecursionError):
        return None


def _convert_chunks(convert: Callable[[str], str], text: str) -> str:
    """Return the converted `text`, or `text` itself if it is not a valid chunk string."""
    try:
        return convert(text)
    except ValueError:
        return text


def unpack_event(obj: dict[str, Any], position: int, run: str, unpacker: Unpacker) -> Event:
    """Return the event that `pack_event` was given; an unknown one where it cannot be read."""
    raw = obj.get("args") == _RAW
    fields = {
        k: unpacker.unpack(v)
        for k, v in obj.items()
        if not (raw and k == "args") and not (type(v) is float and not math.isfinite(v))
    }
    if raw:
        decoded = _json(fields.get("raw_args"))
        fields["args"] = decoded if isinstance(decoded, dict) else {}
    chunks = fields.get("chunks")
    if isinstance(chunks, str) and chunks:
        fields["chunks"] = _convert_chunks(unpack_chunks, chunks)
    event = event_from({**({"run": run} if run else {}), **fields, "seq": position})
    if abs(event.ts) > LATEST:
        event = msgspec.structs.replace(event, ts=0.0)
    return _fitted(event) if isinstance(event, Think | Respond | Call) and event.chunks else event


def in_written_order(events: list[Event]) -> list[Event]:
    """Return the events with the keys of arguments as the model wrote them.

    Notebook files sort the keys; `raw_args` still has their order. The list is changed in place.
    """
    written: dict[str, dict[str, Any]] = {}
    for index, event in enumerate(events):
        if (
            isinstance(event, Call)
            and isinstance(args := _json(event.raw_args), dict)
            and args == event.args
        ):
            written[event.call_id] = args
        elif not (isinstance(event, Approval) and event.args):
            continue
        if event.call_id in written:
            events[index] = msgspec.structs.replace(
                event, args=_in_order_of(event.args, written[event.call_id])
            )
    return events


def _in_order_of(value: Any, like: Any) -> Any:
    """Return a JSON value with its keys in the order of `like`; keys that it lacks come last."""
    if isinstance(value, dict) and isinstance(like, dict):
        keys = [*(k for k in like if k in value), *(k for k in value if k not in like)]
        return {k: _in_order_of(value[k], like.get(k)) for k in keys}
    if isinstance(value, list) and isinstance(like, list):
        return [_in_order_of(v, w) for v, w in zip(value, like, strict=False)] + value[len(like) :]
    return value


def _fitted(event: Think | Respond | Call) -> Event:
    """Make `chunks` add up to the text, whose length depends on the reader's home folder."""
    text = block_text(event)
    try:
        pairs = list(decode_chunks(event.chunks))
    except ValueError:
        return msgspec.structs.replace(event, chunks="")
    if sum(n for n, _ in pairs) == len(text):
        return event
    fitted, left = [], len(text)
    for n, gap in pairs:
        fitted.append((min(n, left), gap))
        left -= fitted[-1][0]
    fitted[-1] = (fitted[-1][0] + left, fitted[-1][1])
    return msgspec.structs.replace(event, chunks=encode_chunks(fitted))
