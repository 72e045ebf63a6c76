"""Read and write protocols whose blocks have start, delta and end lines with the block's id.

Why shared: the blocks of AG-UI and of the UI message stream differ in the names of their lines only
(`BlockForm`). The reader and the writer of each extend the two classes here.

Rules
- A stream holds any number of runs, one after the other. A run may lack its start line; a second
  start line begins another run even if the first run has no end. A run whose id came before gets
  another one.
- A start line becomes an empty delta, so that a stream translated live keeps its lines in order.
- The end of the run closes open blocks as incomplete. A delta without a start opens its block.
- A second start of an open block begins another block. A call that begins again gets another id.
- Type and text of the lines become fields of the event; their ids, names and roles are in its note.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import msgspec

from ..events import Call, Delta, Event, Extension, Respond, Think, User
from ..wire import as_dict
from .blocks import Blocks, OpenBlock
from .call_matching import CallMatcher
from .foreign_values import parse_json, run_id, text_of
from .passthrough import note_difference, restore_object
from .provenance import note_of
from .run_builder import (
    Drawings,
    EventHandlers,
    LineHandlers,
    Obj,
    RunBuilder,
    UniqueIds,
    handler_of,
)
from .writing import LiveBlocks, restore_line, split_block, split_delta_lines

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
    text: str = "delta"

    def key(self, obj: Obj) -> str:
        """Return the key, unique in the stream, of the block that a line names."""
        return f"{self.start}:{text_of(obj, self.id)}"


class BlockReader(ABC):
    """Reads the runs and blocks of one stream; a subclass adds the lines of its protocol."""

    #: Type of an object -> the method that reads it; any other type is read by `unknown`.
    HANDLERS: ClassVar[LineHandlers]
    #: Type of the line that starts a run.
    START: ClassVar[str]
    #: Type of a line -> the form of its block.
    FORMS: ClassVar[Mapping[str, BlockForm]]
    #: Type of a piece of a text without start and end lines -> the kind of that text's event. A
    #: line of any other type ends the text.
    CHUNKS: ClassVar[Mapping[str, str]] = {}

    def __init__(self, run: RunBuilder) -> None:
        self._run = run
        self._calls = CallMatcher()
        self._blocks = Blocks(run)
        self._runs = 0
        self._run_ids = UniqueIds()
        self._over = False  # the newest run has ended

    def read_object(self, obj: Obj) -> list[Event]:
        """Return the events of one object; it begins a run if it is a start, or follows an end."""
        kind = obj.get("type")
        out: list[Event] = []
        if not self._runs or self._over or kind == self.START:
            out += self.close()
            self._begin(obj)
        has_text = self._blocks.open_text is not None
        if has_text and not (isinstance(kind, str) and kind in self.CHUNKS):
            out += self._blocks.close()
        handler = handler_of(self.HANDLERS, kind, BlockReader.unknown)
        return [*out, *handler(self, obj)]

    def close(self) -> list[Event]:
        """Close all open blocks, as incomplete."""
        out = self._blocks.close(incomplete=True)
        for block in self._blocks.list_open():
            self._blocks.take(block.key)
            out.append(self.complete(block, {}, incomplete=True))
        return out

    def _begin(self, obj: Obj) -> None:
        self._runs += 1
        self._over = False
        wanted = self._id_of_run(obj) or run_id(self._run.codec, obj, self._runs)
        self._run.new_run(self._run_ids.take(wanted))
        self._calls.clear()

    @abstractmethod
    def _id_of_run(self, obj: Obj) -> str:
        """Return the run's id in its first object ("" for none)."""

    def unknown(self, obj: Obj) -> list[Event]:
        """Read a line of unknown type, or that fits no open block or call."""
        return self._run.unknown(obj)

    def start(self, form: BlockForm, obj: Obj, *, of: str = "", name: str = "") -> list[Event]:
        """Read a start line; an open block with its id closes first. A call needs an id."""
        key = form.key(obj)
        out: list[Event] = []
        cut = self._blocks.take(key)
        if cut is not None:
            out.append(self.complete(cut, {}, incomplete=True))
        if form.of == "call":
            wire_id = text_of(obj, form.id)
            if not wire_id:
                return self._run.unknown(obj)
            if self._calls.state_of(wire_id) == "open":
                # end the open call, so that the new call with its id gets another one
                self._calls.match_result(name, wire_id)
            self._calls.open_call(name, wire_id)
        note = {"start": note_difference(obj, {"type": form.start})}
        return [*out, self._blocks.start(of or form.of, key, obj, note, name)]

    def delta(self, obj: Obj) -> list[Event]:
        """Read a delta line; one without text, or for a call that is not open, is unknown."""
        form = self.FORMS[obj["type"]]
        text, key = obj.get(form.text), form.key(obj)
        block = self._blocks.get(key)
        if not isinstance(text, str) or (form.of == "call" and block is None):
            return self._run.unknown(obj)
        if block is None:
            self._blocks.start(form.of, key, obj, {})
            block = self._blocks.get(key)
        assert block is not None
        return [self._blocks.add(block, text, obj, {"type": form.delta, form.text: text})]

    def end(self, obj: Obj) -> list[Event]:
        """Read an end line; it is unknown if its block is not open."""
        form = self.FORMS[obj["type"]]
        block = self._blocks.take(form.key(obj))
        if block is None:
            return self._run.unknown(obj)
        return [self.complete(block, {"end": note_difference(obj, {"type": form.end})})]

    def complete(
        self, block: OpenBlock, note: Obj, *, incomplete: bool = False, **fields: Any
    ) -> Event:
        """Return the event of a block."""
        if block.of == "call":
            call = {
                "call_id": self._calls.own_id(_wire_id(block)),
                "args": as_dict(parse_json(block.text)),
                "name": block.name,
                "incomplete": incomplete,
                "raw_args": block.text,
            }
            return self._blocks.complete(block, Call, note, **{**call, **fields})
        extra = {} if block.of == "user" else {"incomplete": incomplete}
        cls = _CLASSES[block.of]
        return self._blocks.complete(block, cls, note, content=block.text, **extra, **fields)


def _wire_id(block: OpenBlock) -> str:
    """Return the id that the stream gave a block; see `BlockForm.key`."""
    return block.key.partition(":")[2]


class BlockWriter(ABC):
    """Writes the events of any number of runs; a subclass adds the lines of its protocol."""

    NAME: ClassVar[str]
    #: Kind of event -> the method that writes it; events of other kinds are not written.
    HANDLERS: ClassVar[EventHandlers]
    #: Kind of a block's event -> its form.
    FORM_OF: ClassVar[Mapping[str, BlockForm]]
    #: Kind of any other event -> the function that draws its line.
    DRAW: ClassVar[Drawings]
    #: Whether a delta without text has a line.
    WRITES_EMPTY_DELTAS: ClassVar[bool]

    def __init__(self) -> None:
        self._live = LiveBlocks()
        self._block_ids: dict[str, str] = {}  # open block -> its id on the wire
        self._count = 0  # the ids so far

    def write_objects(self, event: Event) -> list[Obj]:
        """Return the objects of one event, an imported one as it came."""
        note = note_of(event, self.NAME)
        if note is not None:
            return [] if note.get("derived") else self._imported(event, note)
        handler = self.HANDLERS.get(type(event))
        return handler(self, event) if handler else []

    # Runs of our own.

    def _block_id(self, event: Any) -> str:
        """Return the id of a block on the wire; forget it when the block closes."""
        if isinstance(event, Delta):
            if event.block not in self._block_ids:
                self._block_ids[event.block] = self._new_id(event)
            return self._block_ids[event.block]
        return self._block_ids.pop(event.block, "") or self._new_id(event)

    @abstractmethod
    def _new_id(self, event: Any) -> str:
        """Return an id for a block that has none yet."""

    def _start_block(self, form: BlockForm, ids: Obj) -> list[Obj]:
        return [{"type": form.start, **ids}]

    def _end_block(self, form: BlockForm, ids: Obj) -> list[Obj]:
        return [{"type": form.end, **ids}]

    def delta(self, event: Delta) -> list[Obj]:
        """Write a delta of a text or a thought; the first of its block also starts the block."""
        form = self.FORM_OF.get(event.of)
        if form is None or form.of == "call":  # a call's id is known when it is complete
            return []
        ids = {form.id: self._block_id(event)}
        start = self._start_block(form, ids) if self._live.add(event) else []
        if not event.text and not self.WRITES_EMPTY_DELTAS:
            return start
        return [*start, {"type": form.delta, **ids, form.text: event.text}]

    def block(self, event: Think | Respond) -> list[Obj]:
        """Write the end of a block; if its deltas were not written live, write the whole block."""
        form = self.FORM_OF[event.type]
        ids = {form.id: self._block_id(event)}
        ending = self._end_block(form, ids)
        if self._live.take(event):
            return ending
        texts = [text for text, _ in split_block(event) if text]
        content = [{"type": form.delta, **ids, form.text: text} for text in texts]
        return [*self._start_block(form, ids), *content, *ending]

    def extension(self, event: Extension) -> list[Obj]:
        """Write an extension of this format; extensions of other formats have no line."""
        return [self.DRAW[Extension](event)] if event.namespace == self.NAME else []

    # Runs that were read from this format.

    def _imported(self, event: Event, note: Obj) -> list[Obj]:
        if isinstance(event, Delta):
            return self._imported_delta(event, note)
        if isinstance(event, Think | Respond | Call | User) and event.type in self.FORM_OF:
            return self._imported_block(event, note)
        return restore_line(event, note, self.DRAW)

    def _imported_delta(self, event: Delta, note: Obj) -> list[Obj]:
        form = self.FORM_OF.get(event.of)
        if form is None:
            return []
        self._live.add(event)
        start = note.get("start")
        if isinstance(start, dict):
            return [restore_object({"type": form.start}, start)]
        return [restore_object({"type": form.delta, form.text: event.text}, note)]

    def _imported_block(self, event: Think | Respond | Call | User, note: Obj) -> list[Obj]:
        """Write a stored block, or only its end if its deltas have been written."""
        form, start, end = self.FORM_OF[event.type], note.get("start"), note.get("end")
        out: list[Obj] = []
        if not self._live.take(event, str(note.get("block", ""))):
            out = [restore_object({"type": form.start}, start)] if isinstance(start, dict) else []
            out += [
                restore_object({"type": form.delta, form.text: text}, n)
                for text, n in split_delta_lines(event, note, {})
            ]
        return [*out, restore_object({"type": form.end}, end)] if isinstance(end, dict) else out
