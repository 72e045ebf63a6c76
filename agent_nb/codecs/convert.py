"""Runs in any format: read them (`decode`), write them (`encode`), translate a stream in constant
memory (`convert`).

A format is named as the codec, `loom`, or with a form of it, `loom:export`; where none is named it
is detected.

Rules
- `decode` and `convert` read bytes in chunks and hold what is open, never what is past; `decode`
  returns stored events only (a block's deltas are in its `chunks`).
- What was lost on the way is counted in `Losses`, and with `strict` it is a WireError.
- A run that is translated into another format ends properly, also when its source broke off (see
  codecs/settle).
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import msgspec

from ..errors import UsageError
from ..events import Event
from ..events.completion import Numberer, Settler
from ..events.log import EventLog
from ..wire.json_text import dumps, plain
from .base import Codec, Decoder, Encoder
from .detect import HEAD, LINES, SURE, detect, named, scores
from .framing import Framing
from .losses import Losses
from .sources import is_live

CHUNK = 64 * 1024
Source = str | bytes | os.PathLike[str] | IO[bytes] | IO[str] | Iterable[Any]
_TEXT_STARTS = ("{", "[", ":", "data:", "event:", "id:", "retry:", "\ufeff")


def decode(
    source: Source, codec: str | None = None, *, strict: bool = False, losses: Losses | None = None
) -> list[Event]:
    """Return the events of a run, or of several, that is written in the format `codec` (None:
    detected).

    `source`: a path, text or bytes (a `str` that begins like JSON or SSE is text, any other is a
    path), an open file, or an iterable of chunks, lines or decoded objects. `losses` is filled with
    what could not be read. Raises UsageError on an unknown codec, a missing file or a format that
    is not clear, WireError with `strict`.
    """
    chunks = _whole(_chunks(source))
    reader, chunks = _codec(codec, chunks)
    decoder = reader.decoder(strict=strict)
    numberer = Numberer()
    events = [
        e for event in _events(decoder, chunks) if (e := numberer.feed(event)).type != "delta"
    ]
    if losses is not None:
        losses.update(decoder.losses)
    return events


def logs(
    source: Source, codec: str | None = None, *, losses: Losses | None = None
) -> list[EventLog]:
    """Return one log for each run in `source`, in order of appearance; a run that broke off is
    ended. Parameters as of `decode`.
    """
    chunks = _whole(_chunks(source))
    reader, chunks = _codec(codec, chunks)
    decoder, settler = reader.decoder(), Settler(reader.name, interleaves=reader.interleaves)
    runs: dict[str, list[Event]] = {}
    for event in _events(decoder, chunks):
        for settled in settler.feed(event):
            runs.setdefault(settled.run, []).append(settled)
    for event in settler.close():
        runs.setdefault(event.run, []).append(event)
    if losses is not None:
        losses.update(decoder.losses)
    return [EventLog.of_events(e for e in events if e.type != "delta") for events in runs.values()]


def encode(
    events: Iterable[Event],
    codec: str,
    *,
    strict: bool = False,
    framing: Framing | None = None,
    conversation: str = "",
    losses: Losses | None = None,
) -> list[str]:
    """Write events in the format `codec`: one text per JSON line (without newline) or SSE frame
    (with its blank line).

    `framing`: `ndjson` or `sse`, by default the format's own; `conversation`: the id of the session
    where the format has one. Raises UsageError on an unknown codec, WireError with `strict` when
    something has no place in the format.
    """
    target, form = named(codec)
    encoder = target.encoder(strict=strict, framing=framing, form=form, conversation=conversation)
    texts = [text for event in events for text in encoder.feed(event)]
    texts += encoder.close()
    if losses is not None:
        losses.update(encoder.losses)
    return texts


class Report(msgspec.Struct):
    """What a conversion did: events read, texts written, and what was lost in reading and in
    writing.
    """

    source: str
    target: str
    events: int = 0
    texts: int = 0
    read: Losses = msgspec.field(default_factory=Losses)
    written: Losses = msgspec.field(default_factory=Losses)

    def __str__(self) -> str:
        lost = "".join(
            f"\n{name}:\n{losses}"
            for name, losses in (("not read", self.read), ("not written", self.written))
            if losses
        )
        return f"{self.source} -> {self.target}: {self.events} event{'' if self.events == 1 else 's'}, {self.texts} written{lost}"


def convert(
    reader: Source,
    writer: IO[str],
    from_: str | None,
    to: str,
    *,
    strict: bool = False,
    framing: Framing | None = None,
) -> Report:
    """Translate a stream as it comes, in constant memory. `reader` as the source of `decode`,
    `from_` None: detected.

    Raises UsageError on unknown formats, WireError with `strict`; what was written until then stays
    written.
    """
    source, chunks = _codec(from_, _flushing(_chunks(reader), writer))
    target, form = named(to)
    decoder = source.decoder(strict=strict)
    encoder = target.encoder(strict=strict, framing=framing, form=form)
    report = Report(source.name, to, read=decoder.losses, written=encoder.losses)
    clock = time.monotonic if is_live(reader, follow=False) else None
    for event in _settled(_events(decoder, chunks, clock), source, target):
        if event.type != "delta":
            report.events += 1
        elif target.name == "canonical":
            continue  # a file holds complete events; their pieces are in `chunks`
        _write(encoder.feed(event), encoder, writer, report)
    _write(encoder.close(), encoder, writer, report)
    writer.flush()
    return report


def command(
    source: str,
    target: str,
    from_: str | None,
    to: str,
    *,
    strict: bool = False,
    framing: Framing | None = None,
) -> Report:
    """Translate the file `source` into the file `target` (`-`: stdin, stdout); what `jupyter
    agent-nb convert` does.

    Raises UsageError when a file cannot be opened, else as `convert`.
    """
    try:
        with _input(source) as reader, _output(target) as writer:
            return convert(reader, writer, from_, to, strict=strict, framing=framing)
    except BrokenPipeError:
        raise  # the reader of our output has gone: the command line knows what to do
    except OSError as fault:
        raise UsageError(f"{fault.filename or source}: {fault.strerror or fault}") from fault


def _settled(events: Iterable[Event], source: Codec, target: Codec) -> Iterator[Event]:
    """Yield the events numbered, and ended properly where they go into another format."""
    numberer = Numberer()
    if source.name == target.name:
        yield from map(numberer.feed, events)
        return
    settler = Settler(source.name, interleaves=source.interleaves)
    for event in events:
        for settled in settler.feed(event):
            yield numberer.feed(settled)
    yield from map(numberer.feed, settler.close())


def _write(texts: Iterable[str], encoder: Encoder, writer: IO[str], report: Report) -> None:
    end = "\n" if encoder.framing == "ndjson" else ""
    for text in texts:
        writer.write(text + end)
        report.texts += 1


def _events(
    decoder: Decoder, chunks: Iterable[Any], clock: Callable[[], float] | None = None
) -> Iterator[Event]:
    """Yield the events of a stream; with a `clock` as it comes, else those of a whole one."""
    for chunk in chunks:
        yield from decoder.read(chunk) if isinstance(chunk, Mapping) else decoder.feed(chunk)
        if clock is not None:
            yield from decoder.tick(clock())
    yield from decoder.close()


def _codec(name: str | None, chunks: Iterator[Any]) -> tuple[Codec, Iterator[Any]]:
    """Return the codec that is named, or that the first chunks speak, and all chunks."""
    if name is not None:
        return named(name)[0], chunks
    head: list[Any] = []
    text = b""
    for chunk in chunks:
        head.append(chunk)
        text += _as_bytes(chunk)
        if (
            len(text) >= HEAD
            or text.count(b"\n") >= LINES
            or (b"\n" in text and scores(text)[0][0] >= SURE)
        ):
            break
    return detect(text), _chain(head, chunks)


def _chain(head: list[Any], rest: Iterator[Any]) -> Iterator[Any]:
    yield from head
    yield from rest


def _as_bytes(chunk: Any) -> bytes:
    if isinstance(chunk, Mapping):
        return dumps(plain(chunk)[0]).encode() + b"\n"
    return chunk.encode("utf-8", "replace") if isinstance(chunk, str) else bytes(chunk)


def _chunks(source: Source) -> Iterator[Any]:
    """Yield the chunks of a source."""
    if isinstance(source, bytes | bytearray | memoryview):
        yield bytes(source)
    elif isinstance(source, str) and (
        not source.strip() or "\n" in source.strip() or source.lstrip().startswith(_TEXT_STARTS)
    ):
        yield source
    elif isinstance(source, str | os.PathLike):
        yield from _file(Path(source))
    elif hasattr(source, "read"):
        yield from _read(source)
    else:
        yield from _lines(source)


def _flushing(chunks: Iterator[Any], writer: IO[str]) -> Iterator[Any]:
    """Yield the chunks; what became of one is passed on before the next is waited for."""
    for chunk in chunks:
        yield chunk
        writer.flush()


def _file(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as file:
            yield from _read(file)
    except OSError as fault:
        raise UsageError(
            f"{path}: {fault.strerror or fault}. A text to decode begins with {{ or data:."
        ) from fault


def _read(file: Any) -> Iterator[Any]:
    """Yield what there is as soon as it is there (`read1` where the file has it), so that a pipe is
    translated live.
    """
    read = getattr(file, "read1", None) or file.read
    while chunk := read(CHUNK):
        yield chunk


def _lines(items: Iterable[Any]) -> Iterator[Any]:
    """Yield the chunks of an iterable; whole JSON lines get the newline that they were
    stripped of.
    """
    fresh = True
    for item in items:
        if isinstance(item, Mapping):
            yield item
            continue
        data = item.encode("utf-8", "replace") if isinstance(item, str) else bytes(item)
        if fresh and data[:1] == b"{" and data[-1:] == b"}" and _is_json(data):
            data += b"\n"
        fresh = data[-1:] == b"\n" if data else fresh
        yield data


def _is_json(data: bytes) -> bool:
    try:
        msgspec.json.decode(data, type=msgspec.Raw)
    except (ValueError, RecursionError):
        return False
    return True


def _whole(chunks: Iterator[Any]) -> Iterator[Any]:
    """Yield the chunks; one that is a single JSON value over several lines (an example out of a
    document) as one line.
    """
    for chunk in chunks:
        data = chunk.encode("utf-8", "replace") if isinstance(chunk, str) else chunk
        if (
            isinstance(data, bytes)
            and data.lstrip()[:1] == b"{"
            and b"\n" in data.strip()
            and _is_json(data)
        ):
            yield b" ".join(data.split(b"\n")) + b"\n"
        else:
            yield chunk


def _input(name: str) -> Any:
    return Path(name).open("rb") if name != "-" else _Kept(sys.stdin.buffer)


def _output(name: str) -> Any:
    return Path(name).open("w", encoding="utf-8", newline="") if name != "-" else _Kept(sys.stdout)


class _Kept:
    """A standard stream in a `with`: it is not ours to close."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __enter__(self) -> Any:
        return self._stream

    def __exit__(self, *_: object) -> None:
        self._stream.flush()
