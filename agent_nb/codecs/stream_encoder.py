"""An encoder made of a format's writer and the framing; it counts what the format cannot carry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ..events import TYPES, Delta, Event, Extension, Node, Texts, Unknown
from .contract import Writer
from .framing import Framing, Item, frame_item
from .losses import Losses
from .provenance import has_foreign_fields, is_derived, note_of
from .stream_decoder import TOO_DEEP

#: Fields that every reader makes anew; their loss is a detail.
DETAILS = frozenset(
    {"block", "batch", "index", "chunks", "synthetic", "call_id", "raw_args", "calls"}
)
_ENVELOPE = ("run", "turn", "ts", "path", "span", "parent")
NO_KIND = "the format has no such event"
_NO_FIELD = "the format has no such field"
_NO_ENVELOPE = "the format has no place for it; a reader makes it anew"
_NO_REPLY = "the format has no replacement text; both are written"
_NESTED = (
    "the format knows no runs inside a run; what a sub-agent did is left out, its result is there"
)
_FOREIGN = "unknown fields of another format"


class Capabilities(msgspec.Struct, frozen=True):
    """What a format can say; see `base.Codec`."""

    name: str
    carries: Mapping[str, frozenset[str]]
    lossy: Mapping[str, str]
    envelope: frozenset[str]
    nests: bool
    replies: bool


class StreamEncoder:
    """See `contract.Encoder`."""

    def __init__(self, can: Capabilities, writer: Writer, losses: Losses, framing: Framing) -> None:
        self.losses = losses
        self.framing = framing
        self._can = can
        self._writer = writer
        self._texts = Texts()
        self._uncarried = {kind: _uncarried(can, kind) for kind in TYPES}

    def feed(self, event: Event) -> list[str]:
        """See Encoder."""
        return [frame_item(item, self.framing) for item in self.items(event)]

    def close(self) -> list[str]:
        """See Encoder."""
        return [frame_item(item, self.framing) for item in self.items(None)]

    def items(self, event: Event | None) -> list[Item]:
        """See Encoder."""
        if event is None:
            return self._writer.close()
        inner = bool(event.span) and type(event) is not Node
        step = "" if inner or (event.span and event.parent) else self._texts.add(event)
        if inner and not self._can.nests and note_of(event, self._can.name) is None:
            self.losses.add("nested events", _NESTED)
            return []
        if type(event) is not Delta and not is_derived(event, self._can.name):
            self._count(event, anew=step == "instead")
        try:
            return self._writer.write(event)
        except RecursionError:
            self.losses.add(event.type, TOO_DEEP)
            return []

    def _count(self, event: Event, *, anew: bool) -> None:
        """Count what of an event is lost; `anew`: its text replaces what was streamed."""
        can, kind = self._can, event.type
        if note_of(event, can.name) is not None:
            return  # it came from this format: its note holds what the fields do not
        alien = isinstance(event, Extension) and event.namespace != can.name
        if kind not in can.carries or isinstance(event, Unknown) or alien:
            self.losses.add(kind, can.lossy.get(kind, NO_KIND))
            return
        for field, default, reason, detail in self._uncarried[kind]:
            if getattr(event, field) != default:
                self.losses.add(f"{kind}.{field}", reason, detail=detail)
        for field in _ENVELOPE:
            if field not in can.envelope and getattr(event, field):
                self.losses.add(f"envelope.{field}", _NO_ENVELOPE, detail=True)
        if anew and not can.replies:
            self.losses.add(f"{kind}.reply", _NO_REPLY)
        if event.extra and has_foreign_fields(event, can.name):
            self.losses.add("extra", _FOREIGN)


def _uncarried(can: Capabilities, kind: str) -> list[tuple[str, Any, str, bool]]:
    """Return (field, default, reason, detail) for each field of `kind` that is not carried."""
    blank = TYPES[kind]()
    carried = {*Event.__struct_fields__, *can.carries.get(kind, ())}
    return [
        (f, getattr(blank, f), can.lossy.get(f"{kind}.{f}", _NO_FIELD), f in DETAILS)
        for f in TYPES[kind].__struct_fields__
        if f not in carried
    ]
