"""Encode the entries of a subscription as bytes for a client: codec, framing, ids, gaps.

Why: one event may become several frames, and a client may lose its connection between any two.

Rules
- The last SSE frame of an entry has the entry's id. Each frame before it has that id and the number
  of frames that follow, so a client that is cut off in between resumes there. Frames are counted
  from the end, because a block that is read again may have more frames at its beginning.
- The encoder of a format other than `CANONICAL` has state: it must see every event from the start
  of the run, also those that the client has already.
- Over SSE, the stream of an ended run ends with the id of the run's end, which may have no frame.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..codecs import Codec, Framing, Item
from ..events import Extension, Position, encode_event
from ..wire import dumps
from .channel import Entry, Gap

CANONICAL = "canonical"


class Frames:
    """The encoder of one stream.

    `form`: one of the codec's forms ("": its default). `conversation`: its id; `earlier`: how many
    runs it had before this one. `skip`: the client has everything up to this position, but the last
    `rest` frames of the entry there. `internal`: include internal items.
    """

    def __init__(
        self,
        codec: Codec,
        form: str,
        framing: Framing,
        *,
        conversation: str = "",
        earlier: int = 0,
        skip: Position = Position(),  # noqa: B008  (it is immutable)
        rest: int = 0,
        internal: bool = True,
    ) -> None:
        self._framing: Framing = framing
        self._encoder = (
            codec.encoder(
                form=form, framing=framing, conversation=conversation, earlier=earlier, asked=True
            )
            if codec.name != CANONICAL
            else None
        )
        self._skip, self._rest = skip, rest
        self._internal = internal
        self._newest = ""  # the id of the newest entry that was written

    def encode(self, entries: Iterable[Entry | Gap]) -> bytes:
        """Return the bytes of entries and gaps, without entries that the client already has."""
        output = []
        for each in entries:
            if isinstance(each, Gap):
                output.append(self._encode_gap(each))
            elif data := self._encode_entry(each):
                output.append(data)
                self._newest = each.id
        return b"".join(output)

    def close(self, end: str) -> bytes:
        """Return what the encoder held back, the id of the run's end, and a comment on losses.

        `end`: that id; "" if the stream ends before the run.
        """
        output, counts = b"", dict[str, int]()
        if self._encoder is not None:
            output = self._encode_items(self._encoder.items(None), None)
            counts = self._encoder.losses.counts()
        if self._framing == "sse":
            output += f"id: {end}\n\n".encode() if end not in ("", self._newest) else b""
            losses = ", ".join(f"{count} {kind}" for kind, count in counts.items())
            output += f": not carried by this format: {losses}\n\n".encode() if losses else b""
        return output

    def _encode_entry(self, entry: Entry) -> bytes:
        if self._encoder is None:
            return self._encode_canonical(entry)
        # also for an entry that the client has, because the encoder must see every event
        items = self._encoder.items(entry.event)
        if entry.position == self._skip and self._rest:
            return self._encode_items(items, entry.id, self._rest)
        return self._encode_items(items, entry.id) if entry.position > self._skip else b""

    def _encode_canonical(self, entry: Entry) -> bytes:
        text = entry.texts.get(self._framing)
        if text is None:
            line = encode_event(entry.event)
            if self._framing == "sse":
                text = b"id: %b\ndata: %b\n\n" % (entry.id.encode(), line)
            else:
                text = line + b"\n"
            entry.texts[self._framing] = text
        return text

    def _encode_items(self, items: Sequence[Item], number: str | None, rest: int = 0) -> bytes:
        """Return the bytes of an entry's items, over SSE only of the last `rest` (0: all)."""
        if not self._internal:
            items = [item for item in items if not _is_internal(item)]
        if self._framing == "ndjson":
            return b"".join(dumps(item.obj).encode() + b"\n" for item in items)
        items = items[-rest:]  # all for 0, since -0 is 0
        # each frame but the last names how many of them still follow
        following = reversed(range(len(items)))
        marks = [f".{count}" if count else "" for count in following]
        return "".join(
            item.write("sse", None if number is None else number + mark)
            for item, mark in zip(items, marks, strict=True)
        ).encode()

    def _encode_gap(self, gap: Gap) -> bytes:
        """Return a gap in the framing and format of the stream."""
        fields = {"run": gap.run, "reason": gap.reason, "after": gap.after, "missed": gap.missed}
        if self._framing == "sse":
            return Item(fields, "gap").write("sse").encode()
        if self._encoder is None:
            event = Extension(run=gap.run, namespace="hub", name="gap", payload=fields)
            return encode_event(event) + b"\n"
        return dumps({"type": "gap", "kind": "gap", **fields}).encode() + b"\n"


def _is_internal(item: Item) -> bool:
    kind = item.event or (item.obj.get("kind") if isinstance(item.obj, dict) else None)
    return isinstance(kind, str) and kind.startswith("internal:")
