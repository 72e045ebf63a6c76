"""Reads and writes events as JSON objects, those of other versions and formats included.

Rules
- Reading accepts every JSON object. A field that the event type lacks goes to `extra`; an unknown
  or malformed event becomes `Unknown`. Both are written as they came, but for lone surrogates,
  which become question marks.
- A number beyond a double (`1e999`), and an integer of more than `_MOST_DIGITS`, are read as null.
"""

from __future__ import annotations

import json
import math
from typing import Any

import msgspec

from .types import ENVELOPE, TYPES, AnyEvent, Event, Unknown

_decoder: msgspec.json.Decoder[AnyEvent] = msgspec.json.Decoder(AnyEvent)
_encoder = msgspec.json.Encoder()
_MOST_DIGITS = 4000  # of the longest integer that is read


def decode_event(data: bytes | str) -> Event:
    """Return the event of one JSON text. Raises msgspec.DecodeError if it is not a JSON object."""
    try:
        # the event types forbid unknown fields: an event that has some is read by `event_from`
        return _decoder.decode(data)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return event_from(_parse(data))


def _parse(data: bytes | str) -> Any:
    """Return a JSON value. Raises msgspec.DecodeError, for a lone surrogate too."""
    try:
        try:
            return msgspec.json.decode(data)
        except msgspec.ValidationError:  # a number is out of range; `json` reads it as null
            value = json.loads(
                data,
                parse_float=_read_double,
                parse_int=_read_integer,
                parse_constant=_refuse_constant,
            )
            json.dumps(value, ensure_ascii=False).encode()  # a lone surrogate is a UnicodeError
            return value
    except msgspec.DecodeError:
        raise
    except (ValueError, RecursionError) as fault:
        raise msgspec.DecodeError(f"JSON is malformed: {fault}") from None


def _read_double(text: str) -> float | None:
    value = float(text)
    return value if math.isfinite(value) else None


def _read_integer(text: str) -> int | None:
    # Python refuses to convert much longer integers
    return int(text) if len(text) <= _MOST_DIGITS else None


def _refuse_constant(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def event_from(obj: Any) -> Event:
    """Return the event of a decoded JSON object, which may hold lone surrogates.

    Raises msgspec.ValidationError if `obj` is not an object.
    """
    if not isinstance(obj, dict):
        raise msgspec.ValidationError(f"an event is a JSON object, not {type(obj).__name__}")
    cls = TYPES.get(obj["type"]) if isinstance(obj.get("type"), str) else None
    if cls is None:
        return _make_unknown(obj)
    fields = cls.__struct_fields__
    known = {k: v for k, v in obj.items() if k in fields or k == "type"}
    unknown = {k: v for k, v in obj.items() if k not in known}
    if unknown:
        extra = known.get("extra")  # the JSON has a field `extra`; only an object fits its type
        extra = {} if extra is None else extra
        known["extra"] = {**(extra if isinstance(extra, dict) else {"extra": extra}), **unknown}
    try:
        return msgspec.convert(known, cls)
    except (msgspec.ValidationError, UnicodeEncodeError):  # a lone surrogate cannot be encoded
        return _make_unknown(obj)


def _make_unknown(obj: dict[str, Any]) -> Unknown:
    """Keep a foreign object whole, with its envelope if that is valid."""
    envelope = {k: obj[k] for k in ENVELOPE & obj.keys()}
    kind = str(obj.get("type", ""))
    fields = {**envelope, "type": "unknown", "kind": kind, "payload": obj}
    try:
        return msgspec.convert(fields, Unknown)
    except (msgspec.ValidationError, UnicodeEncodeError):
        return Unknown(kind=kind, payload=obj)


def to_builtins(event: Event) -> dict[str, Any]:
    """Return the JSON object of an event; unknown fields and types come out as they came in."""
    obj: dict[str, Any] = msgspec.to_builtins(event)
    if isinstance(event, Unknown):
        whole = event.payload | {k: v for k, v in obj.items() if k in ENVELOPE}
        return whole | {"type": event.kind} if isinstance(whole.get("type"), str) else whole
    extra = obj.pop("extra", None) or {}
    # A foreign field named like one of ours stays in `extra`, else it would replace ours. A foreign
    # `extra` that is not an object may stand beside ours: readers do not confuse the two.
    same_name = {k: v for k, v in extra.items() if k == "type" or k in event.__struct_fields__}
    if same_name and (len(same_name) > 1 or isinstance(same_name.get("extra", {}), dict)):
        others = {k: v for k, v in extra.items() if k not in same_name}
        return {**obj, **others, "extra": same_name}
    return {**obj, **extra}


def encode_event(event: Event) -> bytes:
    """Return one event as canonical JSON: one line, without a newline."""
    obj = to_builtins(event) if event.extra or isinstance(event, Unknown) else event
    try:
        return _encoder.encode(obj)
    except UnicodeEncodeError:
        text = json.dumps(to_builtins(event), ensure_ascii=False, separators=(",", ":"))
        return text.encode("utf-8", "replace")
