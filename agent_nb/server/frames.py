"""What a subscription takes, as the bytes that a client gets: codec, framing, ids, gaps.

Rules
- An SSE frame's id is the entry's, on the last frame that an entry gives; so a client that was cut
  off in between gets the entry again.
- Canonical events are encoded once for all subscribers; a format with state is encoded for each,
  and on resume its state is rebuilt from the entries that the client has, silently.
- What a format calls internal (`internal:*`) is left out unless asked for, whatever event it is of.
- A gap is an event of its own: `event: gap` over SSE, an object of type `gap` as a line (an
  extension of namespace `hub` in canonical).
- What a format could not carry is named in a comment when the stream ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..codecs.base import Codec
from ..codecs.contract import Encoder
from ..codecs.framing import RAW, Framing, Item, sse, sse_safe
from ..events import Extension
from ..events.event_json import encode_event
from ..events.position import START, Position
from ..wire.json_text import dumps
from .channel import Entry, Gap

CANONICAL = "canonical"


class Frames:
    """Bytes of one stream. `skip`: the client has everything up to there; `internal`: it wants
    internal events too.
    """

    def __init__(
        self,
        codec: Codec,
        form: str,
        framing: Framing,
        *,
        conversation: str = "",
        earlier: int = 0,
        skip: Position = START,
        internal: bool = True,
    ) -> None:
        self._framing: Framing = framing
        self._encoder: Encoder | None = None
        if codec.name != CANONICAL:
            self._encoder = codec.encoder(
                form=form, framing=framing, conversation=conversation, earlier=earlier, asked=True
            )
        self._skip = skip
        self._internal = internal

    def encode(self, taken: Iterable[Entry | Gap]) -> bytes:
        """Return the bytes of what was taken ("" for entries that the client has or the format does
        not show).
        """
        return b"".join(self._gap(e) if isinstance(e, Gap) else self._entry(e) for e in taken)

    def close(self) -> bytes:
        """Return what the encoder held back, and a comment on what was lost."""
        if self._encoder is None:
            return b""
        rest = self._texts(self._encoder.items(None), None)
        lost = self._encoder.losses.counts()
        if lost and self._framing == "sse":
            rest += f": not carried by this format: {', '.join(f'{n} {what}' for what, n in lost.items())}\n\n".encode()
        return rest

    def _entry(self, entry: Entry) -> bytes:
        if self._encoder is None:
            return self._canonical(entry)
        items = self._encoder.items(entry.event)
        return self._texts(items, entry.id) if entry.position > self._skip else b""

    def _canonical(self, entry: Entry) -> bytes:
        text = entry.texts.get(self._framing)
        if text is None:
            line = encode_event(entry.event)
            text = (
                b"id: %b\ndata: %b\n\n" % (entry.id.encode(), line)
                if self._framing == "sse"
                else line + b"\n"
            )
            entry.texts[self._framing] = text
        return text

    def _texts(self, items: Sequence[Item], number: str | None) -> bytes:
        if not self._internal:
            items = [item for item in items if not _is_internal(item)]
        if self._framing == "ndjson":
            return b"".join(dumps(item.obj).encode() + b"\n" for item in items)
        last = len(items) - 1
        return "".join(
            _frame(item, number if at == last else None) for at, item in enumerate(items)
        ).encode()

    def _gap(self, gap: Gap) -> bytes:
        told = {"run": gap.run, "reason": gap.reason, "after": gap.after, "missed": gap.missed}
        if self._framing == "sse":
            return sse(dumps(told), "gap").encode()
        if self._encoder is None:
            return (
                encode_event(Extension(run=gap.run, namespace="hub", name="gap", payload=told))
                + b"\n"
            )
        return dumps({"type": "gap", "kind": "gap", **told}).encode() + b"\n"


def _is_internal(item: Item) -> bool:
    kind = item.event or (item.obj.get("kind") if isinstance(item.obj, dict) else None)
    return isinstance(kind, str) and kind.startswith("internal:")


def _frame(item: Item, number: str | None) -> str:
    if item.event == RAW:
        return sse(str(item.obj))
    return sse(dumps(item.obj), item.event if sse_safe(item.event) else "", number)
