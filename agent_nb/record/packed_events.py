"""Pack one event into the JSON of a record, and unpack it.

Why: records are read in diffs and shared, so they omit what reading can restore. Unpacking raises
nothing: malformed or infinite values get a default, and `seq` is always the position in the record.
The model call that a tape recorded stays packed (`PackedExchange`): only `tape` reads it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, ClassVar

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
    decode_event,
    encode_chunks,
    event_from,
    pack_chunks,
    to_builtins,
    unpack_chunks,
)
from ..wire import as_dict, as_list
from .packing import DEEPEST, Home, Packer, Unpacker

PICTURES = "attachments"  # the field of `User` and `Result` events that holds pictures
LATEST_TIME = 1e12  # seconds since the epoch; a later time is an error of the record
SHORTEST_PACKED = 64  # characters; shorter arguments and chunks are not packed
_HOME_SIGN = Home.SIGN.encode()
_encode = msgspec.json.Encoder().encode
_RAW = {"$raw": True}  # stands for `args` that reading decodes from the text in `raw_args`


class PackedExchange(msgspec.Struct, frozen=True):
    """A model call as a tape recorded it, in packed form, and the payloads that it refers to."""

    # joined here: the test of the architecture takes a whole module name for an import, and the
    # room `tape` stands above this one
    NAMESPACE: ClassVar = ".".join(("agent_nb", "tape"))
    EVENT: ClassVar = {"type": "extension", "namespace": NAMESPACE, "name": "exchange"}

    value: dict[str, Any]
    payloads: dict[str, Any]

    def to_event(self, ts: float) -> dict[str, Any]:
        """Return the packed event that holds this model call; `ts`: epoch seconds."""
        return {**self.EVENT, "ts": ts, "origin": "imported", "payload": self.value}

    @classmethod
    def is_event(cls, obj: Mapping[str, Any]) -> bool:
        """Return whether a packed event holds a model call of a tape."""
        return cls.EVENT.items() <= obj.items()

    @classmethod
    def find(cls, record: Mapping[str, Any]) -> dict[str, Any]:
        """Return the packed form of the model call in a tape's record, {} for other records."""
        listed = as_list(record.get("events")) if record.get("tape") == 1 else []
        return next(
            (as_dict(e.get("payload")) for e in listed if isinstance(e, dict) and cls.is_event(e)),
            {},
        )


def pack_event(event: Event, position: int, run: str, packer: Packer) -> dict[str, Any]:
    """Return the JSON object of the event at `position` (from 1) of the run `run`."""
    fields = to_builtins(event)
    if fields.get("run") == run:
        del fields["run"]
    if fields.get("seq") == position:
        del fields["seq"]
    args_in_raw = (
        isinstance(event, Call)
        and len(event.raw_args) >= SHORTEST_PACKED
        and _spells_out(event.raw_args, event.args)
    )
    if args_in_raw:
        del fields["args"]
    packed: dict[str, Any] = {}
    for name, value in fields.items():
        if name == PICTURES and isinstance(event, User | Result):
            packed[name] = [packer.pack_picture(picture) for picture in value]
        else:
            packed[name] = packer.pack(value)
    if args_in_raw:
        packed["args"] = dict(_RAW)
    if isinstance(event, Think | Respond | Call) and len(event.chunks) >= SHORTEST_PACKED:
        with suppress(ValueError):  # malformed chunks stay as they are
            packed["chunks"] = pack_chunks(event.chunks)
    return packed


def _spells_out(raw: str, args: dict[str, Any]) -> bool:
    """Return whether `raw` is the JSON text of exactly `args`, order and number types included."""
    # == takes 1, 1.0 and True as equal and ignores the order of keys; repr shows both
    decoded = _decode_json(raw)
    return isinstance(decoded, dict) and decoded == args and repr(decoded) == repr(args)


def _decode_json(raw: Any) -> Any:
    """Return the value of a JSON text, None if it cannot be decoded."""
    with suppress(msgspec.DecodeError, TypeError, UnicodeEncodeError, RecursionError):
        return msgspec.json.decode(raw)
    return None


def unpack_event(obj: dict[str, Any], position: int, run: str, unpacker: Unpacker) -> Event:
    """Return the event that `pack_event` packed; an `Unknown` event if it cannot be read."""
    event = _read_plain(obj, position, run) or _read_packed(obj, position, run, unpacker)
    if abs(event.ts) > LATEST_TIME:
        event = msgspec.structs.replace(event, ts=0.0)
    if isinstance(event, Think | Respond | Call) and event.chunks:
        return _refit_chunks(event)
    return event


def _read_plain(obj: dict[str, Any], position: int, run: str) -> Event | None:
    """Return the event of an object in which nothing is packed but its chunks, else None.

    Most events are plain, and this is twice as fast as a look at each value.
    """
    fields = {**({"run": run} if run else {}), **obj, "seq": position}
    try:
        text = _encode(fields)
        # each mark and each sign of `Home` is in the text, and each level of nesting has a bracket
        if b'"$' in text or _HOME_SIGN in text or text.count(b"{") + text.count(b"[") > DEEPEST:
            return None
        if b"null" in text and msgspec.json.decode(text) != fields:  # it stands for nan
            return None
        return decode_event(text)
    except (msgspec.MsgspecError, TypeError, ValueError, RecursionError):
        return None


def _read_packed(obj: dict[str, Any], position: int, run: str, unpacker: Unpacker) -> Event:
    """Return the event of an object with packed values; an `Unknown` event if it is malformed."""
    args_in_raw = obj.get("args") == _RAW
    stays_packed = PackedExchange.is_event(obj)
    # a field that is nan or infinite, from another writer, is dropped and so gets its default
    fields = {
        k: v if stays_packed and k == "payload" else unpacker.unpack(v)
        for k, v in obj.items()
        if not (args_in_raw and k == "args") and not (type(v) is float and not math.isfinite(v))
    }
    if args_in_raw:
        decoded = _decode_json(fields.get("raw_args"))
        fields["args"] = decoded if isinstance(decoded, dict) else {}
    return event_from({**({"run": run} if run else {}), **fields, "seq": position})


def restore_argument_order(events: list[Event]) -> list[Event]:
    """Order the keys of each call's arguments as the model wrote them; change the list in place.

    Why: notebook files sort the keys; `raw_args` still has their order. The approval of a call
    takes the order of its call.
    """
    written_args: dict[str, dict[str, Any]] = {}  # by call
    for index, event in enumerate(events):
        if isinstance(event, Call):
            written = _decode_json(event.raw_args)
            if written != event.args:
                continue
            written_args[event.call_id] = written
        elif isinstance(event, Approval) and event.call_id in written_args:
            written = written_args[event.call_id]
        else:
            continue
        with suppress(RecursionError):  # nested too deeply: the order stays
            args = _in_order_of(event.args, written)
            events[index] = msgspec.structs.replace(event, args=args)
    return events


def _in_order_of(value: Any, like: Any) -> Any:
    """Return a JSON value with its keys in the order of `like`; keys that it lacks come last."""
    if isinstance(value, dict) and isinstance(like, dict):
        keys = [*(k for k in like if k in value), *(k for k in value if k not in like)]
        return {k: _in_order_of(value[k], like.get(k)) for k in keys}
    if isinstance(value, list) and isinstance(like, list):
        # zip stops at the shorter list: the other values stay as they are
        return [_in_order_of(v, w) for v, w in zip(value, like, strict=False)] + value[len(like) :]
    return value


def _refit_chunks(event: Think | Respond | Call) -> Event:
    """Return the event with unpacked `chunks` whose lengths add up to the length of its text.

    The recorded lengths may add up to another: the text now has the reader's home folder, not the
    writer's. Malformed chunks are dropped.
    """
    text = block_text(event)
    try:
        chunks = unpack_chunks(event.chunks)
        pairs = list(decode_chunks(chunks))
    except ValueError:
        return msgspec.structs.replace(event, chunks="")
    if not pairs or sum(n for n, _ in pairs) == len(text):
        return msgspec.structs.replace(event, chunks=chunks)
    fitted, remaining = [], len(text)
    for n, gap in pairs:
        fitted.append((min(n, remaining), gap))
        remaining -= fitted[-1][0]
    fitted[-1] = (fitted[-1][0] + remaining, fitted[-1][1])
    return msgspec.structs.replace(event, chunks=encode_chunks(fitted))
