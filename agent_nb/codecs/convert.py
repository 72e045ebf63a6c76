"""Reads runs in any format (`decode`), writes them (`encode`), translates a stream (`convert`).

The name of a format is the name of its codec, such as `loom`, or has a form too, such as
`loom:export`. Without a name the format is detected.

Rules
- `convert` holds only open blocks in memory, however long the stream; `decode` returns all stored
  events.
- A run translated into another format gets an end, even if its source broke off
  (`events.settler`).
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import IO, Any

import msgspec

from ..errors import UsageError
from ..events import Event, Numberer, Settler
from .contract import Encoder
from .detect import named
from .foreign_stream import ForeignStream
from .framing import Framing
from .losses import Losses
from .sources import is_live, read_items

Source = str | bytes | os.PathLike[str] | IO[bytes] | IO[str] | Iterable[Any]


def decode(
    source: Source, codec: str | None = None, *, strict: bool = False, losses: Losses | None = None
) -> list[Event]:
    """Return the events of the runs in `source`, written in the format `codec` (None: detected).

    `source`: a path, text or bytes (a `str` is text if it is blank, has several lines or begins
    like JSON or SSE, else a path), an open file, or an iterable of what `watch` takes: chunks,
    lines, objects, events. `losses` is filled with what could not be read. Raises UsageError on an
    unknown codec or item, a missing file or an unclear format, WireError with `strict`.
    """
    stream, numberer = ForeignStream(codec, strict=strict), Numberer()
    numbered = map(numberer.feed, _read_events(stream, read_items(source)))
    events = [event for event in numbered if event.type != "delta"]
    stream.require_codec()  # raises if the format is still unclear
    if losses is not None:
        losses.update(stream.losses)
    return events


def encode(
    events: Iterable[Event],
    codec: str,
    *,
    strict: bool = False,
    framing: Framing | None = None,
    conversation: str = "",
    losses: Losses | None = None,
) -> list[str]:
    """Write events in the format `codec`; return one text per JSON line or SSE frame.

    A line has no newline, a frame its blank line. `framing`: `ndjson` or `sse`, by default the
    format's own; `conversation`: the id of the session where the format has one. Raises UsageError
    on an unknown codec, WireError with `strict` when something has no place in the format.
    """
    target, form = named(codec)
    encoder = target.encoder(strict=strict, framing=framing, form=form, conversation=conversation)
    texts = [text for event in events for text in encoder.feed(event)]
    texts += encoder.close()
    if losses is not None:
        losses.update(encoder.losses)
    return texts


class Report(msgspec.Struct, frozen=True):
    """The result of a conversion: numbers of events read and texts written, losses of both.

    `source`, `target`: names of the formats. `events`: without deltas. `texts`: lines or frames.
    """

    source: str
    target: str
    events: int
    texts: int
    read: Losses
    written: Losses

    def __str__(self) -> str:
        noun = "event" if self.events == 1 else "events"
        report = f"{self.source} -> {self.target}: {self.events} {noun}, {self.texts} written"
        for title, losses in (("not read", self.read), ("not written", self.written)):
            if losses:
                report += f"\n{title}:\n{losses}"
        return report


def convert(
    reader: Source,
    writer: IO[str],
    from_: str | None,
    to: str,
    *,
    strict: bool = False,
    framing: Framing | None = None,
) -> Report:
    """Translate a stream as it comes, and return a report. `reader`: a source, as for `decode`.

    `from_` None: detected. Raises UsageError on unknown formats, WireError with `strict`; texts
    written before the error stay written.
    """
    stream = ForeignStream(from_, strict=strict)
    target, form = named(to)
    encoder = target.encoder(strict=strict, framing=framing, form=form)
    clock = time.monotonic if is_live(reader, follow=False) else None
    events = _read_events(stream, _flush_between(read_items(reader), writer), clock)
    read = written = 0
    for event in _prepare_events(stream, target.name, events):
        if event.type != "delta":
            read += 1
        elif target.name == "canonical":
            continue  # a file holds complete events; their pieces are in `chunks`
        written += _write_texts(encoder.feed(event), encoder, writer)
    written += _write_texts(encoder.close(), encoder, writer)
    writer.flush()
    return Report(stream.require_codec().name, to, read, written, stream.losses, encoder.losses)


def convert_files(
    source: str,
    target: str,
    from_: str | None,
    to: str,
    *,
    strict: bool = False,
    framing: Framing | None = None,
    output: Any = None,
) -> Report:
    """Translate the file `source` into the file `target`; this is `jupyter agent-nb convert`.

    `-` as `source` is stdin; as `target` it is `output` or, if that is None, stdout. An error
    before the first text leaves the file `target` as it was. Raises UsageError when a file cannot
    be opened, and all that `convert` raises.
    """
    try:
        with _open_input(source) as reader, _open_output(target, output) as writer:
            return convert(reader, writer, from_, to, strict=strict, framing=framing)
    except BrokenPipeError:
        raise  # the reader of our output has gone; the command line handles it
    except OSError as fault:
        raise UsageError(f"{fault.filename or source}: {fault.strerror or fault}") from fault


def _read_events(
    stream: ForeignStream, items: Iterable[Any], clock: Callable[[], float] | None = None
) -> Iterator[Event]:
    """Yield the events of a stream; a `clock` releases those that the codec holds for a time."""
    for item in items:
        yield from stream.feed(item)
        if clock is not None:
            yield from stream.tick(clock())
    yield from stream.close()


def _end_runs(stream: ForeignStream, events: Iterable[Event]) -> Iterator[Event]:
    """Yield the events of a stream, and the ends of runs that broke off."""
    settler: Settler | None = None
    for event in events:
        if settler is None:  # the codec is known by the first event
            settler = stream.new_settler()
        yield from settler.feed(event)
    if settler is not None:
        yield from settler.close()


def _prepare_events(stream: ForeignStream, target: str, events: Iterator[Event]) -> Iterator[Event]:
    """Yield the events numbered; if `target` is another format, add missing ends of runs."""
    numberer = Numberer()
    first = next(events, None)
    if first is None:
        return
    all_events = chain([first], events)
    same_format = stream.require_codec().name == target
    yield from map(numberer.feed, all_events if same_format else _end_runs(stream, all_events))


def _write_texts(texts: list[str], encoder: Encoder, writer: IO[str]) -> int:
    end = "\n" if encoder.framing == "ndjson" else ""
    for text in texts:
        writer.write(text + end)
    return len(texts)


def _flush_between(items: Iterator[Any], writer: IO[str]) -> Iterator[Any]:
    """Yield the items; flush `writer` before the next one, for which a live source may pause."""
    for item in items:
        yield item
        writer.flush()


def _open_input(name: str) -> Any:
    return Path(name).open("rb") if name != "-" else nullcontext(sys.stdin.buffer)


def _open_output(name: str, standard: Any) -> Any:
    if name != "-":
        return _LateFile(Path(name))
    # never closed here; `convert` flushes it
    return standard if standard is not None else nullcontext(sys.stdout)


class _LateFile:
    """A file to write, opened and emptied by the first text or by an end without an error."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @cached_property
    def _file(self) -> IO[str]:
        return self._path.open("w", encoding="utf-8", newline="")

    def __enter__(self) -> _LateFile:
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        if error is None or "_file" in vars(self):
            self._file.close()

    def write(self, text: str) -> int:
        return self._file.write(text)

    def flush(self) -> None:
        if "_file" in vars(self):
            self._file.flush()
