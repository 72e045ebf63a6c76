"""The encoder of most codecs: counts what the format cannot carry, and frames the writer's objects.

The encoder counts losses alike for all formats, from their tables; a writer only writes.

Rule: an event that was read from this format loses nothing, since its note restores it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ..events import TYPES, Delta, Event, Extension, Node, Step, Texts, Unknown
from .contract import Writer
from .framing import Framing, Item
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
#: Reasons that hold in every format, unless its `lossy` has another one.
_REASONS = {
    "extension": "it belongs to another format",
    "user.attachments": "a message is text",
    "result.attachments": "a result is text",
}


class Capabilities(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a run that a format can carry; `base.Codec` extends it."""

    name: str
    #: Each kind of event that it can write -> the fields that it carries.
    carries: Mapping[str, frozenset[str]]
    #: `kind` or `kind.field` that it cannot carry -> the reason, if `_REASONS` has no better one.
    lossy: Mapping[str, str]
    #: The envelope fields that it carries.
    envelope: frozenset[str] = frozenset()
    #: The format has a place for the events of sub-agents.
    nests: bool = False
    #: A whole text may follow the pieces of it, and then replaces them.
    replies: bool = False

    def explain_loss(self, name: str, default: str) -> str:
        """Return why the format cannot carry a `kind` or `kind.field`."""
        return self.lossy.get(name) or _REASONS.get(name, default)


class StreamEncoder:
    """Encodes one stream."""

    def __init__(
        self, format_: Capabilities, writer: Writer, losses: Losses, framing: Framing
    ) -> None:
        self.losses = losses
        self.framing = framing
        self._format = format_
        self._writer = writer
        self._texts = Texts()
        self._uncarried = {kind: _list_uncarried(format_, kind) for kind in TYPES}

    def feed(self, event: Event) -> list[str]:
        """Return the lines or frames that `event` completes."""
        return self._write_items(self.items(event), event.type)

    def close(self) -> list[str]:
        """Return the lines or frames that were held back."""
        return self._write_items(self.items(None), "end")

    def _write_items(self, items: list[Item], loss: str) -> list[str]:
        """Return the texts of items; one that nests too deeply is counted as a `loss`."""
        texts = []
        for item in items:
            try:
                texts.append(item.write(self.framing))
            except RecursionError:
                self.losses.add(loss, TOO_DEEP)
        return texts

    def items(self, event: Event | None) -> list[Item]:
        """Return the items that `feed(event)`, or for None `close()`, would frame."""
        if event is None:
            return self._writer.close()
        is_nested = bool(event.span) and type(event) is not Node
        step: Step = ""
        # `Texts` relates each text of the run itself to the one before it; sub-agents are left out
        if not is_nested and not (event.span and event.parent):
            step = self._texts.add(event)
        if is_nested and not self._format.nests and note_of(event, self._format.name) is None:
            self.losses.add("nested events", _NESTED)
            return []
        if type(event) is not Delta and not is_derived(event, self._format.name):
            self._count_losses(event, replaces=step == "instead")
        try:
            return self._writer.write(event)
        except RecursionError:
            self.losses.add(event.type, TOO_DEEP)
            return []

    def _count_losses(self, event: Event, *, replaces: bool) -> None:
        """Count the losses of an event; `replaces`: its text replaces the streamed text."""
        format_, kind = self._format, event.type
        if note_of(event, format_.name) is not None:
            return  # it was read from this format: its note holds what the fields do not
        is_foreign = isinstance(event, Extension) and event.namespace != format_.name
        if kind not in format_.carries or isinstance(event, Unknown) or is_foreign:
            self.losses.add(kind, format_.explain_loss(kind, NO_KIND))
            return
        for field in self._uncarried[kind]:
            if getattr(event, field.name) != field.default:
                self.losses.add(f"{kind}.{field.name}", field.reason, detail=field.is_detail)
        for name in _ENVELOPE:
            if name not in format_.envelope and getattr(event, name):
                self.losses.add(f"envelope.{name}", _NO_ENVELOPE, detail=True)
        if replaces and not format_.replies:
            self.losses.add(f"{kind}.reply", _NO_REPLY)
        if event.extra and has_foreign_fields(event, format_.name):
            self.losses.add("extra", _FOREIGN)


class _UncarriedField(msgspec.Struct, frozen=True):
    """A field of one kind of event that a format lacks; a value other than `default` is a loss."""

    name: str
    default: Any
    reason: str
    is_detail: bool


def _list_uncarried(format_: Capabilities, kind: str) -> list[_UncarriedField]:
    """Return the fields of a kind of event that the format lacks."""
    blank = TYPES[kind]()
    carried = {*Event.__struct_fields__, *format_.carries.get(kind, ())}
    fields = []
    for name in TYPES[kind].__struct_fields__:
        if name not in carried:
            reason = format_.explain_loss(f"{kind}.{name}", _NO_FIELD)
            fields.append(_UncarriedField(name, getattr(blank, name), reason, name in DETAILS))
    return fields
