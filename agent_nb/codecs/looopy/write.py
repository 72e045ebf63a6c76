"""Writes events as Looopy's (seed 004): one writer for each run, in the chosen form.

Frames of the form `server`, as the seed's server sends them, have an `event:` line, and ids
`context-n` with n from 1. Frames of the form `document`, for the client in the seed's document,
hold `kind` and `contextId` in the data.
"""

from __future__ import annotations

from ...events import End, Event
from ..contract import Options
from ..framing import Item, is_sse_safe
from ..losses import Losses
from ..passthrough import strip_marks
from .lines import Obj, use_document_names
from .run_writer import RunWriter


class LooopyWriter:
    """Writes events of any number of runs."""

    def __init__(self, losses: Losses, options: Options) -> None:
        self._losses = losses
        self._options = options
        self._runs: dict[str, RunWriter] = {}
        self._ids: dict[str, int] = {}  # `contextId` -> number of its newest frame

    def write(self, event: Event) -> list[Item]:
        """Return the objects of one event."""
        run = self._runs.get(event.run)
        if run is None:
            conversation = self._options.conversation
            run = self._runs[event.run] = RunWriter(self._losses, event.run, conversation)
        items = [self._item(obj) for obj in run.write(event)]
        if type(event) is End and not event.span:
            del self._runs[event.run]
            if not self._options.conversation:
                self._ids.pop(event.run, None)
        return items

    def close(self) -> list[Item]:
        """Return the `content-complete` of each text whose turn has not ended."""
        return [self._item(obj) for run in self._runs.values() for obj in run.close()]

    def _item(self, marked: Obj) -> Item:
        """Return an object in the chosen form, or an imported one as its marks describe."""
        obj = strip_marks(marked)
        if marked.get("#own"):
            return self._frame(obj)
        event, number = marked.get("#event", ""), marked.get("#id")
        is_safe = isinstance(event, str) and is_sse_safe(event)
        is_framed = is_safe and self._options.framing == "sse"
        if "#kind" in marked:
            obj["kind"] = marked["#kind"]
        elif marked.get("#bare") and (is_framed or not event):
            obj.pop("kind", None)
        own_id = number if isinstance(number, str) and is_sse_safe(number) else None
        return Item(obj, event if is_framed else "", own_id)

    def _frame(self, obj: Obj) -> Item:
        """Return an object of a run of ours in the chosen form."""
        if self._options.form == "document":
            return Item(use_document_names(obj))
        if self._options.framing != "sse" or not is_sse_safe(obj["kind"]):
            return Item(obj)
        context = obj.pop("contextId")
        self._ids[context] = self._ids.get(context, 0) + 1
        number = f"{context}-{self._ids[context]}"
        return Item(obj, obj.pop("kind"), number if is_sse_safe(number) else None)
