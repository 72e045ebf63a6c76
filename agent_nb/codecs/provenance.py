"""The notes that readers leave in events, and which of them are lost in another format.

A note is `extra[codec]`: the parts of a line that the event's fields do not hold (`passthrough`),
and how the line was read. An encoder must report a foreign field that it drops, unless a field of
ours, in this event or in another of the run, carries the same value.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..events import PRINTED, Event
from ..wire import as_dict
from .passthrough import is_mark

_LINE_NOTES = {"fields", "absent", "lines", "start", "end", "chunks", "block", "call", "complete"}
_READING_NOTES = {"derived", "guess", "batch", "form", "held", "implicit", "rest"}
#: The keys of a note: how the lines of an event differ from ours, and how they were read.
NOTE_KEYS = frozenset(_LINE_NOTES | _READING_NOTES)
_RUN_IDS = {"session_id", "contextId", "taskId", "run_id", "runId", "threadId"}
_LINE_IDS = {"node_id", "event_id", "id", "messageId", "seq", "index", "path"}
#: Foreign ids, numbers, times and names whose values our own fields carry.
KNOWN_FIELDS = frozenset(_RUN_IDS | _LINE_IDS | {"timestamp", "at", "kind", "type"})
_TOOL = frozenset({"call_id", "name", "callId", "toolName", "toolCallId", "inputId", "approvalId"})
#: Kind of event -> foreign fields known in this kind alone: ids, and values that other events of
#: the run hold (the user's message, the arguments of the call, the answer).
KNOWN_IN_KIND = {
    "run_start": frozenset({"message", "initiator"}),
    "end": frozenset({"content", "reply", "reasoning_content", "usage", "total_usage"}),
    "think": frozenset({"thoughtId"}),
    "started": _TOOL | {"arguments"},
    "result": _TOOL | {"raw_result"},
    **dict.fromkeys(("call", "approval", "progress"), _TOOL),
}


def note_of(event: Event, codec: str) -> dict[str, Any] | None:
    """Return the note of `codec` in an event; None if it was not read from that format."""
    note = event.extra.get(codec) if event.extra else None
    return note if isinstance(note, dict) else None


def is_derived(event: Event, codec: str) -> bool:
    """Return whether an event was read from `codec` but has no line there."""
    note = note_of(event, codec)
    return note is not None and bool(note.get("derived"))


def has_foreign_fields(event: Event, codec: str) -> bool:
    """Return whether an event has fields, unknown or of another format, that `codec` drops."""
    notes = [note for key, note in (event.extra or {}).items() if key not in (codec, PRINTED)]
    return any(not isinstance(note, dict) or _has_unknown(note, event.type) for note in notes)


def _has_unknown(note: Mapping[str, Any], kind: str) -> bool:
    """Return whether a note has keys or fields that are not known for this kind of event."""
    if not note.keys() <= NOTE_KEYS:
        return True
    known = KNOWN_FIELDS | KNOWN_IN_KIND.get(kind, frozenset())
    return any(k not in known and not is_mark(k) for k in as_dict(note.get("fields")))
