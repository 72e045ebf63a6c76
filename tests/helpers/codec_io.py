"""Reading and writing with a codec in every way."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from agent_nb.codecs.base import Codec
from agent_nb.codecs.detect import named
from agent_nb.codecs.foreign_stream import ForeignStream
from agent_nb.codecs.sources import read_items
from agent_nb.events import Event, EventLog
from agent_nb.wire.sse import SSEDecoder


def objects(text: str) -> list[tuple[str, Any, str | None]]:
    """Return (event name, JSON value, own id) for each line or frame of a text, by the standard
    library and the wire room only.
    """
    if text.lstrip().startswith("{"):
        return [("", json.loads(line), None) for line in text.splitlines() if line.strip()]
    decoder, out, last = SSEDecoder(), [], None
    for frame in [*decoder.feed(text.encode()), *decoder.close()]:
        if frame.data != "[DONE]":
            out.append(
                (frame.event, json.loads(frame.data), frame.id if frame.id != last else None)
            )
        last = frame.id
    return out


def written(texts: Sequence[str]) -> str:
    """Return the text of a stream from the units of an encoder."""
    return "".join(t if t.endswith("\n\n") else t + "\n" for t in texts)


def logs(source: Any, codec: str | None = None) -> list[EventLog]:
    """Return a log for each run in `source`, in order; a run that broke off gets an end."""
    stream = ForeignStream(codec)
    events = [event for item in read_items(source) for event in stream.feed(item)]
    events += stream.close()
    settler = stream.new_settler()
    runs: dict[str, list[Event]] = {}
    for event in [*(e for each in events for e in settler.feed(each)), *settler.close()]:
        runs.setdefault(event.run, []).append(event)
    return [EventLog.of_events(e for e in run if e.type != "delta") for run in runs.values()]


class Tool:
    """Reading and writing with one codec (and form)."""

    def __init__(self, name: str) -> None:
        self.codec: Codec
        self.codec, self.form = named(name)

    def read(self, chunks: str | bytes | Iterable[Any], *, strict: bool = False) -> list[Event]:
        """Return every event, deltas included."""
        decoder = self.codec.decoder(strict=strict)
        pieces = [chunks] if isinstance(chunks, str | bytes) else chunks
        self.decoder = decoder
        return [e for piece in pieces for e in decoder.feed(piece)] + decoder.close()

    def write(self, events: Iterable[Event], *, strict: bool = False, **options: Any) -> list[str]:
        """Return the units of text."""
        encoder = self.codec.encoder(strict=strict, form=self.form, **options)
        self.encoder = encoder
        return [t for e in events for t in encoder.feed(e)] + encoder.close()

    def lines(self, events: Iterable[Event], **options: Any) -> list[Any]:
        """Return the written objects, without their framing."""
        return [json.loads(t) for t in self.write(events, framing="ndjson", **options)]
