"""Writes events that were read from Loom as their original frames, envelope included.

An event and its note hold all that its frame needs, while `run_writer` makes nodes for our runs.
"""

from __future__ import annotations

from ...events import Answer, Call, Delta, End, Event, Interrupt, Respond, Think
from ..foreign_values import text_of
from ..passthrough import restore_object
from ..writing import Block, LiveBlocks, restore_block, restore_line
from .lines import CANCELS, DRAW, SHIFTS, Obj, draw_chunk, draw_frame, draw_reply


class ImportedFrames:
    """Writes the events of one run that have a note of Loom; `answer`: the run's answer so far."""

    def __init__(self, live: LiveBlocks, answer: Answer) -> None:
        self._live, self._answer = live, answer

    def write(self, event: Event, note: Obj) -> list[Obj]:
        """Return the frames of one event."""
        if note.get("derived"):
            return []
        if isinstance(event, Delta):
            self._live.add_delta(event)
            if event.of in ("think", "respond", "call"):
                return [restore_object(draw_chunk(event.of, event.text), note)]
            return []
        form = text_of(note, "form")  # which of the frame types that become this kind of event
        if isinstance(event, End):
            reply = draw_reply(self._answer.text, event.status, event.finish_reason, form)
            return [restore_object(reply, note)]
        if isinstance(event, Interrupt):
            return [restore_object({"type": form or CANCELS[0]}, note)]
        if isinstance(event, Think | Respond):
            return self._block(event, note)
        if isinstance(event, Call):
            return self._call(event, note)
        return restore_line(event, note, DRAW)

    def _block(self, event: Block, note: Obj) -> list[Obj]:
        return restore_block(
            event, note, SHIFTS, self._live, lambda text: draw_chunk(event.type, text)
        )

    def _call(self, event: Call, note: Obj) -> list[Obj]:
        # three cases: chunks and then a `tool_call` (the event's note is that of the chunks, and
        # its entry "call" that of the `tool_call`), chunks alone (form "chunks"), no chunks
        call_note = note.get("call")
        if isinstance(call_note, dict):
            return [*self._block(event, note), restore_object(draw_frame(event), call_note)]
        if note.get("form") == "chunks":
            return self._block(event, note)
        return [restore_object(draw_frame(event), note)]
