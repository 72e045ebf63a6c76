"""Read and write protocols whose blocks have start, delta and end lines with the block's id.

Why shared: AG-UI and the UI message stream differ in the names of these lines only (`BlockForm`).

Rules
- A start line becomes an empty delta, so that a stream translated live keeps its lines in order.
- The end of the run closes open blocks as incomplete. A delta without a start opens its block.
- A second start of an open block begins another block. A call that begins again gets another id.
- Type and text of the lines become fields of the event; their ids, names and roles are in its note.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ..events import Call, Delta, Event, Respond, Think, User
from .blocks import Blocks, OpenBlock
from .call_matching import CallMatcher
from .foreign_values import object_of, parse_json, text_of
from .passthrough import note_difference, restore_object
from .run_builder import Obj, RunBuilder
from .writing import LiveBlocks, delta_lines

_CLASSES: dict[str, type[Event]] = {"respond": Respond, "think": Think, "user": User}


class BlockForm(msgspec.Struct, frozen=True):
    """How a protocol writes one kind of block.

    `of`: the kind of event that the block becomes. `start`, `delta`, `end`: the types of its lines.
    `id`, `text`: the fields of a line that hold the block's id, and the text of a delta.
    """

    of: str
    start: str
    delta: str
    end: str
    id: str
    text: str

    def key(self, obj: Obj) -> str:
        """Return the key, unique in the stream, of the block that a line names."""
        return f"{self.start}:{text_of(obj, self.id)}"


class BlockReader:
    """Reads the blocks of one stream; `calls` matches lines to the calls of its run."""

    def __init__(self, run: RunBuilder, blocks: Blocks, calls: CallMatcher) -> None:
        self._run, self._blocks, self._calls = run, blocks, calls

    def start(self, form: BlockForm, obj: Obj, *, of: str = "", name: str = "") -> list[Event]:
        """Read a start line; an open block with the same id first closes as incomplete."""
        key, out = form.key(obj), list[Event]()
        if cut := self._blocks.take(key):
            out.append(self.complete(cut, {}, incomplete=True))
            if cut.of == "call":
                self._calls.match_result(cut.name, _wire_id(cut))
        if form.of == "call":
            self._calls.open_call(name, text_of(obj, form.id))
        ts, where = self._read_envelope(obj)
        note = {"start": note_difference(obj, {"type": form.start})}
        return [*out, self._blocks.start(of or form.of, key, note, name=name, ts=ts, where=where)]

    def delta(self, form: BlockForm, obj: Obj) -> list[Event]:
        """Read a delta line; one without text, or for a call that is not open, is unknown."""
        text, key = obj.get(form.text), form.key(obj)
        block = self._blocks.get(key)
        if not isinstance(text, str) or (form.of == "call" and block is None):
            return self._run.unknown(obj)
        ts, where = self._read_envelope(obj)
        if block is None:
            self._blocks.start(form.of, key, {}, ts=ts, where=where)
            block = self._blocks.get(key)
        assert block is not None
        return [self._blocks.add(block, text, obj, {"type": form.delta, form.text: text}, ts)]

    def end(self, form: BlockForm, obj: Obj) -> list[Event]:
        """Read an end line; it is unknown if its block is not open."""
        block = self._blocks.take(form.key(obj))
        if block is None:
            return self._run.unknown(obj)
        return [self.complete(block, {"end": note_difference(obj, {"type": form.end})})]

    def cut_off(self) -> list[Event]:
        """Close all open blocks, as incomplete."""
        blocks = [self._blocks.take(block.key) for block in self._blocks.open()]
        return [self.complete(block, {}, incomplete=True) for block in blocks if block]

    def complete(
        self, block: OpenBlock, note: Obj, *, incomplete: bool = False, **fields: Any
    ) -> Event:
        """Return the event of a block."""
        if block.of == "call":
            call = {
                "call_id": self._calls.own_id(_wire_id(block)),
                "args": object_of(parse_json(block.text)),
                "name": block.name,
                "incomplete": incomplete,
                "raw_args": block.text,
            }
            return self._blocks.complete(block, Call, note, **{**call, **fields})
        extra = {} if block.of == "user" else {"incomplete": incomplete}
        cls = _CLASSES[block.of]
        return self._blocks.complete(block, cls, note, content=block.text, **extra, **fields)

    def _read_envelope(self, obj: Obj) -> tuple[float, Obj]:
        where = self._run.envelope(obj)
        return where.pop("ts", 0.0), where


def _wire_id(block: OpenBlock) -> str:
    """Return the id that the stream gave a block; see `BlockForm.key`."""
    return block.key.partition(":")[2]


class BlockWriter:
    """Writes imported blocks back unchanged. `forms`: kind of event -> how it is written."""

    def __init__(self, forms: Mapping[str, BlockForm], live: LiveBlocks) -> None:
        self._forms, self._live = forms, live

    def delta(self, event: Delta, note: Obj) -> list[Obj]:
        """Write a live delta."""
        form = self._forms.get(event.of)
        if form is None:
            return []
        self._live.add(event)
        start = note.get("start")
        if isinstance(start, dict):
            return [restore_object({"type": form.start}, start)]
        return [restore_object({"type": form.delta, form.text: event.text}, note)]

    def block(self, event: Think | Respond | Call | User, note: Obj) -> list[Obj]:
        """Write a stored block, or only its end if its deltas have been written."""
        form, start, end = self._forms[event.type], note.get("start"), note.get("end")
        out: list[Obj] = []
        if not self._live.take(event, str(note.get("block", ""))):
            out = [restore_object({"type": form.start}, start)] if isinstance(start, dict) else []
            out += [
                restore_object({"type": form.delta, form.text: text}, n)
                for text, n in delta_lines(event, note, {})
            ]
        return [*out, restore_object({"type": form.end}, end)] if isinstance(end, dict) else out
