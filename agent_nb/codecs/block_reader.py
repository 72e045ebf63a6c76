"""Reads protocols whose blocks have start, delta and end lines (`block_form`).

Rules
- A stream holds any number of runs, one after the other. A run may lack its start line; a second
  start line begins another run even if the first run has no end.
- A start line becomes an empty delta, so that a stream translated live has its lines in order.
- The end of the run closes open blocks as incomplete. A delta without a start opens its block.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from ..events import Call, Event, Respond, Think, User
from ..wire import as_dict
from .block_form import BlockForm
from .blocks import Blocks, OpenBlock
from .call_matching import CallMatcher
from .foreign_values import parse_json, run_id, text_of
from .passthrough import note_difference
from .run_builder import LineHandlers, Obj, RunBuilder, UniqueIds

_CLASSES: dict[str, type[Event]] = {"respond": Respond, "think": Think, "user": User}


class BlockReader(ABC):
    """Reads the runs and blocks of one stream; a subclass adds the lines of its protocol."""

    #: Type of an object -> the method that reads it; an object of any other type is an extension.
    HANDLERS: ClassVar[LineHandlers]
    #: Type of the line that starts a run.
    START: ClassVar[str]
    #: Type of a line -> the form of its block.
    FORMS: ClassVar[Mapping[str, BlockForm]]
    #: Field of a call's start line with the name of its tool.
    TOOL_NAME: ClassVar[str]
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
            out += self._blocks.close_text()
        return [*out, *self._run.read_line(self, obj)]

    def close(self) -> list[Event]:
        """Close all open blocks, as incomplete."""
        out = self._blocks.close_text(incomplete=True)
        for block in self._blocks.list_open():
            self._blocks.take_block(block.key)
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

    def start(self, obj: Obj, of: str = "") -> list[Event]:
        """Read a start line; an open block with its id closes first. A call needs an id."""
        form, name = self.FORMS[obj["type"]], text_of(obj, self.TOOL_NAME)
        key = form.key(obj)
        out: list[Event] = []
        cut = self._blocks.take_block(key)
        if cut is not None:
            out.append(self.complete(cut, {}, incomplete=True))
        if form.of == "call":
            wire_id = text_of(obj, form.id)
            if not wire_id:
                return self._run.unknown(obj)
            self.open_call(name, wire_id)
        note = {"start": note_difference(obj, {"type": form.start})}
        return [*out, self._blocks.start_block(of or form.of, key, obj, note, name)]

    def open_call(self, name: str, wire_id: str) -> None:
        """Open a call; an open call with its id ends, so that the new call gets another id."""
        if self._calls.state_of(wire_id) == "open":
            self._calls.match_result(name, wire_id)
        self._calls.open_call(name, wire_id)

    def delta(self, obj: Obj) -> list[Event]:
        """Read a delta line; one without text, or for a call that is not open, is unknown."""
        form = self.FORMS[obj["type"]]
        text, key = obj.get(form.text), form.key(obj)
        block = self._blocks.find_block(key)
        if not isinstance(text, str) or (form.of == "call" and block is None):
            return self._run.unknown(obj)
        if block is None:
            block = self._blocks.open_block(form.of, key, obj)
        return [self._blocks.add_delta(block, text, obj, {"type": form.delta, form.text: text})]

    def end(self, obj: Obj) -> list[Event]:
        """Read an end line; it is unknown if its block is not open."""
        form = self.FORMS[obj["type"]]
        block = self._blocks.take_block(form.key(obj))
        if block is None:
            return self._run.unknown(obj)
        return [self.complete(block, {"end": note_difference(obj, {"type": form.end})})]

    def complete(
        self, block: OpenBlock, note: Obj, *, incomplete: bool = False, **fields: Any
    ) -> Event:
        """Return the event of a block."""
        if block.of == "call":
            wire_id = block.key.partition(":")[2]  # see `BlockForm.key`
            call = {
                "call_id": self._calls.own_id(wire_id),
                "args": as_dict(parse_json(block.text)),
                "name": block.name,
                "incomplete": incomplete,
                "raw_args": block.text,
            }
            return self._blocks.complete_block(block, Call, note, **{**call, **fields})
        extra = {} if block.of == "user" else {"incomplete": incomplete}
        cls = _CLASSES[block.of]
        return self._blocks.complete_block(block, cls, note, content=block.text, **extra, **fields)


def handle_blocks(forms: Mapping[str, BlockForm]) -> LineHandlers:
    """Return type of a line of a block -> the method that reads it."""
    methods: LineHandlers = {}
    for form in forms.values():
        methods[form.start], methods[form.delta] = BlockReader.start, BlockReader.delta
        methods[form.end] = BlockReader.end
    return methods
