"""Writes events as Loom frames (seed 002 § 7.1): one writer for each run, in the chosen form.

Rule: `event_id` counts from 1 over all runs of a session (but see `IDS_PER_RUN`).
"""

from __future__ import annotations

from ...events import End, Event
from ..contract import Options
from ..framing import Item
from ..losses import Losses
from ..passthrough import strip_marks
from .export import to_export
from .lines import Obj
from .run_writer import RunWriter

#: If each run of a session is sent as its own stream, the ids of a run begin this many after those
#: of the run before, so that they do not overlap.
IDS_PER_RUN = 10_000_000


class LoomWriter:
    """Writes events of any number of runs."""

    def __init__(self, losses: Losses, options: Options) -> None:
        self._form = options.form
        self._session = options.conversation
        self._losses = losses
        self._runs: dict[str, RunWriter] = {}
        # session -> `event_id` of its newest frame
        self._counts = {self._session: options.earlier * IDS_PER_RUN}

    def write(self, event: Event) -> list[Item]:
        """Return the frames of one event."""
        run = self._runs.get(event.run)
        if run is None:
            session = self._session or event.run
            run = self._runs[event.run] = RunWriter(
                self._losses, event.run, session, self._counts if self._form == "frames" else None
            )
        frames = run.write(event)
        if type(event) is End and not event.span:
            del self._runs[event.run]
            if not self._session:
                self._counts.pop(event.run, None)
        return self._items(frames)

    def close(self) -> list[Item]:
        """Return the frames that still wait for a user message or a usage."""
        return self._items([f for run in self._runs.values() for f in run.release()])

    def _items(self, frames: list[Obj]) -> list[Item]:
        return [Item(self._in_form(frame)) for frame in frames]

    def _in_form(self, frame: Obj) -> Obj:
        """Return a frame in the chosen form, without its marks."""
        if self._form == "export":
            return to_export(frame)
        wrap = frame.get("#ws")
        frame = strip_marks(frame)
        if isinstance(wrap, dict):
            return {"type": "run_stream_event", **wrap, "event": frame}
        return frame
