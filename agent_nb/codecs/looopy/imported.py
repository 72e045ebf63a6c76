"""Write what was read from Looopy (seed 004) as it came.

Why apart from runs of our own: nothing is decided here; the notes of the events hold the lines.
"""

from __future__ import annotations

from ...events import Delta, Event, Extension, Respond
from ..passthrough import restore_object
from ..writing import Live, imported_line, restore_block
from .lines import DRAW, SHIFTS, Obj, draw_complete, draw_delta


class Imported:
    """The events of one run that carry notes of Looopy."""

    def __init__(self, live: Live) -> None:
        self._live = live
        self._texts: dict[str, str] = {}  # since the last whole text, by span

    def write(self, event: Event, note: Obj) -> list[Obj]:
        """Return the objects of one event."""
        if note.get("derived"):
            return []
        if isinstance(event, Delta):
            self._live.add(event)
            self._texts[event.span] = self._texts.get(event.span, "") + event.text
            return [restore_object(draw_delta(event.text), note)] if event.of == "respond" else []
        if isinstance(event, Respond):
            return self._text(event, note)
        if isinstance(event, Extension) and event.name == "content-complete":
            self._texts.pop(event.span, None)
        return imported_line(event, note, DRAW)

    def _text(self, event: Respond, note: Obj) -> list[Obj]:
        complete = note.get("complete")
        if note.get("form") == "whole":
            return [
                restore_object(
                    draw_complete(event.content), complete if isinstance(complete, dict) else {}
                )
            ]
        out = restore_block(event, note, SHIFTS, self._live, draw_delta)
        if out:  # else its deltas were written, and counted, live
            self._texts[event.span] = self._texts.get(event.span, "") + event.content
        if isinstance(complete, dict):
            out.append(restore_object(draw_complete(self._texts.pop(event.span, "")), complete))
        return out
