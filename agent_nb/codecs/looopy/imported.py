"""Writes events that were read from Looopy (seed 004) as their original objects.

An event and its note hold all that its object needs, unlike those of our runs (`run_writer`).
"""

from __future__ import annotations

from ...events import Delta, Event, Extension, Respond
from ...wire import as_dict
from ..passthrough import restore_object
from ..writing import LiveBlocks, restore_block, restore_line
from .lines import DRAW, SHIFTS, Obj, draw_complete, draw_delta


class ImportedEvents:
    """Writes the events of one run that have a note of Looopy."""

    def __init__(self, live: LiveBlocks) -> None:
        self._live = live
        self._texts: dict[str, str] = {}  # span -> the text since its last `content-complete`

    def write(self, event: Event, note: Obj) -> list[Obj]:
        """Return the objects of one event."""
        if note.get("derived"):
            return []
        if isinstance(event, Delta):
            self._live.add_delta(event)
            self._texts[event.span] = self._texts.get(event.span, "") + event.text
            return [restore_object(draw_delta(event.text), note)] if event.of == "respond" else []
        if isinstance(event, Respond):
            return self._text(event, note)
        if isinstance(event, Extension) and event.name == "content-complete":
            self._texts.pop(event.span, None)
        return restore_line(event, note, DRAW)

    def _text(self, event: Respond, note: Obj) -> list[Obj]:
        # "complete" is the note of the text's `content-complete` object, if it had one; the form
        # "whole" marks a text that came in that object alone, without deltas
        complete = note.get("complete")
        if note.get("form") == "whole":
            return [restore_object(draw_complete(event.content), as_dict(complete))]
        out = restore_block(event, note, SHIFTS, self._live, draw_delta)
        if out:  # else the deltas were written live, and `write` has added them to the text
            self._texts[event.span] = self._texts.get(event.span, "") + event.content
        if isinstance(complete, dict):
            out.append(restore_object(draw_complete(self._texts.pop(event.span, "")), complete))
        return out
