"""What every reader of a foreign stream shares: the envelope of imported events, turns, and blocks
put together from deltas.

Rules
- Everything read is `origin: imported`; `extra[codec]` marks where it came from and holds what the
  canonical fields do not (see residue).
- A delta is passed on at once; when its block closes, the complete event follows with `chunks`
  (lengths and times of the deltas).
- A turn begins with the first word of the model after a result.
- A reader holds what is open, never what is past: memory does not grow with the stream.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, TypeVar

from ..events import Call, Delta, Event, Respond, Result, Think
from ..events.chunks import encode_chunks
from ..wire.json_text import dumps, loads
from .losses import Losses
from .passthrough import Shift, diff, same, shifted

E = TypeVar("E", bound=Event)
_MODEL = (Think, Respond, Call)
_ROOT: Mapping[str, Any] = {}


def run_id(codec: str, first: Any, number: int = 1) -> str:
    """Return an id for a run whose format gives none: 12 hex digits, the same for the same first
    object.
    """
    return hashlib.sha256(f"{codec} {number} {dumps(first)}".encode()).hexdigest()[:12]


def text_of(obj: Mapping[str, Any], key: str) -> str:
    """Return the string at `key`, or "" if there is none of that type (the residue keeps what there
    is).
    """
    value = obj.get(key)
    return value if isinstance(value, str) else ""


def arguments_of(value: Any) -> tuple[dict[str, Any], str]:
    """Return (arguments, their text) of a call whose arguments are an object, or the JSON text of
    one; what is neither are none.

    An object has a text only where its order would be lost in a notebook's file, which sorts keys.
    """
    if isinstance(value, dict):
        return value, "" if _is_sorted(value) else dumps(value)
    if not isinstance(value, str):
        return {}, ""
    try:
        parsed = loads(value)
    except (ValueError, RecursionError):
        parsed = None
    return parsed if isinstance(parsed, dict) else {}, value


def _is_sorted(value: Any) -> bool:
    if isinstance(value, dict):
        return list(value) == sorted(value) and all(map(_is_sorted, value.values()))
    return all(map(_is_sorted, value)) if isinstance(value, list) else True


class OpenBlock:
    """A block in progress."""

    __slots__ = (
        "base",
        "first",
        "frame",
        "id",
        "key",
        "lengths",
        "lines",
        "name",
        "note",
        "of",
        "since",
        "texts",
        "ts",
        "turn",
        "where",
    )

    def __init__(
        self, of: str, key: str, block_id: str, turn: int, where: Mapping[str, Any]
    ) -> None:
        self.of = of
        self.key = key
        self.id = block_id
        self.turn = turn
        self.where = where
        self.name = ""
        self.texts: list[str] = []
        self.lengths: list[tuple[int, int]] = []
        self.note: dict[str, Any] = {}  # of the first line
        self.lines: dict[str, Any] = {}  # of lines whose note does not follow from the one before
        # the note that the coming lines follow from, and the number of its line
        self.base = self.note
        self.first = 0
        # notes of the lines that open the block, where the protocol has such
        self.frame: dict[str, Any] = {}
        self.ts = 0.0
        self.since = 0

    @property
    def text(self) -> str:
        """The text so far."""
        return "".join(self.texts)


class Source:
    """One run being read: builds its events."""

    def __init__(
        self,
        codec: str,
        losses: Losses,
        shifts: Mapping[str, Shift] | None = None,
        prefix: str = "",
    ) -> None:
        self.codec = codec
        self.losses = losses
        self.run = ""
        self.turn = 0
        self.start = 0.0
        self._shifts = shifts or {}
        self._prefix = prefix  # of the ids of blocks, where several sources read one run
        self._after_result = False
        self._open: OpenBlock | None = None
        self._calls: dict[str, OpenBlock] = {}
        self._blocks = 0

    def make(self, cls: type[E], note: dict[str, Any] | None = None, **fields: Any) -> E:
        """Return an imported event; `note` is what its line holds beside the fields."""
        if cls in _MODEL:
            self._model_speaks()
        ts = fields.get("ts", 0.0)
        if ts and not self.start:
            self.start = ts
        fields.setdefault("turn", self.turn)
        event = cls(run=self.run, origin="imported", extra={self.codec: note or {}}, **fields)
        self._after_result = self._after_result or cls is Result
        return event

    def derived(self, cls: type[E], **fields: Any) -> E:
        """Return an event that follows from others and has no line of its own in this codec."""
        return self.make(cls, {"derived": True}, **fields)

    def new_run(self, run: str) -> None:
        """Begin another run: its turns count from 1."""
        self.run, self.turn, self.start, self._after_result = run, 0, 0.0, False

    def _model_speaks(self) -> None:
        if self._after_result or not self.turn:
            self.turn += 1
            self._after_result = False

    def delta(
        self,
        of: str,
        text: str,
        obj: Mapping[str, Any],
        drawn: Mapping[str, Any],
        *,
        key: str = "",
        ts: float = 0.0,
        where: Mapping[str, Any] = _ROOT,
    ) -> list[Event]:
        """Take a delta of text or reasoning: close what else is open, pass the delta on. `where`:
        its `path` and `span`.
        """
        out: list[Event] = []
        if self._open is not None and (self._open.of, self._open.key, self._open.where) != (
            of,
            key,
            where,
        ):
            out += self.close()
        if self._open is None:
            self._open = self._new(of, key, where)
        return [*out, self._add(self._open, text, obj, drawn, ts)]

    def call_delta(
        self,
        key: str,
        name: str,
        text: str,
        obj: Mapping[str, Any],
        drawn: Mapping[str, Any],
        *,
        ts: float = 0.0,
        where: Mapping[str, Any] = _ROOT,
    ) -> list[Event]:
        """Take a piece of the arguments of the call `key`; text that is open closes first."""
        out = self.close()
        block = self._calls.get(key)
        if block is None:
            block = self._calls[key] = self._new("call", key, where)
        block.name = block.name or name
        return [*out, self._add(block, text, obj, drawn, ts)]

    def open_block(
        self,
        of: str,
        key: str,
        frame: Mapping[str, Any],
        *,
        name: str = "",
        ts: float = 0.0,
        where: Mapping[str, Any] = _ROOT,
    ) -> Delta:
        """Open a block that the protocol opens with a line of its own, whose note is in `frame`; an
        empty delta tells of it.
        """
        block = self._calls[key] = self._new(of, key, where)
        block.name, block.frame = name, dict(frame)
        self._gap(block, ts)
        return Delta(
            run=self.run,
            turn=block.turn,
            ts=ts,
            origin="imported",
            extra={self.codec: block.frame},
            block=block.id,
            of=of,
            name=name,
            **where,
        )

    def block_delta(
        self,
        block: OpenBlock,
        text: str,
        obj: Mapping[str, Any],
        drawn: Mapping[str, Any],
        ts: float = 0.0,
    ) -> Delta:
        """Take a delta of a block that was opened."""
        return self._add(block, text, obj, drawn, ts)

    def complete(self, block: OpenBlock, cls: type[E], note: Mapping[str, Any], **fields: Any) -> E:
        """Return the event that a block adds up to."""
        return self._complete(cls, block, {**block.frame, **note}, **fields)

    def block(self, key: str) -> OpenBlock | None:
        """Return the open block `key`."""
        return self._calls.get(key)

    def take_call(self, key: str) -> OpenBlock | None:
        """Return the open call `key` and forget it."""
        return self._calls.pop(key, None)

    def open_calls(self) -> list[OpenBlock]:
        """Return the calls whose arguments are being written, in order of appearance."""
        return list(self._calls.values())

    def close(
        self, note: Mapping[str, Any] | None = None, *, incomplete: bool = False
    ) -> list[Event]:
        """Close the open text block, if any; `note` is added to its own."""
        block, self._open = self._open, None
        if block is None:
            return []
        cls = Think if block.of == "think" else Respond
        return [self._complete(cls, block, note, content=block.text, incomplete=incomplete)]

    @property
    def open_text(self) -> OpenBlock | None:
        """The open text block."""
        return self._open

    def complete_call(
        self, block: OpenBlock, note: Mapping[str, Any] | None = None, **fields: Any
    ) -> Event:
        """Return the call that the deltas of `block` add up to."""
        return self._complete(Call, block, note, raw_args=block.text, **fields)

    def _complete(
        self, cls: type[E], block: OpenBlock, note: Mapping[str, Any] | None, **fields: Any
    ) -> E:
        kept = {**block.note, **({"lines": block.lines} if block.lines else {}), **(note or {})}
        chunks = encode_chunks(block.lengths)
        if "chunks" in cls.__struct_fields__:
            fields = {"block": block.id, "chunks": chunks, **fields}
        else:
            kept.update(chunks=chunks, block=block.id)
        return self.make(cls, kept, turn=block.turn, ts=block.ts, **block.where, **fields)

    def _new(self, of: str, key: str, where: Mapping[str, Any]) -> OpenBlock:
        self._model_speaks()
        self._blocks += 1
        return OpenBlock(of, key, f"{self._prefix}{self.codec}-{self._blocks}", self.turn, where)

    def _add(
        self,
        block: OpenBlock,
        text: str,
        obj: Mapping[str, Any],
        drawn: Mapping[str, Any],
        ts: float,
    ) -> Delta:
        note = diff(obj, drawn)
        gap = self._gap(block, ts)
        count = len(block.lengths)
        block.since += gap
        if not count:
            block.note = block.base = note
            block.since = 0
        elif not same(note, shifted(block.base, self._shifts, count - block.first, block.since)):
            block.lines[str(count)] = block.base = note
            block.first, block.since = count, 0
        block.texts.append(text)
        block.lengths.append((len(text), gap))
        return Delta(
            run=self.run,
            turn=block.turn,
            ts=ts,
            origin="imported",
            extra={self.codec: note},
            block=block.id,
            of=block.of,
            name=block.name,
            text=text,
            **block.where,
        )

    def _gap(self, block: OpenBlock, ts: float) -> int:
        if ts and not self.start:
            self.start = ts
        before = block.ts if block.lengths else self.start
        block.ts = max(block.ts, ts)
        return max(round((ts - before) * 1000), 0) if ts and before else 0


class Spans:
    """Unique span ids for node names or ids that repeat."""

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}

    def take(self, wanted: str) -> str:
        """Return `wanted`, or `wanted#n` from its second use on."""
        count = self._seen[wanted] = self._seen.get(wanted, 0) + 1
        return wanted if count == 1 else f"{wanted}#{count}"
