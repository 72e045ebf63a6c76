"""Writes protocols whose blocks have start, delta and end lines (`block_form`).

Rule: an event that was read from this format gets its original lines (`passthrough`), or none if
the reader added it (`derived`); a block of ours gets a new id.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from ..events import Call, Delta, Event, Extension, Respond, Think, User
from .block_form import BlockForm
from .passthrough import restore_object
from .provenance import note_of
from .run_builder import Drawings, EventHandlers, Obj
from .writing import LiveBlocks, restore_line, split_block, split_delta_lines


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
        start = self._start_block(form, ids) if self._live.add_delta(event) else []
        if not event.text and not self.WRITES_EMPTY_DELTAS:
            return start
        return [*start, {"type": form.delta, **ids, form.text: event.text}]

    def block(self, event: Think | Respond) -> list[Obj]:
        """Write the end of a block; if its deltas were not written live, write the whole block."""
        form = self.FORM_OF[event.type]
        ids = {form.id: self._block_id(event)}
        ending = self._end_block(form, ids)
        if self._live.end_block(event):
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
        self._live.add_delta(event)
        start = note.get("start")
        if isinstance(start, dict):
            return [restore_object({"type": form.start}, start)]
        return [restore_object({"type": form.delta, form.text: event.text}, note)]

    def _imported_block(self, event: Think | Respond | Call | User, note: Obj) -> list[Obj]:
        """Write a stored block, or only its end if its deltas have been written."""
        form, start, end = self.FORM_OF[event.type], note.get("start"), note.get("end")
        out: list[Obj] = []
        if not self._live.end_block(event, str(note.get("block", ""))):
            out = [restore_object({"type": form.start}, start)] if isinstance(start, dict) else []
            out += [
                restore_object({"type": form.delta, form.text: text}, n)
                for text, n in split_delta_lines(event, note, {})
            ]
        return [*out, restore_object({"type": form.end}, end)] if isinstance(end, dict) else out
