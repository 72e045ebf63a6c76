"""List what is wrong with a record: its shape, hash, payloads and events. Nothing raises.

Why apart from reading: that makes the best of a damaged record, and does not say what it lacks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from ..events import Unknown
from ..wire import as_list
from .packing import Payloads
from .record import FORMAT, Record, RecordFields, events_of, record_hash


def check_record(record: Any, payloads: Mapping[str, Any] | None = None) -> list[str]:
    """Return the problems of one record, whose `payloads` may stand beside it."""
    if not isinstance(record, Mapping):
        return [f"a record is a JSON object, not {type(record).__name__}"]
    problems = [
        *_list_shape_problems(record),
        *Payloads.list_faults(record, payloads),
        *_list_event_problems(record, payloads),
    ]
    content = record_hash(record)
    if not content or record.get("hash") != content:
        problems.append(
            "the content was changed after it was recorded: it does not have the hash it names"
        )
    return problems


def _list_shape_problems(record: Record) -> Iterator[str]:
    """Yield what is wrong with the format, the fields and their types."""
    if record.get("format") != FORMAT:
        yield f"format {record.get('format')!r} is not {FORMAT}: it is read as far as it can be"
    try:
        msgspec.convert(dict(record), RecordFields)
    except (msgspec.ValidationError, TypeError, ValueError, RecursionError) as fault:
        yield f"not a record: {fault}"


def _list_event_problems(record: Record, payloads: Mapping[str, Any] | None) -> Iterator[str]:
    """Yield what is wrong with the events: their shape, numbers, types and the end of the run."""
    stored = as_list(record.get("events"))
    objects = [o for o in stored if isinstance(o, dict)]
    if len(objects) < len(stored):
        yield f"{len(stored) - len(objects)} of its events are not objects"
    unpacked = events_of(record, payloads)
    # to a run without an end `events_of` appends one; the events before it are the record's
    recorded = unpacked[: len(objects)]
    if len(unpacked) > len(objects):
        yield "the run has no end: it is read as interrupted"
    for event, obj in zip(recorded, objects, strict=False):
        if obj.get("seq", event.seq) != event.seq:
            yield f"event {event.seq} calls itself {obj.get('seq')!r}"
        if isinstance(event, Unknown):
            yield f"event {event.seq} is of an unknown type or shape: {event.kind or 'no type'}"
    for event in recorded[:-1]:
        if event.type == "end" and not event.span:  # of the run itself, not of a span
            yield f"event {event.seq} ends the run, but others follow"
