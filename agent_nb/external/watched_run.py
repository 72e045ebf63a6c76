"""Follows a run of another system: a file, an address, or a stream of objects, lines or bytes.

    run = await agent_nb.watch("run.ndjson")   # in a cell: shows its cards
    async for event in agent_nb.watch(agent.stream()): …

A run of another program is shown and recorded like our own, while it goes on or afterwards.

Rules
- The source is read once, however many callers iterate or await; a late iteration gets the events
  so far first.
- If the source breaks off after a run has begun, the log gets an error and the run is closed as
  interrupted. The exception is raised only if it is of the caller's own iterator.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from typing import Any

from ..agent import Run, Screen
from ..codecs import is_live, name_source
from ..errors import AgentError, UsageError
from ..events import Event, EventLog
from ..models import collect_secrets
from ..wire import redact_text
from .followed import FollowedRuns
from .importer import Imported
from .sources import read_items

TICK = 0.05  # seconds between checks for events that the codec has held back long enough


class Watch(FollowedRuns):
    """A run of another system that is followed, or several runs of one source; see `watch`.

    Iterate it for events (deltas included), await it for the Run. `live`: the source is being
    written, so events before the first with a time get their times of arrival. `fault`: the
    exception that stopped the reading, or None.
    """

    def __init__(
        self,
        source: Any,
        codec: str | None,
        *,
        prompt: str,
        follow: bool,
        show: bool | None,
        secrets: Mapping[str, str] | None,
    ) -> None:
        super().__init__("watch the source again", show=show)
        self.name = name_source(source)
        self.fault: Exception | None = None
        self.live = is_live(source, follow)
        self._source, self._grows = source, follow
        self._secrets = collect_secrets(secrets)
        self._imported = Imported(
            codec, prompt=prompt, live=self.live, on_run=self._report, secrets=self._secrets
        )
        self._seen: list[Event] = []  # the events so far without deltas, for a late iteration
        self._queues: list[asyncio.Queue[Event | None]] = []  # one for each iteration; None ends it
        self._stopped = False  # `stop` was called
        self._over = False  # the source has ended

    @property
    def logs(self) -> list[EventLog]:
        """The logs of the runs so far, in order of appearance."""
        return self._imported.logs

    @property
    def runs(self) -> list[Run]:
        """The runs so far, in order of appearance."""
        return [Run(log) for log in self.logs]

    @property
    def run(self) -> Run:
        """The latest run, with the events so far."""
        return Run(self.logs[-1]) if self.logs else Run(EventLog())

    @property
    def codec(self) -> str:
        """The name of the format, "" while it is unknown."""
        return self._imported.codec.name if self._imported.codec else ""

    @property
    def title(self) -> str:
        """The origin of the run, for people."""
        kind = f" ({self._imported.codec.title})" if self._imported.codec else ""
        return f"imported from {self.name}{kind}"

    @property
    def lost(self) -> dict[str, int]:
        """The parts of the source that could not be read: name of the loss -> count."""
        return self._imported.losses.counts()

    def _report(self, log: EventLog) -> None:
        self._on_run(log)  # looked up late, because `set_run_callback` may replace it

    def start(self) -> Watch:
        """Begin to read on the running event loop, once; return the watch.

        Raises UsageError if it is read in another event loop.
        """
        self._require_same_loop()
        if self._task is None:
            self._start_task(f"agent_nb watch {self.name}")
        return self

    def stop(self) -> None:
        """Stop reading, from any thread; the run is closed as interrupted."""
        self._stopped = True
        if self._task is not None:
            self._call_on_loop(self._task.cancel)

    async def follow(self, screen: Screen | None = None) -> None:
        """Read until the source ends, `stop` is called, or the user stops the awaiting cell."""
        self.start()
        assert self._task is not None
        await self._wait_for_task(self._task, screen, lambda _: self.stop())

    async def __aiter__(self) -> AsyncIterator[Event]:
        """Yield the events so far, then each as it comes, until the source ends.

        Raises what `await` raises.
        """
        queue: asyncio.Queue[Event | None] = asyncio.Queue()
        self.start()
        for event in list(self._seen):
            queue.put_nowait(event)
        self._queues.append(queue)
        if self._over:
            queue.put_nowait(None)
        try:
            while (next_event := await queue.get()) is not None:
                yield next_event
        finally:  # also of an iteration that is left early: its queue would only grow
            self._queues.remove(queue)
        self._raise_read_error()

    def _raise_read_error(self) -> None:
        """Raise the error of a source that yielded no run, or of the caller's own iterator."""
        is_of_source = isinstance(self.fault, AgentError | OSError)
        if self.fault is not None and not (self.logs and is_of_source):
            raise self.fault

    async def _drive(self) -> None:
        """Read the source to its end and close the runs; `fault` keeps an error for awaiting."""
        fault_text = ""
        try:
            await self._read()
        except asyncio.CancelledError:
            # after `stop` the cancellation is our own, and has done its work; any other one passes,
            # and `_finish` still closes the runs as interrupted
            if not self._stopped:
                self._stopped = True
                raise
        except Exception as error:
            self.fault = error
            kind = "" if isinstance(error, AgentError) else f"{type(error).__name__}: "
            fault_text = redact_text(f"{kind}{error}", self._secrets)
        finally:
            self._finish(fault_text)

    async def _read(self) -> None:
        """Read the items; while none comes, pass on what the codec of a live source held back."""
        reading = asyncio.ensure_future(self._read_items())
        try:
            while self.live and not reading.done():
                self._pass_on(self._imported.tick())
                await asyncio.wait([reading], timeout=TICK)
            await reading
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)

    async def _read_items(self) -> None:
        source = read_items(self._source, self._has_all, follow=self._grows)
        async with aclosing(source) as items:
            async for item in items:
                self._pass_on(self._imported.feed(item))

    def _finish(self, fault_text: str) -> None:
        """End every run, and every iteration."""
        try:
            self._pass_on(self._imported.close(fault_text, stopped=self._stopped))
            if not self.logs and self.fault is None and not self._stopped:
                self.fault = UsageError(
                    f"There is no event in {self.name}. Is it the right source, and the right codec?"
                )
        except AgentError as error:
            self.fault = self.fault or error
        finally:
            self._over = True
            for queue in self._queues:
                queue.put_nowait(None)

    def _finish_unbegun(self) -> None:
        self._stopped = True
        self._finish("")

    def _pass_on(self, events: list[Event]) -> None:
        self._seen += [e for e in events if e.type != "delta"]
        for queue in self._queues:
            for event in events:
                queue.put_nowait(event)

    def _has_all(self) -> bool:
        """Return whether the events so far are complete: there are runs, and all have ended."""
        return bool(self.logs) and all(log.ended for log in self.logs)

    def __repr__(self) -> str:
        return f"<Watch of {self.name}: {len(self.logs)} run{'' if len(self.logs) == 1 else 's'}{'' if self._over else ', open'}>"


def watch(
    source: Any,
    codec: str | None = None,
    *,
    prompt: str = "",
    follow: bool = False,
    show: bool | None = None,
    secrets: Mapping[str, str] | None = None,
) -> Watch:
    """Follow a run of another system; iterate the result for events, or await it for the `Run`.

    - `source`: an address (http, https), a path, a text or bytes, an open file, or an iterator,
      async or not, of bytes, lines, objects or events, or of dicts that are events of a known
      format (`{"type": "respond", "content": "…"}`)
    - `codec`: the name of its format (None: detected)
    - `prompt`: the user's message, for formats without it
    - `follow`: read on in a file that is being written, until its run has ended
    - `show`: show the cards when awaited (None: in a notebook)
    - `secrets`: values to hide, by name (None: the known secrets)

    Raises UsageError on an unknown codec.
    """
    return Watch(source, codec, prompt=prompt, follow=follow, show=show, secrets=secrets)
