"""What readers leave in the events they make: the note of a codec, and which of it no other format
shows.

Rules
- A note is `extra[codec]`: what the canonical fields do not say of a line (see residue), and how it
  was read.
- A format that drops a foreign field loses nothing if canonical fields, or other events of the run,
  carry the same fact. What a tool printed is not a loss either: it is also progress.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..events import PRINTED, Event

#: What a reader may leave in a note, and the foreign fields in it that number or name what our own
# fields number and name; : a format that drops them loses nothing.
NOTE_KEYS = frozenset(
    {
        "fields",
        "absent",
        "lines",
        "derived",
        "guess",
        "batch",
        "form",
        "held",
        "implicit",
        "start",
        "end",
        "chunks",
        "block",
        "call",
        "complete",
        "rest",
    }
)
KNOWN_FIELDS = frozenset(
    {
        "session_id",
        "node_id",
        "event_id",
        "timestamp",
        "contextId",
        "taskId",
        "id",
        "run_id",
        "runId",
        "threadId",
        "messageId",
        "seq",
        "at",
        "index",
        "path",
        "kind",
    }
)
_TOOL = frozenset({"call_id", "name", "callId", "toolName", "toolCallId", "inputId", "approvalId"})
#: The same of one kind; among them what other events of the run tell: the user's message, the
# arguments of the call, the answer.
TOLD = {
    "run_start": frozenset({"message", "initiator"}),
    "end": frozenset({"content", "reply"}),
    "think": frozenset({"thoughtId"}),
    "started": _TOOL | {"arguments"},
    **dict.fromkeys(("call", "approval", "progress", "result"), _TOOL),
}


def note_of(event: Event, codec: str) -> dict[str, Any] | None:
    """Return what a reader of `codec` left in the event; None if it was not read from
    that format.
    """
    note = event.extra.get(codec) if event.extra else None
    return note if isinstance(note, dict) else None


def is_derived(event: Event, codec: str) -> bool:
    """True if the event has no line of its own in `codec`, from which it was read."""
    note = note_of(event, codec)
    return note is not None and bool(note.get("derived"))


def foreign(event: Event, codec: str) -> bool:
    """True if an event holds fields that a stream of `codec` will not show: unknown ones, of ours
    or of another format.
    """
    notes = [
        (key, value) for key, value in (event.extra or {}).items() if key not in (codec, PRINTED)
    ]
    return any(
        not isinstance(value, dict) or _unknown_fields(value, event.type) for _, value in notes
    )


def _unknown_fields(note: Mapping[str, Any], kind: str) -> bool:
    fields = note.get("fields")
    names = fields.keys() if isinstance(fields, dict) else ()
    told = KNOWN_FIELDS | TOLD.get(kind, frozenset())
    return not (note.keys() <= NOTE_KEYS) or any(
        name not in told and not name.startswith("#") for name in names
    )
