"""Assembles the blocks of an imported run (thoughts, answers, arguments) from their deltas.

A delta is passed on at once; when its block closes, the complete event follows with `chunks`. A
record stores whole events, yet an export must write the original lines again, so each block also
stores a note of each line: the fields in which it differs from the line that we would write.

Rule: text without a start line opens a block with its first delta, which closes the text before.
Calls, and blocks with a start line, may be open side by side, until `take_block`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from ..events import Call, Delta, Event, Respond, Think, encode_chunks
from .passthrough import Shift, is_same_json, note_difference, shift_note
from .run_builder import Obj, RunBuilder

E = TypeVar("E", bound=Event)
_EMPTY: Mapping[str, Any] = {}


class OpenBlock(msgspec.Struct, eq=False):
    """A block in progress.

    `of`: the kind of its event (`think`, `respond`, `call`, `user`). `key`: its id in the stream;
    `id`: its id in our events. `where`: the fields `path` and `span` of its events. `name`: the
    tool of a call. `frame`: the notes of the lines that opened it.
    """

    of: str
    key: str
    id: str
    turn: int
    where: Mapping[str, Any]
    name: str
    frame: dict[str, Any]
    texts: list[str] = []
    lengths: list[tuple[int, int]] = []  # (characters, milliseconds before) of each delta
    note: dict[str, Any] = {}  # the note of the first line
    lines: dict[str, Any] = {}  # line number -> each later note that had to be stored
    base: dict[str, Any] = {}  # the newest stored note, from which later ones are derived
    base_number: int = 0  # the line number of `base`
    base_age: int = 0  # milliseconds since the line of `base`
    ts: float = 0.0  # the newest time, epoch seconds

    @property
    def text(self) -> str:
        """The text so far."""
        return "".join(self.texts)

    def add(self, text: str, note: dict[str, Any], gap: int, shifts: Mapping[str, Shift]) -> None:
        """Append the text of a line, with its note; `gap`: the milliseconds since the line before.

        The note is stored only if `shift_note` cannot derive it from the last stored one.
        """
        number = len(self.lengths)
        lines, age = number - self.base_number, self.base_age + gap
        if number and is_same_json(note, shift_note(self.base, shifts, lines, age)):
            self.base_age = age
        else:
            self.base, self.base_number, self.base_age = note, number, 0
            if number:
                self.lines[str(number)] = note
            else:
                self.note = note
        self.texts.append(text)
        self.lengths.append((len(text), gap))

    def measure_gap(self, ts: float, start: float) -> int:
        """Return the milliseconds since the last delta, or the run's `start`; remember `ts`."""
        before = self.ts if self.lengths else start
        self.ts = max(self.ts, ts)
        # lines may have no time (0), or come out of order: neither gives a negative gap
        return max(round((ts - before) * 1000), 0) if ts and before else 0

    def set_name(self, name: str) -> None:
        """Set the tool of a call, unless it is known."""
        self.name = self.name or name


class Blocks:
    """The blocks of one run.

    `shifts`: the fields that grow from line to line, such as a sequence number (see `passthrough`).
    `prefix` makes block ids unique where several readers build one run. In the methods, `obj` is a
    line of the stream, `drawn` the same line as we would write it; where they differ is the line's
    note. The time and place of a line come from the envelope that `run` reads in it.
    """

    def __init__(
        self, run: RunBuilder, shifts: Mapping[str, Shift] | None = None, prefix: str = ""
    ) -> None:
        self._run = run
        self._shifts = shifts or {}
        self._prefix = prefix
        self._text: OpenBlock | None = None  # the open text that has no start line
        self._keyed: dict[str, OpenBlock] = {}  # key in the stream -> open call or started block
        self._count = 0

    # Text and reasoning that open and close by themselves.

    def add_text(
        self, of: str, text: str, obj: Obj, drawn: Mapping[str, Any], *, key: str = ""
    ) -> list[Event]:
        """Add a delta of text or reasoning; if another text is open, it closes first."""
        out: list[Event] = []
        ts, where = self._read_envelope(obj)
        block = self._text
        if block is None or (block.of, block.key, block.where) != (of, key, where):
            out = self.close_text()
            block = self._text = self._new(of, key, where)
        return [*out, self._add(block, text, note_difference(obj, drawn), ts)]

    def close_text(
        self, note: Mapping[str, Any] | None = None, *, incomplete: bool = False
    ) -> list[Event]:
        """Return the event of the open text, if any, and close it; `note` is added to its note."""
        block, self._text = self._text, None
        if block is None:
            return []
        cls = Think if block.of == "think" else Respond
        return [self._event(cls, block, note, content=block.text, incomplete=incomplete)]

    @property
    def open_text(self) -> OpenBlock | None:
        """The open block of text or reasoning that has no start line."""
        return self._text

    # Calls, and blocks that a line opens.

    def add_arguments(
        self, key: str, name: str, text: str, obj: Obj, drawn: Mapping[str, Any]
    ) -> list[Event]:
        """Add a piece of the arguments of the call `key`; open text closes first."""
        out = self.close_text()
        ts, where = self._read_envelope(obj)
        block = self._keyed.get(key)
        if block is None:
            block = self._keyed[key] = self._new("call", key, where)
        block.set_name(name)
        return [*out, self._add(block, text, note_difference(obj, drawn), ts)]

    def start_block(
        self, of: str, key: str, obj: Obj, note: Mapping[str, Any], name: str = ""
    ) -> Delta:
        """Open the block `key` at its start line, whose note is `note`; return an empty delta."""
        block = self.open_block(of, key, obj, name, note)
        ts, _ = self._read_envelope(obj)
        self._record_time(block, ts)
        return self._delta(block, block.frame, ts)

    def open_block(
        self, of: str, key: str, obj: Obj, name: str = "", note: Mapping[str, Any] = _EMPTY
    ) -> OpenBlock:
        """Open the block `key` and return it; `note`: of its start line, if `obj` is one."""
        _, where = self._read_envelope(obj)
        block = self._keyed[key] = self._new(of, key, where, name=name, frame=note)
        return block

    def add_delta(self, block: OpenBlock, text: str, obj: Obj, drawn: Mapping[str, Any]) -> Delta:
        """Add a delta to an open block."""
        ts, _ = self._read_envelope(obj)
        return self._add(block, text, note_difference(obj, drawn), ts)

    def find_block(self, key: str) -> OpenBlock | None:
        """Return the open block `key`."""
        return self._keyed.get(key)

    def take_block(self, key: str) -> OpenBlock | None:
        """Return the open block `key` and forget it."""
        return self._keyed.pop(key, None)

    def list_open(self) -> list[OpenBlock]:
        """Return the open calls and the open blocks with a start line, in order of appearance."""
        return list(self._keyed.values())

    def complete_block(
        self, block: OpenBlock, cls: type[E], note: Mapping[str, Any], **fields: Any
    ) -> E:
        """Return the event of a block that has a start line; `note` is added to its note."""
        return self._event(cls, block, {**block.frame, **note}, **fields)

    def complete_call(
        self, block: OpenBlock, note: Mapping[str, Any] | None = None, **fields: Any
    ) -> Call:
        """Return the call that the deltas of `block` add up to."""
        return self._event(Call, block, note, **{**fields, "raw_args": block.text})

    def _read_envelope(self, obj: Obj) -> tuple[float, Mapping[str, Any]]:
        """Return the time of a line (epoch seconds, 0: unknown), and the place of its block."""
        where = self._run.envelope(obj)
        return where.pop("ts", 0.0), where

    def _add(self, block: OpenBlock, text: str, note: dict[str, Any], ts: float) -> Delta:
        block.add(text, note, self._record_time(block, ts), self._shifts)
        return self._delta(block, note, ts, text)

    def _event(
        self, cls: type[E], block: OpenBlock, note: Mapping[str, Any] | None, **fields: Any
    ) -> E:
        """Return the complete event of a block; a kind without `chunks` keeps them in its note."""
        lines = {"lines": block.lines} if block.lines else {}
        full_note = {**block.note, **lines, **(note or {})}
        chunks = encode_chunks(block.lengths)
        if "chunks" in cls.__struct_fields__:
            fields = {"block": block.id, "chunks": chunks, **fields}
        else:
            full_note.update(chunks=chunks, block=block.id)
        return self._run.make(cls, full_note, turn=block.turn, ts=block.ts, **block.where, **fields)

    def _new(
        self,
        of: str,
        key: str,
        where: Mapping[str, Any],
        *,
        name: str = "",
        frame: Mapping[str, Any] = _EMPTY,
    ) -> OpenBlock:
        """Return a new block of the current turn."""
        self._run.begin_model_output()
        self._count += 1
        number = f"{self._prefix}{self._run.codec}-{self._count}"
        return OpenBlock(of, key, number, self._run.turn, where, name, dict(frame))

    def _delta(self, block: OpenBlock, note: dict[str, Any], ts: float, text: str = "") -> Delta:
        return Delta(
            run=self._run.run,
            turn=block.turn,
            ts=ts,
            origin="imported",
            extra={self._run.codec: note},
            block=block.id,
            of=block.of,
            name=block.name,
            text=text,
            **block.where,
        )

    def _record_time(self, block: OpenBlock, ts: float) -> int:
        """Record the time of a line; return the milliseconds since the block's last delta."""
        self._run.record_time(ts)
        return block.measure_gap(ts, self._run.start)
