"""Run an agent for `POST /runs`: each message continues its conversation.

Why here: the server has no notebook whose cells would hold the turns of a conversation.

Rules
- A conversation has one run at a time; a run without a conversation has no history.
- Runs that failed without an answer are left out of the history.
- Clients that follow the run can answer the agent's questions, as long as the run's limits allow.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..agent import Run, Stream
from ..errors import UsageError
from ..events import EventLog
from ..rows import Agent

# conversations in memory; of those without an active run the least recently used is forgotten first
CONVERSATIONS = 200


class StartedRun:
    """A started run with its controls; implements `app.endpoints.Launched`."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self.log = stream.log
        self.approve = stream.questions.answer

    def cancel(self) -> None:
        """Stop the run; may be called from any thread."""
        self._stream.stop("stopped over HTTP")


class Agents:
    """Starts runs of one agent; `on_start` receives each run's log before the first event."""

    def __init__(
        self, agent: Agent, *, on_start: Callable[[EventLog], Any] = lambda _: None
    ) -> None:
        self._agent = agent
        self._on_start = on_start
        self._turns: dict[str, list[EventLog]] = {}
        self._streams: list[Stream] = []

    async def __call__(self, message: str, conversation: str) -> StartedRun:
        """Start a run. Raises UsageError while a run of the `conversation` ("": none) is active."""
        turns = self._find_turns(conversation) if conversation else []
        stream = self._agent(message, history=list(turns), record=False)
        # a client may follow the run, and answer its questions, at any time
        stream.questions.reachable_while(lambda: True)
        self._on_start(stream.log)
        self._streams = [s for s in self._streams if not s.log.ended] + [stream]
        turns.append(stream.log)
        return StartedRun(stream.start())

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
        # one with an active run stays: without it, the run would no longer block a second one
        # there is always one: at the latest `conversation` itself, which is the newest
        oldest = next(name for name, logs in self._turns.items() if not logs or logs[-1].ended)
        if len(self._turns) > CONVERSATIONS and oldest != conversation:
            del self._turns[oldest]
        return turns

    async def stop(self) -> None:
        """Stop every run and wait for its end, then close the model's connections."""
        for stream in self._streams:
            await stream.aclose()
        await self._agent.aclose()
