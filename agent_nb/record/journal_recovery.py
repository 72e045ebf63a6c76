"""Read runs back from their journals, after the kernel or the page was lost.

Why apart from `journal`: writing must be quick and simple, reading must cope with damaged files,
such as a last line that was written in part.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from .. import events
from ..events import Delta, Event, EventLog, complete_log, decode_event, encode_chunks, event_from
from .journal import HIDDEN, Header, Journal
from .packing import Home, Unpacker

_HEAD = 256 * 1024  # bytes that a listing reads at the beginning of a file, for header and prompt
_TAIL = 64 * 1024  # bytes that it reads at the end, for the last event
# the fields that a block has in common with its deltas
_SHARED = ("run", "turn", "span", "parent", "path", "origin", "block")
_BLOCKS = ("think", "respond", "call")  # kinds of deltas whose unfinished blocks are kept


class RecoverableRun(msgspec.Struct, frozen=True, kw_only=True):
    """The summary of a journal on disk, as a listing shows it.

    `status`: the status of the run's end; without an end, `running` while a process writes the
    journal, else `lost`.
    """

    path: Path
    header: Header
    status: str
    prompt: str = ""
    size: int = 0  # bytes

    @classmethod
    def list_all(
        cls, known: Iterable[str] = (), *, where: Path | None = None
    ) -> list[RecoverableRun]:
        """Return the journals of runs whose ids are not `known`, newest first.

        `where`: the folder of the journals (None: the user's). Unreadable files and runs without an
        event are left out.
        """
        ids = set(known)
        summaries = map(RecoverableRun.summarize, Journal.files(where))
        listed = [run for run in summaries if run is not None and run.header.run not in ids]
        return sorted(listed, key=lambda run: run.header.started, reverse=True)

    @staticmethod
    def summarize(path: Path) -> RecoverableRun | None:
        """Read the two ends of a journal; None if it cannot be read or has no event."""
        try:
            with path.open("rb") as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(0)
                head = file.read(_HEAD).split(b"\n")
                file.seek(max(0, size - _TAIL))
                tail = file.read(_TAIL).split(b"\n")
        except OSError:
            return None
        # the last line may be cut off here: it then cannot be parsed, and is skipped
        first_events = _parse_events(head[1:])
        # the first event of a larger file may be longer than what was read
        if not first_events and size <= _HEAD:
            return None
        prompt = next((e.content for e in first_events if isinstance(e, events.User)), "")
        # each event ends with a line break, so the last event is in the last line but one
        last = next(iter(_parse_events(tail[-2:-1])), None)
        ended = last.status if isinstance(last, events.End) and not last.span else ""
        return RecoverableRun(
            path=path,
            header=_parse_header(head[0]),
            status=ended or ("running" if Journal.is_being_written(path) else "lost"),
            prompt=prompt,
            size=size,
        )

    @staticmethod
    def recover(path: str | Path) -> EventLog:
        """Return the log of a journal, closed as interrupted if it has no end. Raises OSError.

        A block that was still being written becomes an incomplete block.
        """
        return EventLog.of_events(complete_log(RecoverableRun.read_events(Path(path))))

    @staticmethod
    def read_events(path: Path) -> list[Event]:
        """Return the events of a journal without the end that `recover` adds. Raises OSError."""
        return fold_deltas(read_journal(path))


def read_journal(path: Path) -> list[Event]:
    """Return all events of a journal, deltas included. Raises OSError."""
    return _parse_events(path.read_bytes().split(b"\n")[1:])


def fold_deltas(stream: Iterable[Event]) -> list[Event]:
    """Return the events of a stream without deltas.

    The deltas of a block that never ended become an incomplete block at the end.
    """
    stored: list[Event] = []
    open_blocks: dict[str, list[Delta]] = {}
    for event in stream:
        if not isinstance(event, Delta):
            stored.append(event)
            # the event of a block contains the text of its deltas
            open_blocks.pop(getattr(event, "block", ""), None)
        elif event.of in _BLOCKS and event.block:
            open_blocks.setdefault(event.block, []).append(event)
    start = stored[0].ts if stored else next((d[0].ts for d in open_blocks.values()), 0.0)
    for seq, pieces in enumerate(open_blocks.values(), len(stored) + 1):
        stored.append(_make_block(pieces, start, seq))
    return stored


def _make_block(pieces: list[Delta], start: float, seq: int) -> Event:
    """Return the event of an unfinished block.

    `start`: the time of the run's first event, from which the first gap of `chunks` counts.
    """
    first, latest = pieces[0], round(start * 1000)  # milliseconds
    pairs: list[tuple[int, int]] = []  # characters, and milliseconds since the piece before
    for piece in pieces:
        now = round(piece.ts * 1000)
        pairs.append((len(piece.text), max(now - latest, 0)))
        latest = max(now, latest)
    fields: dict[str, Any] = {
        "seq": seq,
        "ts": pieces[-1].ts,
        "incomplete": True,
        "chunks": encode_chunks(pairs),
        **{name: getattr(first, name) for name in _SHARED},
    }
    text = "".join(p.text for p in pieces)
    if first.of != "call":
        return (events.Think if first.of == "think" else events.Respond)(content=text, **fields)
    name, call_id = next((p.name for p in pieces if p.name), ""), f"lost_{first.block}"
    return events.Call(call_id=call_id, synthetic=True, name=name, raw_args=text, **fields)


def _parse_header(line: bytes) -> Header:
    """Return the header of a journal, an empty one if it cannot be read."""
    with suppress(ValueError):
        return msgspec.json.decode(line, type=Header)
    return Header()


def _parse_events(lines: Iterable[bytes]) -> list[Event]:
    """Return the events of lines; empty, torn and foreign ones are skipped."""
    home, prefix = Home.of_user(), f'{{"{HIDDEN}":'.encode()
    parsed: list[Event] = []
    for line in filter(bytes.strip, lines):
        with suppress(ValueError, RecursionError):
            if line.startswith(prefix):
                hidden = msgspec.json.decode(line)[HIDDEN]
                parsed.append(event_from(Unpacker({}, home).unpack(hidden)))
            else:
                parsed.append(decode_event(line))
    return parsed
