"""Run an agent for `POST /runs`: each message continues its conversation, held in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec

from ..agent import Run, Stream
from ..errors import UsageError
from ..events import EventLog
from ..rows import Agent

# conversations in memory; of those without an active run the least recently used is forgotten first
CONVERSATIONS = 200


class StartedRun(msgspec.Struct):
    """A started run with its controls; implements `app.endpoints.Launched`."""

    log: EventLog
    cancel: Callable[[], Any]
    approve: Callable[..., bool]


class Agents:
    """Starts runs of one agent; `on_start` receives each run's log before the first event."""

    def __init__(
        self, agent: Agent, *, on_start: Callable[[EventLog], Any] = lambda _: None
    ) -> None:
        self._agent = agent
        self._on_start = on_start
        self._turns: dict[str, list[EventLog]] = {}  # by conversation, the latest used one last
        self._streams: list[Stream] = []  # of active runs, whatever their conversation

    async def __call__(self, message: str, conversation: str) -> StartedRun:
        """Start a run. Raises UsageError while a run of the `conversation` ("": none) is active."""
        turns = self._find_turns(conversation) if conversation else []
        stream = self._agent(message, history=list(turns), record=False)
        # a client may follow the run, and answer its questions, at any time
        stream.questions.reachable_while(lambda: True)
        self._on_start(stream.log)
        self._streams = [s for s in self._streams if not s.log.ended] + [stream]
        turns.append(stream.log)
        cancel = partial(stream.start().stop, "stopped over HTTP")
        return StartedRun(stream.log, cancel, stream.questions.answer)

    def _find_turns(self, conversation: str) -> list[EventLog]:
        """Return the turns of a conversation, which becomes the most recently used one.

        Raises UsageError while a turn is active.
        """
        turns = self._turns.pop(conversation, [])
        if turns and not turns[-1].ended:
            self._turns[conversation] = turns
            raise UsageError(
                f"A run of the conversation {conversation!r} goes on. Wait for its end, or stop it."
            )
        turns = [log for log in turns if Run(log).status == "ok" or Run(log).answer]
        self._turns[conversation] = turns
        # a conversation with an active run stays, because that run must block a second one; if all
        # others have one, the oldest is `conversation` itself
        oldest = next(name for name, logs in self._turns.items() if not logs or logs[-1].ended)
        if len(self._turns) > CONVERSATIONS and oldest != conversation:
            del self._turns[oldest]
        return turns

    async def stop(self) -> None:
        """Stop every run and wait for its end, then close the model's connections."""
        await self.stop_runs()
        await self._agent.aclose()

    async def stop_runs(self) -> None:
        """Stop every run and wait for its end; the agent stays usable."""
        while streams := self._streams:  # others may start meanwhile
            self._streams = []
            await asyncio.gather(*(s.aclose() for s in streams), return_exceptions=True)
