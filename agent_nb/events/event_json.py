"""Canonical events as JSON objects, in and out.

Why beside the events: what an event is and how it is written change for different reasons; most of
the code only ever sees the values.

Rules
- Reading never fails for what a field or a type is: unknown fields go to `extra`, an unknown or
  malformed type becomes `Unknown`.
- What was unknown is written as it came.
"""

from __future__ import annotations

from typing import Any

import msgspec

from .types import ENVELOPE, TYPES, AnyEvent, Event, Unknown

_decoder: msgspec.json.Decoder[AnyEvent] = msgspec.json.Decoder(AnyEvent)
_encoder = msgspec.json.Encoder()


def decode_event(data: bytes | str) -> Event:
    """Decode one canonical JSON object.

    Unknown fields go to `extra`, an unknown or malformed type becomes `Unknown`.
    Raises msgspec.DecodeError when `data` is not a JSON object.
    """
    try:
        return _decoder.decode(data)
    except msgspec.ValidationError:
        return event_from(msgspec.json.decode(data))


def event_from(obj: Any) -> Event:
    """Return the event of a decoded JSON object; see `decode_event`. Raises msgspec.ValidationError
    if it is no object.
    """
    if not isinstance(obj, dict):
        raise msgspec.ValidationError(f"an event is a JSON object, not {type(obj).__name__}")
    cls = TYPES.get(obj["type"]) if isinstance(obj.get("type"), str) else None
    if cls is None:
        return _unknown(obj)
    fields = cls.__struct_fields__
    known = {k: v for k, v in obj.items() if k in fields or k == "type"}
    extra = {k: v for k, v in obj.items() if k not in known}
    if extra:
        known["extra"] = {**(known.get("extra") or {}), **extra}
    try:
        return msgspec.convert(known, cls)
    except msgspec.ValidationError:
        return _unknown(obj)


def _unknown(obj: dict[str, Any]) -> Unknown:
    """Keep a foreign object whole; its envelope is read as far as it is sound."""
    envelope = {k: obj[k] for k in ENVELOPE & obj.keys()}
    try:
        return msgspec.convert(
            {**envelope, "type": "unknown", "kind": str(obj.get("type", "")), "payload": obj},
            Unknown,
        )
    except msgspec.ValidationError:
        return Unknown(kind=str(obj.get("type", "")), payload=obj)


def to_builtins(event: Event) -> dict[str, Any]:
    """Return the event as the JSON object it is written as: unknown fields and types come out as
    they came in.
    """
    if isinstance(event, Unknown):
        envelope = {k: v for k, v in msgspec.to_builtins(event).items() if k in ENVELOPE}
        return {
            **event.payload,
            **envelope,
            **({"type": event.kind} if "type" in event.payload else {}),
        }
    obj: dict[str, Any] = msgspec.to_builtins(event)
    extra = obj.pop("extra", None)
    return {**obj, **extra} if extra else obj


def encode_event(event: Event) -> bytes:
    """Encode one event as canonical JSON (one line, no newline)."""
    if event.extra or isinstance(event, Unknown):
        return _encoder.encode(to_builtins(event))
    return _encoder.encode(event)
